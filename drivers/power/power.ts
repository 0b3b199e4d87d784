/** The kit's battery, from the kernel or from Network UPS Tools. */
import { noFeeds } from '../../src/contract/feeds.ts';
import { defineDriver, type DriverHost, type DriverLog } from '../../src/toolkit/driver/driver.ts';
import { deadline, sleep } from '../../src/platform/time.ts';
import { type PowerOptions, powerOptions } from './options.ts';
import { keep_ms, numberOf, plausiblePercent, type Reading, unknown_reading } from './reading.ts';
import { SysfsBatteries } from './sysfs.ts';
import { texts } from './texts.ts';
import { readSecretFile } from '../../src/toolkit/device/secret-file.ts';
import { DeviceRejected, DeviceUnreachable } from '../../src/platform/errors.ts';
import { connect, type Socket } from 'node:net';
import { addAbortSignal } from 'node:stream';
import { connectionFault } from '../../src/toolkit/device/connection-fault.ts';

const answer_timeout_ms = 5_000;
/** A UPS with all its outlets has some 300 variables of 80 characters. */
const answer_chars_max = 262_144;
const rows_max = 4_096;

/** upsd answered `ERR code`. */
class UpsdError extends Error {
  override readonly name = 'UpsdError';
  readonly code: string;

  constructor(code: string) {
    super(`upsd: ERR ${code}`);
    this.code = code;
  }
}

/** The connection has ended. */
class ConnectionLost extends DeviceUnreachable {}

interface NutSession {
  /** Sends a line; resolves when it is accepted. Rejects with `UpsdError` or `DeviceUnreachable`. */
  readonly order: (line: string) => Promise<void>;
  /** Sends `LIST what`; resolves with the words of each line between BEGIN and END. */
  readonly list: (what: string) => Promise<readonly (readonly string[])[]>;
  readonly close: () => void;
}

interface Address {
  readonly host: string;
  readonly port: number;
}

/** Connects. The session ends with `signal`; rejects with `DeviceUnreachable` when the connection is refused. */
async function openNut({ host, port }: Address, signal: AbortSignal): Promise<NutSession> {
  const socket = connect({ host, port });
  const peer = `upsd at ${host}:${port}`;
  const lines = new Lines(socket, peer);
  addAbortSignal(signal, socket);
  await lines.take(async (next) => next.connected());
  return {
    order: async (line) =>
      lines.take(async (next) => {
        socket.write(`${line}\n`);
        expectUpsd(await next.words(), 'OK', peer);
      }),
    list: async (what) =>
      lines.take(async (next) => {
        socket.write(`LIST ${what}\n`);
        const rows: (readonly string[])[] = [];
        expectUpsd(await next.words(), 'BEGIN', peer);
        for (;;) {
          const row = await next.words();
          if (row[0] === 'END') return rows;
          rows.push(row);
          if (rows.length > rows_max) throw new DeviceUnreachable(texts.endless_list(what));
        }
      }),
    close: () => void socket.destroy(),
  };
}

function expectUpsd([first]: readonly string[], word: 'BEGIN' | 'OK', peer: string): void {
  if (first !== word) throw new DeviceUnreachable(`${peer}: ${texts.not_upsd}`);
}

interface Next {
  connected(): Promise<void>;
  words(): Promise<readonly string[]>;
}

/** Splits the received text into lines and returns them to the exchange that is open. */
class Lines {
  readonly #socket: Socket;
  readonly #peer: string;
  readonly #gone: Promise<never>;
  #text = '';
  #wake: () => void = () => undefined;

  constructor(socket: Socket, peer: string) {
    this.#socket = socket;
    this.#peer = peer;
    let reason: string = texts.connection_closed;
    socket.setEncoding('utf8');
    socket.on('data', (chunk: string) => {
      this.#text += chunk;
      if (this.#text.length > answer_chars_max) socket.destroy(new Error(texts.endless_answer));
      this.#wake();
    });
    socket.on('error', (error) => {
      reason = connectionFault(error, texts.upsd_refused) ?? error.message;
    });
    this.#gone = new Promise((_, reject) => {
      socket.once('close', () => reject(new ConnectionLost(`${peer}: ${reason}`)));
    });
    this.#gone.catch(() => undefined);
  }

  /** Runs one exchange under a deadline. After a failure half-way the connection is unusable and is closed. */
  async take<T>(exchange: (next: Next) => Promise<T>): Promise<T> {
    const late = Promise.withResolvers<never>();
    const cancel = deadline(answer_timeout_ms, () =>
      late.reject(new DeviceUnreachable(`${this.#peer}: ${texts.answer_timeout(answer_timeout_ms / 1_000)}`)),
    );
    const next: Next = {
      connected: async () =>
        new Promise((resolve) => {
          this.#socket.once('connect', () => resolve());
        }),
      words: async () => this.#words(),
    };
    try {
      return await Promise.race([exchange(next), this.#gone, late.promise]);
    } catch (error) {
      if (!(error instanceof UpsdError)) this.#socket.destroy();
      throw error;
    } finally {
      cancel();
    }
  }

  async #words(): Promise<readonly string[]> {
    let end = this.#text.indexOf('\n');
    while (end < 0) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
      end = this.#text.indexOf('\n');
    }
    const words = wordsOf(this.#text.slice(0, end));
    this.#text = this.#text.slice(end + 1);
    if (words[0] === 'ERR') throw new UpsdError(words[1] ?? 'UNKNOWN');
    return words;
  }
}

