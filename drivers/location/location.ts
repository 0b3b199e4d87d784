/** Reports the kit's position from gpsd, or from the configuration where no receiver has a fix. */
import { connect } from 'node:net';
import { addAbortSignal } from 'node:stream';
import { StringDecoder } from 'node:string_decoder';
import { noFeeds } from '../../src/contract/feeds.ts';
import { defineDriver, type DriverHost } from '../../src/toolkit/driver/driver.ts';
import { aborted, deadline, every } from '../../src/platform/time.ts';
import { connectionFault } from '../../src/toolkit/device/connection-fault.ts';
import { DeviceUnreachable } from '../../src/platform/errors.ts';
import { z } from 'zod';
import { hostOption } from '../../src/toolkit/driver/host-option.ts';
import { silenceSince } from '../../src/platform/stalls.ts';
import { answer_limits, readJson } from '../../src/contract/bounded-json.ts';
import { numberIn, portOption, textUpTo } from '../../src/toolkit/driver/option-types.ts';

const degrees_lat = numberIn(-90, 90);
const degrees_lon = numberIn(-180, 180);

const report = z.looseObject({
  class: z.string(),
  device: z.string().optional(),
  mode: z.number().optional(),
  time: z.union([z.string(), z.number()]).optional(),
  lat: z.number().optional(),
  lon: z.number().optional(),
  alt: z.number().optional(),
  altHAE: z.number().optional(),
  altMSL: z.number().optional(),
  geoidSep: z.number().optional(),
});
type GpsdReport = z.output<typeof report>;

/** One report of a receiver. */
interface Tpv {
  /** As gpsd names the receiver. */
  readonly device: string;
  /** Null: the receiver has no fix. */
  readonly position: Position | null;
}

interface Position {
  readonly latitude: number;
  readonly longitude: number;
  /** Metres above the WGS-84 ellipsoid; null for a 2-D fix. */
  readonly altitude: number | null;
  /** UTC; null: the receiver does not know the time yet. */
  readonly time_ms: number | null;
}

/** Whether the line is a report at all; the first one of gpsd is its version. */
function isReport(line: string): boolean {
  return reportIn(line) !== undefined;
}

/** The TPV report of the line; undefined: the line is another report, or none. */
export function readTpv(line: string): Tpv | undefined {
  const data = reportIn(line);
  return data?.class === 'TPV' ? { device: data.device ?? '', position: positionOf(data) } : undefined;
}

function reportIn(line: string): GpsdReport | undefined {
  try {
    return report.safeParse(readJson(line, answer_limits)).data;
  } catch {
    return undefined;
  }
}

/** A report without a fix may carry an old latitude or zeros, so the mode is checked before the fields. */
function positionOf(tpv: GpsdReport): Position | null {
  if ((tpv.mode ?? 0) < 2) return null;
  const { data: latitude } = degrees_lat.safeParse(tpv.lat);
  const { data: longitude } = degrees_lon.safeParse(tpv.lon);
  if (latitude === undefined || longitude === undefined) return null;
  if (latitude === 0 && longitude === 0) return null;
  return { latitude, longitude, altitude: altitudeOf(tpv), time_ms: timeOf(tpv) };
}

/** gpsd before 3.20 reports `alt` alone, above mean sea level. A 2-D fix sometimes has mode 3, but no altitude at all. */
function altitudeOf({ mode, alt, altHAE, altMSL, geoidSep }: GpsdReport): number | null {
  if (mode === 2) return null;
  if (altHAE !== undefined) return altHAE;
  const above_sea_m = altMSL ?? alt;
  return above_sea_m === undefined || geoidSep === undefined ? null : above_sea_m + geoidSep;
}

/** Text since gpsd 2.96, seconds before. */
function timeOf({ time }: GpsdReport): number | null {
  if (time === undefined) return null;
  const ms = typeof time === 'number' ? time * 1_000 : Date.parse(time);
  return Number.isFinite(ms) ? ms : null;
}

/** Receivers of one gpsd; more are ignored. */
const receivers_max = 16;

interface Report {
  readonly position: Position | null;
  readonly received_ms: number;
  /** When the position was first reported with this time. */
  readonly measured_ms: number;
}

