/** A radio over ubus: its identity, its reading at each poll, and its commands. */
import type { DriverLog } from '../../src/toolkit/driver/driver.ts';
import { DeviceUnreachable } from '../../src/platform/errors.ts';
import { commandsFor } from './commands/commands.ts';
import { type Found, identifyRadio } from './ubus/identify.ts';
import { fileText, healthOf, infoOf, linkOf, stationsOf, surveyOf, ticksOf } from './ubus/iwinfo.ts';
import { Led } from './commands/led.ts';
import type { Limits } from './limits.ts';
import type { UbusRadio, VendorradioOptions } from './options.ts';
import {
  dbmOf,
  type LinkReading,
  type PositionReading,
  type Reading,
  type Station,
  uncounted,
  unknown_station,
} from './reading.ts';
import type { Known, RadioSource, SessionHooks } from './source.ts';
import type { Ubus } from './ubus/ubus.ts';
import { texts } from './texts.ts';
import { type Answer, answerWords, type Call, ubus_status } from './ubus/ubus-wire.ts';
import { z } from 'zod';
import { answer_limits, readJson } from '../../src/contract/bounded-json.ts';
import { byteCounter, counter, figure, goodRows, macText } from './ubus/loose.ts';

/** Paths in the firmware. */
const meshrider_files = {
  linkstate: '/tmp/linkstate_current.json',
  sensors: '/tmp/run/pancake.txt',
  latitude: '/var/run/gps/latitude',
  longitude: '/var/run/gps/longitude',
} as const;

const stationRow = z.looseObject({
  mac: macText,
  rssi: figure,
  rssi_ant: z.array(figure).nullable().catch(null),
  mcs: counter,
  pl_ratio: figure,
  tx_bytes: byteCounter,
  tx_retries: counter,
  tx_failed: counter,
  inactive: counter,
});
const meshRow = z.looseObject({
  orig_address: macText,
  tq: figure,
  hop_status: z.enum(['direct', 'relay']).nullable().catch(null),
  last_seen_msecs: counter,
});
const linkstate = z.looseObject({
  oper_chan: figure,
  oper_freq: figure,
  chan_width: figure,
  noise: figure,
  activity: figure,
  sta_stats: z.unknown().optional(),
  mesh_stats: z.unknown().optional(),
});

interface LinkState {
  readonly channel: number | null;
  readonly freq_mhz: number | null;
  readonly bandwidth_mhz: number | null;
  readonly noise: number | null;
  readonly busy_pct: number | null;
  readonly stations: readonly Station[];
}

/** Undefined for an incomplete file: it may be written while it is read. */
export function linkStateOf(file: string): LinkState | undefined {
  const json = jsonIn(file);
  const wrapped = z.looseObject({ linkstate: z.unknown() }).safeParse(json);
  const read = linkstate.safeParse(wrapped.data?.linkstate ?? json).data;
  if (!read || (read.oper_freq === null && !Array.isArray(read.sta_stats))) return undefined;
  const heard = goodRows(stationRow, read.sta_stats);
  const isWhole = !Array.isArray(read.sta_stats) || heard.length === read.sta_stats.length;
  const stations = joined(heard, goodRows(meshRow, read.mesh_stats));
  return {
    channel: read.oper_chan !== null && Number.isInteger(read.oper_chan) ? read.oper_chan : null,
    freq_mhz: positive(read.oper_freq),
    bandwidth_mhz: positive(read.chan_width),
    noise: dbmOf(read.noise),
    busy_pct: share(read.activity),
    stations: isWhole ? stations : stations.map(uncounted),
  };
}