/** `VAR`, the UPS, the name and the value; 131,000 words in one line took 0.2 s. */
const words_max = 4;

/** The first words of a line. A quoted word may hold spaces; within quotes a backslash escapes the next character. */
export function wordsOf(line: string): readonly string[] {
  const words: string[] = [];
  for (const [, quoted, bare] of line.matchAll(/"((?:[^"\\]|\\.)*)"|(\S+)/gu)) {
    words.push(bare ?? (quoted ?? '').replaceAll(/\\(.)/gu, '$1'));
    if (words.length === words_max) break;
  }
  return words;
}

/** Limit of a status or an alarm. */
const text_chars_max = 500;

/** Variables of a UPS by name: `ups.status`, `battery.charge`. */
type Variables = ReadonlyMap<string, string>;

/** Of the batteries of one UPS in series, and for a month: beyond are sentinels, such as 65535 V and 2^32 - 1 s. */
const voltage_v_max = 1_000;
const runtime_s_max = 30 * 86_400;

function within(value: number | null, max: number): number | null {
  return value !== null && value >= 0 && value <= max ? value : null;
}

/** Reads the variables. A value that the UPS does not report is null; nothing is estimated from the voltage. */
export function readingOf(variables: Variables): Reading {
  const state = variables.get('ups.status')?.trim().slice(0, text_chars_max) ?? null;
  const tokens = state?.split(/\s+/u) ?? [];
  if (tokens.includes('WAIT')) {
    return { ...unknown_reading, reason: texts.ups_starting };
  }
  const charge = numberOf(variables.get('battery.charge'));
  const runtime_s = numberOf(variables.get('battery.runtime'));
  const percent = charge === null ? null : plausiblePercent(charge);
  return {
    percent,
    charging: chargingOf(tokens, variables.get('battery.charger.status'), percent),
    voltage_v: within(numberOf(variables.get('battery.voltage')), voltage_v_max),
    runtime_s: within(runtime_s, runtime_s_max),
    reports_low: tokens.includes('LB'),
    state,
    reason:
      percent !== null ? null : charge === null ? texts.charge_unknown : texts.charge_impossible(charge),
    alarm: alarmOf(tokens, variables.get('ups.alarm')?.trim() ?? ''),
  };
}

function alarmOf(tokens: readonly string[], text: string): string | null {
  const shutdown = tokens.includes('FSD') ? [texts.forced_shutdown] : [];
  const all = [...shutdown, ...(text === '' ? [] : [text])].join('; ');
  if (all !== '') return all.slice(0, text_chars_max);
  return tokens.includes('ALARM') ? texts.alarm_unnamed : null;
}

/** On the mains without CHRG a full battery is not charging; below that it is unknown, since many drivers do not report it. */
function chargingOf(
  tokens: readonly string[],
  charger: string | undefined,
  percent: number | null,
): boolean | null {
  if (charger !== undefined) return charger.trim() === 'charging';
  if (tokens.includes('DISCHRG') || tokens.includes('OB')) return false;
  if (tokens.includes('CHRG')) return true;
  return tokens.includes('OL') && percent === 100 ? false : null;
}

const names_shown_max = 8;
const name_chars_max = 32;

type NutOptions = NonNullable<PowerOptions['nut']>;

/** Errors that another attempt cannot resolve. */
const refusals: ReadonlySet<string> = new Set([
  'ACCESS-DENIED',
  'INVALID-PASSWORD',
  'INVALID-USERNAME',
  'PASSWORD-REQUIRED',
  'USERNAME-REQUIRED',
]);
/** Errors of a upsd that runs and has no data. */
const no_data: ReadonlyMap<string, string> = new Map([
  ['DATA-STALE', texts.data_stale],
  ['DRIVER-NOT-CONNECTED', texts.driver_not_connected],
]);

interface NutSource {
  /** Reads the UPS. Rejects when upsd is lost (`DeviceUnreachable`) or refuses (`DeviceRejected`). */
  readonly read: () => Promise<Reading>;
  readonly close: () => void;
}