/** `waiting`: no report since the start. `frozen`: the same fix again and again. */
type ReceiverState = 'fix' | 'no fix' | 'frozen' | 'mute' | 'waiting';

interface RecentFix {
  readonly position: Position;
  readonly age_ms: number;
}

/** Receivers differ by less when both are on time; one behind a modem or a converter may be late by a minute. */
const behind_min_ms = 5_000;
/** A receiver that is wrong about the date (week roll-over) does not make the others late. */
const behind_max_ms = 86_400_000;

/** Whether the fixes of a receiver arrive later than those of another, by the time that both report. */
function isBehind(fix: RecentFix, other: RecentFix): boolean {
  if (fix.position.time_ms === null || other.position.time_ms === null) return false;
  const behind_ms = other.position.time_ms + other.age_ms - (fix.position.time_ms + fix.age_ms);
  return behind_ms > behind_min_ms && behind_ms <= behind_max_ms;
}

/**
 * Whether a receiver has measured nothing since: firmware and bridges that hang repeat their last fix, and its time with it
 * (https://github.com/mowglinext/mowglinext/issues/533, https://github.com/MotusDev/Motus-TO-DO/issues/482). A place alone may stay the
 * same to the last digit: receivers hold it while they stand still.
 */
function isRepeated(position: Position | null, last: Position | null): boolean {
  if (!position || !last || position.time_ms === null || position.time_ms !== last.time_ms) return false;
  return position.latitude === last.latitude && position.longitude === last.longitude;
}

/** Tracks the receivers behind one gpsd: which has a fix and which sends nothing any more. */
export class Receivers {
  readonly #byDevice = new Map<string, Report>();
  readonly #mute_ms: number;
  readonly #wanted: string | undefined;
  readonly #start_ms: number;
  /** The last one that is not used, since another one is configured. */
  #other: { readonly device: string; readonly heard_ms: number } | undefined;

  constructor(mute_ms: number, wanted: string | undefined, now_ms: number) {
    this.#mute_ms = mute_ms;
    this.#wanted = wanted;
    this.#start_ms = now_ms;
  }

  /** Stores a report. False for a receiver that is not used. */
  note({ device, position }: Tpv, now_ms: number): boolean {
    if (this.#wanted !== undefined && device !== this.#wanted) {
      this.#other = { device, heard_ms: now_ms };
      return false;
    }
    if (!this.#byDevice.has(device) && this.#byDevice.size >= receivers_max) return false;
    const last = this.#byDevice.get(device);
    const measured_ms = last && isRepeated(position, last.position) ? last.measured_ms : now_ms;
    this.#byDevice.set(device, { position, received_ms: now_ms, measured_ms });
    return true;
  }

  /** The receiver to use: the first one with a recent fix that is not late, with an altitude if any has one. */
  best(
    now_ms: number,
  ): { readonly device: string; readonly position: Position; readonly age_ms: number } | undefined {
    const fixes = [...this.#byDevice].flatMap(([device, report]) => {
      const { position, received_ms, measured_ms } = report;
      const age_ms = now_ms - measured_ms;
      return position && !this.#isFrozen(report) && silenceSince(received_ms, now_ms) <= this.#mute_ms
        ? [{ device, position, age_ms }]
        : [];
    });
    const current = fixes.filter((fix) => !fixes.some((other) => isBehind(fix, other)));
    return current.find(({ position }) => position.altitude !== null) ?? current[0];
  }