/** Neighbours of the radio and nodes of the mesh, joined by MAC address; a node may be in the mesh list only. */
function joined(
  heard: readonly z.output<typeof stationRow>[],
  nodes: readonly z.output<typeof meshRow>[],
): readonly Station[] {
  const stations = new Map<string, Station>();
  for (const row of heard) {
    stations.set(row.mac, {
      ...unknown_station,
      mac: row.mac,
      rssi: dbmOf(row.rssi),
      rssi_ant: row.rssi_ant?.map(dbmOf) ?? null,
      mcs: row.mcs,
      tx_retries: row.tx_retries,
      tx_failed: row.tx_failed,
      loss_pct: share(row.pl_ratio),
      inactive_ms: row.inactive,
      hops: 'direct',
      tx_bytes: row.tx_bytes,
    });
  }
  for (const { orig_address: mac, tq, hop_status, last_seen_msecs } of nodes) {
    const known = stations.get(mac) ?? { ...unknown_station, mac, inactive_ms: last_seen_msecs };
    const tq_pct = tq === null || tq < 0 ? null : share((tq / 255) * 100);
    stations.set(mac, { ...known, tq_pct, hops: hop_status ?? known.hops });
  }
  return [...stations.values()];
}

/** Far above the range of any converter of a radio. */
const sensor_steps_max = 1e6;

/** Sensors of the radio; the voltage is written as a reading of a converter of 20.2 steps for each volt. */
export function sensorsOf(file: string) {
  const sensors = z.looseObject({ Temperature: figure, 'VIN VOLTAGE': figure }).safeParse(jsonIn(file)).data;
  const raw = sensors?.['VIN VOLTAGE'] ?? null;
  return {
    temperature_c: sensors?.Temperature ?? null,
    voltage: raw !== null && raw > 0 && raw <= sensor_steps_max ? Math.round((raw / 20.2) * 100) / 100 : null,
  };
}

/** Null without a position; a receiver without one writes 0, 0. */
export function positionOf(
  latitude: string | undefined,
  longitude: string | undefined,
): PositionReading | null {
  const lat = figure.parse(latitude?.trim());
  const lon = figure.parse(longitude?.trim());
  if (lat === null || lon === null || (lat === 0 && lon === 0)) return null;
  return Math.abs(lat) <= 90 && Math.abs(lon) <= 180 ? { lat, lon, satellites_visible: null } : null;
}

function jsonIn(file: string): unknown {
  try {
    return readJson(file, answer_limits);
  } catch {
    return undefined;
  }
}

function positive(value: number | null): number | null {
  return value !== null && value > 0 ? value : null;
}

function share(pct: number | null): number | null {
  return pct !== null && pct >= 0 && pct <= 100 ? Math.round(pct * 10) / 10 : null;
}

interface UbusRadioParts {
  readonly ubus: Ubus;
  readonly close: () => void;
  readonly radio: UbusRadio;
  readonly options: VendorradioOptions;
  readonly limits: Limits;
  readonly log: DriverLog;
  readonly hooks: SessionHooks;
}

/** Sessions in a row; a restart of the radio or of its rpcd ends one. */
const contested_min = 5;

export function ubusSource(parts: UbusRadioParts): RadioSource {
  const { ubus, radio, options, limits, log } = parts;
  const led = new Led({ ubus, name: radio.identify_led });
  let found: Found | undefined;
  let isContested = false;
  let asking = new Asking({ ubus, log, radio: radio.name, limits });
  return {
    poll_ms: options.poll_s * 1_000,
    async connect(): Promise<Known> {
      // Firmware and rights may have changed: failed calls are sent again.
      asking = new Asking({ ubus, log, radio: radio.name, limits });
      found = await identifyRadio(ubus, radio, limits);
      return { identity: found.identity, commands: await commandsFor({ ...parts, found, led }) };
    },
    async poll() {
      if (!found) throw new DeviceUnreachable(texts.not_identified);
      const questions = questionsFor(found, ubus);
      const bodies = await asking.ask(questions);
      if (ubus.contested >= contested_min && !isContested) log.warn({ radio: radio.name }, texts.contested);
      isContested = ubus.contested >= contested_min;
      return { ...readingOf(found, bodies), gap: gapIn(questions, asking) };
    },
    farewell: async () => led.restore(),
    close: parts.close,
  };
}