/** Connects, logs in where configured, and finds the UPS. */
async function openUps(options: NutOptions, signal: AbortSignal): Promise<NutSource> {
  const session = await openNut(options, signal);
  const named = `upsd at ${options.host}:${options.port}`;
  try {
    // LOGIN is never sent: at a shutdown a UPS waits for every client that is logged in.
    await authenticate(session, options, named);
    const ups = await findUps(session, options, named);
    return { read: async () => readUps(session, ups, named), close: session.close };
  } catch (error) {
    session.close();
    throw error;
  }
}

async function authenticate(session: NutSession, options: NutOptions, named: string): Promise<void> {
  if (options.username === undefined || options.password_file === undefined) return;
  const { password_file } = options;
  const password = await readSecretFile('nut.password_file', password_file);
  const escaped = password.trim().replaceAll(/["\\]/gu, String.raw`\$&`);
  if (/[\r\n]/u.test(escaped)) throw new DeviceRejected(texts.password_lines(password_file));
  await translated(named, async () => session.order(`USERNAME ${options.username}`));
  await translated(named, async () => session.order(`PASSWORD "${escaped}"`));
}

async function findUps(session: NutSession, options: NutOptions, named: string): Promise<string> {
  const rows = await translated(named, async () => session.list('UPS'));
  const names = rows.map(([, name]) => name).filter((name) => name !== undefined);
  if (options.ups !== undefined && names.includes(options.ups)) return options.ups;
  const [only] = names;
  if (options.ups === undefined && only !== undefined && names.length === 1) return only;
  const known = names.length === 0 ? texts.ups_none : texts.ups_known(shown(names));
  const fault = options.ups === undefined ? texts.ups_unnamed : texts.ups_unknown(options.ups);
  // No rejection: upsd lists the UPS once its own configuration has it.
  throw new DeviceUnreachable(`${named}: ${fault}; ${known}; set options.nut.ups`);
}

/** Of a list that upsd sends: the sentence that ends with the remedy is cut when it is long. */
function shown(names: readonly string[]): string {
  const some = names.slice(0, names_shown_max).map((name) => name.slice(0, name_chars_max));
  const more = names.length - some.length;
  return [...some, ...(more > 0 ? [texts.more(more)] : [])].join(', ');
}

async function readUps(session: NutSession, ups: string, named: string): Promise<Reading> {
  try {
    const rows = await session.list(`VAR ${ups}`);
    return readingOf(new Map(rows.map(([, , name, value]) => [name ?? '', value ?? ''])));
  } catch (error) {
    const reason = error instanceof UpsdError ? no_data.get(error.code) : undefined;
    if (reason !== undefined) return { ...unknown_reading, reason };
    throw translate(error, named);
  }
}

async function translated<T>(named: string, work: () => Promise<T>): Promise<T> {
  return work().catch((error: unknown) => {
    throw translate(error, named);
  });
}

/** The error class by which the supervisor decides whether to try again. */
function translate(error: unknown, named: string): unknown {
  if (!(error instanceof UpsdError)) return error;
  const sentence = `${named}: ${error.code.slice(0, name_chars_max)}`;
  return refusals.has(error.code)
    ? new DeviceRejected(`${sentence}; check options.nut.username and the password`, { cause: error })
    : new DeviceUnreachable(sentence, { cause: error });
}

export const power = defineDriver({
  name: 'power',
  feeds: noFeeds,
  options: powerOptions,
  run: async (options, host) => (options.nut ? runNut(options, options.nut, host) : runSysfs(options, host)),
});

type PowerHost = DriverHost<typeof noFeeds>;

async function runSysfs(options: PowerOptions, host: PowerHost): Promise<void> {
  const batteries = new SysfsBatteries(options.roots.sys);
  await poll(options, host, async () => batteries.read(performance.now(), host.signal));
}

async function runNut(
  options: PowerOptions,
  nut: NonNullable<PowerOptions['nut']>,
  host: PowerHost,
): Promise<void> {
  let source: NutSource | undefined;
  const open = async (): Promise<NutSource> => {
    source = await openUps(nut, host.signal);
    return source;
  };
  const read = async (): Promise<Reading> => {
    try {
      return await (source ?? (await open())).read();
    } catch (error) {
      // upsd disconnects a client that is silent for a minute, and all when it restarts: it is lost if it cannot be reached again.
      if (!(error instanceof ConnectionLost) || host.signal.aborted) throw error;
      return (await open()).read();
    }
  };
  let last: { readonly reading: Reading; readonly read_ms: number } | undefined;
  const readOrKeep = async (): Promise<Reading> => {
    const reading = await read();
    const now_ms = performance.now();
    if (hasData(reading)) last = { reading, read_ms: now_ms };
    return last && now_ms - last.read_ms < keep_ms ? { ...last.reading, reason: reading.reason } : reading;
  };
  try {
    await poll(options, host, readOrKeep);
  } catch (error) {
    if (!host.signal.aborted) throw error;
  } finally {
    source?.close();
    // What a UPS reported is no fact about a upsd that is lost.
    host.reportStatus({});
  }
}

async function poll(options: PowerOptions, host: PowerHost, read: () => Promise<Reading>): Promise<void> {
  const warn = createWarnings(host.log, options);
  const steady = createSteady();
  while (!host.signal.aborted) {
    const reading = steady(await read());
    if (host.signal.aborted) return;
    report(host, reading);
    warn(reading);
    await sleep(options.interval_s * 1_000, host.signal);
  }
}

/** A charge moves less from one reading to the next, unless the battery was changed or the gauge is wrong for once. */
const step_max_pct = 20;

/** Returns a function that keeps the last charge where one reading jumps, until the next one has jumped too. */
export function createSteady(): (reading: Reading) => Reading {
  let last: number | null = null;
  let isDoubted = false;
  return (reading) => {
    const { percent, reports_low } = reading;
    if (percent === null) return reading;
    const isStep = last !== null && Math.abs(percent - last) > step_max_pct;
    isDoubted = isStep && !isDoubted && !reports_low;
    if (isDoubted) return { ...reading, percent: last };
    last = percent;
    return reading;
  };
}

function report(host: PowerHost, reading: Reading): void {
  host.reportKit({ battery: reading.percent, battery_charging: reading.charging });
  const facts = {
    battery_pct: reading.percent,
    charging: reading.charging,
    state: reading.state,
    voltage_v: reading.voltage_v,
    runtime_s: reading.runtime_s,
    alarm: reading.alarm,
    reason: reading.reason,
  };
  host.reportStatus(Object.fromEntries(Object.entries(facts).filter(([, value]) => value !== null)));
}

/** Keeps a battery at the limit from logging again and again. */
const hysteresis_pct = 5;

/** Returns a function to call with each reading. */
export function createWarnings(
  log: DriverLog,
  { low_pct, interval_s, nut }: Pick<PowerOptions, 'low_pct' | 'interval_s'> & { readonly nut?: unknown },
): (reading: Reading) => void {
  let low = false;
  let contradictions = 0;
  let alarm: string | null = null;
  let isKnown = true;
  return (reading) => {
    const now = isLow(reading, low, low_pct);
    contradictions = contradicts(reading, low_pct) ? contradictions + 1 : 0;
    const facts = { battery_pct: reading.percent, runtime_s: reading.runtime_s };
    if (now && !low) log.warn(facts, texts.battery_low);
    if (!now && low) log.info(facts, texts.battery_recovered);
    low = now;
    if (contradictions === Math.ceil(contradiction_s / interval_s))
      log.warn({ ...facts, state: reading.state }, texts.battery_contradicts);
    if (nut) isKnown = logData(log, reading, isKnown);
    // Without data it is unknown whether the alarm has ended.
    if (reading.state === null || reading.alarm === alarm) return;
    if (reading.alarm !== null) log.warn({ alarm: reading.alarm }, texts.ups_alarm);
    else log.info({ alarm }, texts.ups_alarm_cleared);
    alarm = reading.alarm;
  };
}

/** From here on a charge contradicts the report of a low battery. */
const high_pct = 50;
/** How long until that is worth a line: some UPSs report it for a second (networkupstools/nut#2347), or at each power failure (#1942, #3087). */
const contradiction_s = 60;

function contradicts({ percent, reports_low }: Reading, low_pct: number): boolean {
  return reports_low && percent !== null && percent > Math.max(high_pct, low_pct + hysteresis_pct);
}

/** Whether the UPS reports anything. */
function hasData({ state, reason }: Reading): boolean {
  return state !== null || reason === null;
}

/** Returns whether the UPS reports anything. */
function logData(log: DriverLog, reading: Reading, before: boolean): boolean {
  const { state, reason } = reading;
  const isKnown = hasData(reading);
  if (before && !isKnown) log.warn({ reason }, texts.ups_data_lost);
  if (!before && isKnown) log.info({ state }, texts.ups_data_back);
  return isKnown;
}

/** An unknown charge keeps the state before. */
function isLow(reading: Reading, before: boolean, low_pct: number): boolean {
  const { percent, charging, reports_low } = reading;
  if (reports_low && !contradicts(reading, low_pct)) return true;
  if (charging === true) return false;
  if (percent === null) return before;
  return percent <= (before ? low_pct + hysteresis_pct : low_pct);
}