  #isFrozen({ position, received_ms, measured_ms }: Report): boolean {
    return position !== null && received_ms - measured_ms > this.#mute_ms;
  }

  /** What gpsd reads now beside the configured receiver. */
  other(now_ms: number): string | undefined {
    const { device, heard_ms } = this.#other ?? {};
    return heard_ms !== undefined && silenceSince(heard_ms, now_ms) <= this.#mute_ms ? device : undefined;
  }

  state(now_ms: number): ReceiverState {
    if (this.best(now_ms)) return 'fix';
    const received_ms = Math.max(
      this.#start_ms,
      ...[...this.#byDevice.values()].map((each) => each.received_ms),
    );
    if (silenceSince(received_ms, now_ms) > this.#mute_ms) return 'mute';
    if (this.#byDevice.size === 0) return 'waiting';
    return [...this.#byDevice.values()].some((each) => this.#isFrozen(each)) ? 'frozen' : 'no fix';
  }
}

// The options of the location driver.

const locationOptions = z
  .strictObject({
    gpsd: z
      .strictObject({
        host: hostOption.default('127.0.0.1').describe('where gpsd listens'),
        port: portOption.default(2_947).describe('TCP port of gpsd'),
        device: textUpTo(255)
          .optional()
          .describe('the receiver that counts, as gpsd names it: /dev/ttyACM0; left out: the best of all'),
        mute_s: numberIn(2, 600)
          .default(10)
          .describe('a receiver that sends nothing for so long is reported mute'),
      })
      .optional()
      .describe('reads the position from gpsd; {} for gpsd on this machine'),
    manual: z
      .strictObject({
        latitude: numberIn(-90, 90).describe('WGS-84, degrees'),
        longitude: numberIn(-180, 180).describe('WGS-84, degrees'),
        altitude_m: numberIn(-500, 10_000)
          .optional()
          .describe('metres above the WGS-84 ellipsoid, not above the sea'),
        pinned: z.boolean().default(false).describe('true: counts before every receiver'),
      })
      .optional()
      .describe('position of the kit while no receiver has one'),
  })
  .refine((options) => options.gpsd !== undefined || options.manual !== undefined, {
    message: 'give gpsd or manual: without both there is no position',
  });
type LocationOptions = z.output<typeof locationOptions>;

/** How often the state of a silent receiver is checked. */
const check_every_ms = 500;

export const location = defineDriver({
  name: 'location',
  feeds: noFeeds,
  options: locationOptions,
  async run({ gpsd, manual }, host) {
    if (manual) reportManual(manual, host);
    if (gpsd) {
      await runGpsd(gpsd, host);
      return;
    }
    // There is no device to connect to: an empty report marks the driver as running.
    host.reportKit({});
    await aborted(host.signal);
  },
});

type LocationHost = DriverHost<typeof noFeeds>;
type GpsdOptions = NonNullable<LocationOptions['gpsd']>;

function reportManual(manual: NonNullable<LocationOptions['manual']>, host: LocationHost): void {
  const { latitude, longitude, altitude_m, pinned } = manual;
  host.reportLocation({
    latitude,
    longitude,
    altitude: altitude_m ?? null,
    source: 'manual',
    age_ms: 0,
    pinned,
  });
}

async function runGpsd(options: GpsdOptions, host: LocationHost): Promise<void> {
  const over = new AbortController();
  const receivers = new Receivers(options.mute_s * 1_000, options.device, performance.now());
  const reportState = createStateReporter(options, host);
  every(check_every_ms, AbortSignal.any([over.signal, host.signal]), () =>
    reportState(receivers.state(performance.now()), receivers),
  );
  try {
    await watchGpsd(options, host.signal, (line) => {
      const now_ms = performance.now();
      const tpv = readTpv(line);
      // Any line shows that gpsd is alive; a position reported earlier in this run stays valid until the next report.
      if (!tpv) host.reportKit({});
      else if (receivers.note(tpv, now_ms)) {
        const best = receivers.best(now_ms);
        host.reportLocation(best ? { ...best.position, source: 'satellite', age_ms: best.age_ms } : null);
        reportState(receivers.state(now_ms), receivers);
      }
    });
  } finally {
    over.abort();
    // What its receivers did is no fact about a gpsd that is lost.
    host.reportStatus({});
  }
}

function sentenceOf(state: ReceiverState, other: string | undefined): string {
  return state === 'mute' && other !== undefined ? texts.other_device(other) : texts.states[state];
}

/** Reports each change of state in status and logs it once. */
function createStateReporter(
  options: GpsdOptions,
  host: LocationHost,
): (state: ReceiverState, all: Receivers) => void {
  let reported: string | undefined;
  return (state, all) => {
    const now_ms = performance.now();
    const device = all.best(now_ms)?.device ?? options.device ?? null;
    const sentence = sentenceOf(state, all.other(now_ms));
    const now = `${state} ${device} ${sentence}`;
    if (reported === now) return;
    const isSameState = reported?.startsWith(`${state} `) === true;
    reported = now;
    const shown = { receiver: state, ...(device ? { device } : {}) };
    host.reportStatus(state === 'fix' ? shown : { ...shown, reason: sentence });
    if (isSameState || state === 'waiting') return;
    if (state === 'mute' || state === 'frozen') host.log.warn(shown, sentence);
    else host.log.info(shown, sentence);
  };
}

/** gpsd's own buffer for one report has 10240 bytes. */
export const line_chars_max = 65_536;
/** A receiver has some 20 lines a second, and all of a minute may come at once. 65,000 empty ones in a packet took 0.3 s. */
export const lines_per_s_max = 5_000;
const greeting_timeout_ms = 5_000;
const watch = '?WATCH={"enable":true,"json":true};\n';

interface Address {
  readonly host: string;
  readonly port: number;
}

/**
 * Calls `onLine` for every line until `signal` aborts, then resolves. Rejects with `DeviceUnreachable` when the connection is
 * refused, nothing arrives within 5 s of connecting, the first line is none of gpsd, a line is too long, or gpsd closes the
 * connection.
 */
export async function watchGpsd(
  { host, port }: Address,
  signal: AbortSignal,
  onLine: (line: string) => void,
): Promise<void> {
  if (signal.aborted) return;
  const socket = connect({ host, port });
  const utf8 = new StringDecoder('utf8');
  let rest = '';
  let hasReceived = false;
  let isGreeted = false;
  let [second_ms, lines_in_second] = [0, 0];
  let reason: string = texts.connection_closed;
  const fail = (why: string): void => {
    reason = why;
    socket.destroy();
  };
  addAbortSignal(signal, socket);
  socket.setKeepAlive(true, 10_000);
  socket.once('connect', () => socket.write(watch));
  socket.on('error', (error) => {
    reason = connectionFault(error, texts.gpsd_refused) ?? error.message;
  });
  socket.on('data', (chunk: Buffer) => {
    hasReceived = true;
    const lines = (rest + utf8.write(chunk)).split('\n');
    rest = lines.pop() ?? '';
    const now_ms = performance.now();
    if (now_ms - second_ms >= 1_000) [second_ms, lines_in_second] = [now_ms, 0];
    lines_in_second += lines.length;
    if (rest.length > line_chars_max) fail(texts.line_too_long);
    else if (lines_in_second > lines_per_s_max) fail(texts.too_many_lines(lines_per_s_max));
    else {
      for (const line of lines) {
        isGreeted ||= isReport(line);
        if (isGreeted) onLine(line);
        else fail(texts.not_gpsd);
      }
    }
  });
  const cancel = deadline(greeting_timeout_ms, () => {
    if (!hasReceived) fail(texts.no_greeting);
  });
  await new Promise<void>((resolve) => {
    socket.once('close', () => resolve());
  });
  cancel();
  if (!signal.aborted) throw new DeviceUnreachable(texts.gpsd_failed(host, port, reason));
}

// Sentences of the location driver that people read; tests refer to them by name.

export const texts = {
  states: {
    fix: 'receiver got a fix',
    'no fix': 'receiver has no fix; it needs a view of the sky',
    frozen:
      'receiver repeats the same fix with the same time; restart it: unplug it, or switch its power off and on',
    mute: 'receiver sends nothing; check its cable and its device in gpsd, and restart gpsd if it was plugged in again',
    waiting: 'waiting for the receiver',
  } satisfies Readonly<Record<ReceiverState, string>>,
  other_device: (device: string) =>
    `gpsd reads ${device} and not this one; name that in gpsd.device, or leave gpsd.device out`,
  gpsd_refused: 'check that gpsd runs, and its address and port',
  gpsd_failed: (host: string, port: number, reason: string) => `gpsd at ${host}:${port}: ${reason}`,
  connection_closed: 'closed the connection',
  too_many_lines: (max: number) => `sends more than ${max} lines a second; check that gpsd runs on this port`,
  line_too_long: 'line exceeds the limit; check that gpsd runs on this port',
  no_greeting: 'sends no greeting; check that gpsd runs on this port',
  not_gpsd: 'answers with something that is not gpsd; check its address and port',
} as const;