/** Questions that the login permits. */
function questionsFor({ device, profile }: Found, { grants }: Ubus): Readonly<Record<string, Question>> {
  const questions: Record<string, Question> = {};
  const ask = (key: string, question: Question): void => {
    const path = question.args?.['path'];
    const isGranted = typeof path === 'string' ? grants?.mayFile(path, 'read') : grants?.mayCall(question);
    if (isGranted) questions[key] = question;
  };
  const iwinfo = (method: string, without: string): Question => {
    return { object: 'iwinfo', method, args: { device }, without };
  };
  const file = (path: string, without: string): Question => {
    return { object: 'file', method: 'read', args: { path }, without };
  };
  // Sent even without the right: it is required for every reading.
  questions['info'] = iwinfo('info', texts.without_info);
  ask('stations', iwinfo('assoclist', texts.without_peers));
  ask('survey', iwinfo('survey', texts.without_survey));
  ask('system', {
    object: 'system',
    method: 'info',
    without: texts.without_uptime,
  });
  ask('stat', file('/proc/stat', texts.without_load));
  if (profile === 'meshrider') {
    ask('linkstate', file(meshrider_files.linkstate, texts.without_link_log));
    ask('sensors', file(meshrider_files.sensors, texts.without_sensors));
    ask('latitude', file(meshrider_files.latitude, texts.without_position));
    ask('longitude', file(meshrider_files.longitude, texts.without_position));
  }
  return questions;
}

/** Of what makes the state of a radio: its peers, and the radio itself. */
function gapIn(questions: Readonly<Record<string, Question>>, asking: Asking): string | undefined {
  const gaps = Object.entries({ stations: texts.without_peers, system: texts.without_uptime }).flatMap(
    ([key, without]) => {
      const refusal = key in questions ? asking.refusalOf(key) : { words: texts.not_granted, isRight: true };
      return refusal === undefined ? [] : [{ ...refusal, without }];
    },
  );
  if (gaps.length === 0) return undefined;
  const what = gaps.map(({ without, words }) => `${without} (${words})`).join(', ');
  return gaps.some(({ isRight }) => isRight) ? `${what}; ${texts.gap_remedy}` : what;
}

function readingOf({ profile }: Found, bodies: ReadonlyMap<string, unknown>): Reading {
  const info = infoOf(bodies.get('info'));
  if (!bodies.has('info') || !info) throw new DeviceUnreachable(texts.without_wifi_state);
  const basic = linkOf(info);
  const { noise, ...airtime } = surveyOf(bodies.get('survey'), basic.freq_mhz);
  const link: LinkReading = { ...basic, ...airtime, noise: basic.noise ?? noise };
  const text = (key: string): string | undefined => fileText(bodies.get(key));
  const state = linkStateOf(text('linkstate') ?? '');
  const sensors = sensorsOf(text('sensors') ?? '');
  const listed = stationsOf(bodies.get('stations'));
  return {
    at_mono_ms: performance.now(),
    source: state ? 'linkstate' : 'iwinfo',
    protocol: protocolOf(profile, info.mode, hasPaths(state)),
    link: state ? linkWith(state, link) : link,
    stations: state ? merged(state.stations, listed) : listed,
    health: { ...healthOf(bodies.get('system')), cpu_ticks: ticksOf(text('stat')), ...sensors },
    position: positionOf(text('latitude'), text('longitude')),
  };
}

function hasPaths(state: LinkState | undefined): boolean {
  return state?.stations.some(({ tq_pct }) => tq_pct !== null) ?? false;
}

function linkWith(state: LinkState, link: LinkReading): LinkReading {
  return {
    ...link,
    channel: state.channel ?? link.channel,
    freq_mhz: state.freq_mhz ?? link.freq_mhz,
    bandwidth_mhz: state.bandwidth_mhz ?? link.bandwidth_mhz,
    noise: state.noise ?? link.noise,
    busy_pct: state.busy_pct,
  };
}

/** Mesh Rider routes with batman-adv, whose version is in none of the replies; 802.11s is detected by the mode. */
function protocolOf(profile: Found['profile'], mode: string | null, hasTq: boolean): Reading['protocol'] {
  if (hasTq) return 'batman_iv';
  if (mode === 'Mesh Point' && profile === 'openwrt') return '80211s';
  if (mode === 'Master' || mode === 'Client') return profile === 'openwrt' ? 'none' : null;
  return null;
}

/** Merges the link state with the facts of iwinfo: rates, noise, age of the connection. */
function merged(
  states: NonNullable<Reading['stations']>,
  listed: Reading['stations'],
): NonNullable<Reading['stations']> {
  const byMac = new Map(listed?.map((station) => [station.mac, station]));
  return states.map((station) => {
    const more = byMac.get(station.mac);
    if (!more) return station;
    const known = Object.entries(station).filter(([, value]) => value !== null);
    return { ...more, ...Object.fromEntries(known) };
  });
}

// Sends the calls of a poll in one request, and skips for a while the ones that it refuses or lacks.

export interface Question extends Call {
  /** Consequence and remedy without it, for the log. */
  readonly without: string;
}

interface AskingParts {
  readonly ubus: Pick<Ubus, 'ask'>;
  readonly log: DriverLog;
  readonly radio: string;
  readonly limits: Pick<Limits, 'lacking_ms'>;
}

export class Asking {
  readonly #parts: AskingParts;
  /** By key of the question: the failed answer, and until when the call is skipped. */
  readonly #lacking = new Map<
    string,
    { readonly words: string; readonly until_ms: number; readonly answer: Answer }
  >();

  constructor(parts: AskingParts) {
    this.#parts = parts;
  }

  /** The answer of a radio that has this and does not report it. */
  refusalOf(key: string): { readonly words: string; readonly isRight: boolean } | undefined {
    const { words, answer } = this.#lacking.get(key) ?? {};
    if (words === undefined || answer === undefined || isAbsent(answer)) return undefined;
    return { words, isRight: isRefused(answer) };
  }

  /** Bodies of the answered questions, by key. Rejects when the radio does not answer at all. */
  async ask<K extends string>(
    questions: Readonly<Partial<Record<K, Question>>>,
  ): Promise<ReadonlyMap<string, unknown>> {
    const now_ms = performance.now();
    const wanted = Object.entries<Question | undefined>(questions).flatMap(([key, question]) =>
      question && now_ms >= (this.#lacking.get(key)?.until_ms ?? 0) ? [{ key, question }] : [],
    );
    const answers = await this.#parts.ubus.ask(wanted.map(({ question }) => question));
    const bodies = new Map<string, unknown>();
    for (const [index, { key, question }] of wanted.entries()) {
      const answer = answers[index];
      if (answer?.kind === 'ok') {
        bodies.set(key, answer.body ?? {});
        this.#found(key, question);
      } else if (answer) {
        this.#lost(key, question, answer);
      }
    }
    return bodies;
  }

  #found(key: string, { object, method }: Question): void {
    if (!this.#lacking.delete(key)) return;
    this.#parts.log.info({ radio: this.#parts.radio, call: `${object} ${method}` }, texts.call_restored);
  }

  /** Logs each call and answer once, for any duration. */
  #lost(key: string, { object, method, without }: Question, answer: Answer): void {
    const { log, radio, limits } = this.#parts;
    const words = answerWords(answer);
    if (this.#lacking.get(key)?.words !== words) {
      log.warn({ radio, call: `${object} ${method}`, answer: words }, without);
    }
    this.#lacking.set(key, {
      words,
      answer,
      until_ms: isLasting(answer) ? performance.now() + limits.lacking_ms : 0,
    });
  }
}

/** "No data", timeouts and internal errors of the radio are temporary. */
const lasting_codes: ReadonlySet<number> = new Set([
  ubus_status.invalid_command,
  ubus_status.invalid_argument,
  ubus_status.method_not_found,
  ubus_status.not_found,
  ubus_status.permission_denied,
  ubus_status.not_supported,
]);

/** The radio does not have it. */
function isAbsent(answer: Answer): boolean {
  return isLasting(answer) && !isRefused(answer);
}

function isRefused(answer: Answer): boolean {
  return (
    answer.kind === 'denied' || (answer.kind === 'status' && answer.code === ubus_status.permission_denied)
  );
}

function isLasting(answer: Answer): boolean {
  if (answer.kind === 'status') return lasting_codes.has(answer.code);
  return answer.kind === 'denied' || answer.kind === 'absent';
}
