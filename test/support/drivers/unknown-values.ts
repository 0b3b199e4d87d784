/**
 * The table of the values that mean "unknown", by field of a feed, message and autopilot: `test/fixtures/mavlink-unknown-values.tsv`. Written by
 * `node test/support/drivers/unknown-values.ts XML...` from the message definitions of MAVLink (common.xml, standard.xml, ardupilotmega.xml;
 * attribute `invalid`), the habits of autopilots below, and what the driver publishes of each field.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Flight } from '../../../drivers/mavlink/sim/flight.ts';
import { SimMissions } from '../../../drivers/mavlink/sim/missions.ts';
import { type SimState, telemetry } from '../../../drivers/mavlink/sim/telemetry.ts';
import { LatestMessages } from '../../../drivers/mavlink/reports/latest-messages.ts';
import { radioFeed } from '../../../drivers/mavlink/vehicles/feeds.ts';
import { Publishing } from '../../../drivers/mavlink/vehicles/publishing.ts';
import { definitionOf, type MessageName } from '../../../drivers/mavlink/wire/definitions.ts';
import { decode, encode } from '../../../drivers/mavlink/wire/messages.ts';
import { parseDatagram } from '../../../drivers/mavlink/wire/framer.ts';
import type { Decoded } from '../../../drivers/mavlink/wire/messages.ts';

export type By = 'ardupilot' | 'px4';
type Values = Readonly<Record<string, number>>;

export interface UnknownRow {
  readonly autopilot: By;
  readonly message: MessageName;
  readonly values: Values;
  readonly source: string;
  /** Fields of feeds that are unknown then. */
  readonly feeds: readonly string[];
}

const table = join(import.meta.dirname, '../../fixtures/mavlink-unknown-values.tsv');
const home = { lat: 47.397742, lon: 8.545594, alt_amsl_m: 488 };

/** The messages of which feeds are made. */
const messages = {
  both: [
    'GLOBAL_POSITION_INT',
    'GPS_RAW_INT',
    'GPS2_RAW',
    'ATTITUDE',
    'VFR_HUD',
    'BATTERY_STATUS',
    'SYS_STATUS',
    'HOME_POSITION',
    'VIBRATION',
    'RC_CHANNELS',
    'RADIO_STATUS',
  ],
  ardupilot: ['WIND', 'TERRAIN_REPORT', 'FENCE_STATUS'],
  px4: ['WIND_COV', 'ALTITUDE'],
} as const satisfies Record<string, readonly MessageName[]>;

/** What autopilots send without a value beyond the definitions, with where their source or tracker shows it. */
const habits: readonly (readonly [
  by: readonly By[],
  message: MessageName,
  values: Values,
  source: string,
])[] = [
  [['ardupilot'], 'WIND', { speed: 0, direction: -180 }, 'GCS_Common.cpp send_wind: atan2 of no estimate'],
  [['ardupilot'], 'WIND', { speed: 0, direction: 180 }, 'the same, positive zeros'],
  [['ardupilot'], 'WIND', { speed: 0, direction: 0 }, 'before 4.0'],
  [['px4'], 'WIND_COV', { wind_x: 0, wind_y: 0 }, 'no estimate yet'],
  [['ardupilot', 'px4'], 'GLOBAL_POSITION_INT', { lat: 0, lon: 0 }, 'before the first fix'],
  [['ardupilot', 'px4'], 'HOME_POSITION', { latitude: 0, longitude: 0 }, 'home is not set'],
  [['ardupilot', 'px4'], 'GPS_RAW_INT', { lat: 0, lon: 0, fix_type: 0 }, 'no receiver'],
  [['ardupilot', 'px4'], 'GPS_RAW_INT', { alt_ellipsoid: 0 }, 'extension is not sent'],
  [['ardupilot'], 'GPS_RAW_INT', { alt_ellipsoid: 528_000 }, 'ArduPilot#29905: the height above the sea'],
  [['ardupilot', 'px4'], 'GPS_RAW_INT', { eph: 9_999, epv: 9_999 }, 'u-blox without satellites'],
  [['ardupilot', 'px4'], 'GPS_RAW_INT', { h_acc: 0, v_acc: 0 }, 'extension is not sent'],
  [
    ['ardupilot', 'px4'],
    'GPS_RAW_INT',
    { h_acc: 4_294_967_295, v_acc: 4_294_967_295 },
    'u-blox without satellites',
  ],
  [['px4'], 'VFR_HUD', { airspeed: Number.NaN }, 'VFR_HUD.hpp: no airspeed sensor'],
  [['ardupilot', 'px4'], 'VFR_HUD', { throttle: 65_535 }, 'no value'],
  [['px4'], 'VFR_HUD', { heading: -1 }, 'no value'],
  [['ardupilot', 'px4'], 'BATTERY_STATUS', { 'voltages.*': 65_535 }, 'QGroundControl#9079: CAN battery'],
  [
    ['ardupilot', 'px4'],
    'BATTERY_STATUS',
    { 'voltages.*': 65_535, 'voltages.0': 0, current_battery: -1, battery_remaining: 0, charge_state: 0 },
    'iNav#11913: no battery',
  ],
  [
    ['ardupilot', 'px4'],
    'SYS_STATUS',
    { voltage_battery: 0, current_battery: -1, battery_remaining: -1 },
    'no monitor',
  ],
  [['ardupilot', 'px4'], 'RC_CHANNELS', { rssi: 0, chancount: 0 }, 'RC_CHANNELS.hpp: no receiver'],
  [['ardupilot'], 'TERRAIN_REPORT', { spacing: 0 }, 'no data of this place'],
  [['px4'], 'ALTITUDE', { bottom_clearance: -1 }, 'common.xml: negative'],
];

export function readTable(): readonly UnknownRow[] {
  const [, ...lines] = readFileSync(table, 'utf8').trimEnd().split('\n');
  return lines.map((line) => {
    const [autopilot = '', message = '', values = '', feeds = '', source = ''] = line.split('\t');
    const pairs = values.split(' ').map((pair) => pair.split('='));
    return {
      autopilot: autopilot as By,
      message: message as MessageName,
      values: Object.fromEntries(pairs.map(([field = '', value]) => [field, Number(value)])),
      source,
      feeds: feeds.split(' '),
    };
  });
}

/** The fields of feeds that the driver publishes of a message; those that are null or left out are missing. */
export function publishedBy(by: By, message: MessageName, values: Values = {}): ReadonlyMap<string, unknown> {
  const found = new Map<string, unknown>();
  const sink = {
    publish: (feed: string, data: object) => flatten(feed, data, found),
    setPosition: (place: object) => flatten('asset', place, found),
    setOnline: () => undefined,
    setHealth: () => undefined,
    remove: () => undefined,
  };
  const latest = new LatestMessages();
  const contact = { autopilot: by, kind: 'copter', latest, isHighLatency: false };
  for (const name of ['HEARTBEAT', 'GPS_RAW_INT', 'HOME_POSITION'] as const) {
    if (name !== message && !(message === 'GPS2_RAW' && name === 'GPS_RAW_INT'))
      latest.put(wired(by, name, {}), 0);
  }
  const sent = wired(by, message, values);
  latest.put(sent, 0);
  if (sent.name === 'RADIO_STATUS') flatten('radio', radioFeed(sent.fields), found);
  new Publishing(sink).receive(sent, contact as unknown as Parameters<Publishing['receive']>[1], 0);
  return found;
}

/** Each field of the message that a feed shows, with the fields of feeds that it changes. */
export function shownFields(by: By, message: MessageName): ReadonlyMap<string, readonly string[]> {
  const before = publishedBy(by, message);
  const shown = new Map<string, readonly string[]>();
  for (const { name, type, length } of definitionOf(message).fields) {
    if (type === 'char') continue;
    const field = length > 0 ? `${name}.0` : name;
    const after = publishedBy(by, message, { [field]: other(by, message, field) });
    const changed = [...before].filter(([path, value]) => after.has(path) && after.get(path) !== value);
    if (changed.length > 0)
      shown.set(
        field,
        changed.map(([path]) => path),
      );
  }
  return shown;
}

/** Another good value of the field. */
function other(by: By, message: MessageName, field: string): number {
  const value = valueAt(wired(by, message, {}).fields, field);
  if (/^(lat|lon|latitude|longitude)/u.test(field)) return value + 20_000;
  return value >= 250 ? value - 2 : value + 2;
}

function valueAt(fields: object, field: string): number {
  const [name = '', at] = field.split('.');
  const value: unknown = Reflect.get(fields, name);
  return Number(at === undefined ? value : (value as readonly number[])[Number(at)]);
}

/** A message as it is after the wire. */
function wired(by: By, name: MessageName, values: Values): Decoded {
  const base = structuredClone(baseOf(by, name)) as Record<string, unknown>;
  for (const [field, value] of Object.entries(values)) {
    const [its = '', at] = field.split('.');
    if (at === undefined) base[its] = value;
    else if (at === '*') (base[its] as number[]).fill(value);
    else (base[its] as number[])[Number(at)] = value;
  }
  let read: Decoded | undefined;
  const bytes = encode(name, base as never, { sysid: 1, compid: 1, seq: 0 });
  parseDatagram(bytes, { frame: (frame) => (read = decode(frame)) });
  if (!read) throw new Error(`${name} was not read`);
  return read;
}

function baseOf(by: By, name: MessageName): object {
  const state: SimState = {
    autopilot: by,
    type: 2,
    kind: 'copter',
    flight: new Flight(home, { airborne: true }),
    boot_ms: 1_000,
    gps: 'ok',
    pre_arm_ok: true,
    uid: '0000000000000001',
    throttle_us: 1_500,
    vtol_state: 0,
    hasFence: false,
    parameters: new Map(),
    climb: { alt_m: 0, distance_m: 0 },
    missions: new SimMissions({ autopilot: by, home, reply: () => undefined }),
  };
  const gps = { ...telemetry.GPS_RAW_INT(state), h_acc: 800, v_acc: 1_200 };
  if (name === 'GPS_RAW_INT') return gps;
  if (name === 'GPS2_RAW') return { ...gps, dgps_numch: 0, dgps_age: 0 };
  if (name === 'RADIO_STATUS')
    return { rssi: 180, remrssi: 170, txbuf: 90, noise: 40, remnoise: 45, rxerrors: 3, fixed: 0 };
  if (name === 'FENCE_STATUS')
    return { breach_status: 0, breach_count: 1, breach_type: 1, breach_time: 0, breach_mitigation: 0 };
  if (name === 'ALTITUDE') return { ...telemetry.ALTITUDE(state), bottom_clearance: 12 };
  if (name === 'BATTERY_STATUS')
    return { ...telemetry.BATTERY_STATUS(), temperature: 2_500, time_remaining: 600, charge_state: 1 };
  const build: unknown = Reflect.get(telemetry, name);
  return (build as (from: SimState) => object)(state);
}

function flatten(path: string, data: unknown, into: Map<string, unknown>): void {
  if (typeof data === 'object' && data !== null) {
    for (const [key, value] of Object.entries(data)) flatten(`${path}.${key}`, value, into);
  } else if (data !== null && data !== undefined) {
    into.set(path, data);
  }
}

/** `UINT16_MAX`, `-1`, `NaN`, `[0]` as a number. */
function valueOf(text: string): number {
  const [, bits] = /^\[?U?INT(\d+)_MAX/u.exec(text) ?? [];
  if (bits !== undefined) return 2 ** (Number(bits) - (text.replace('[', '').startsWith('U') ? 0 : 1)) - 1;
  return Number(text.replaceAll(/[[\],:]/gu, ''));
}

function rowsFrom(xml: string): readonly UnknownRow[] {
  const declared = new Map<string, { readonly text: string; readonly isList: boolean }>();
  for (const [, message = '', body = ''] of xml.matchAll(
    /<message [^>]*name="(\w+)"[^>]*>(.*?)<\/message>/gsu,
  )) {
    for (const [, tag = ''] of body.matchAll(/<field ([^>]*)>/gu)) {
      const attribute = (name: string): string => new RegExp(`${name}="([^"]*)"`, 'u').exec(tag)?.[1] ?? '';
      const invalid = { text: attribute('invalid'), isList: attribute('type').endsWith(']') };
      if (invalid.text !== '') declared.set(`${message}.${attribute('name')}`, invalid);
    }
  }
  return (['ardupilot', 'px4'] as const).flatMap((by) =>
    [...messages.both, ...messages[by]].flatMap((message) => {
      const shown = shownFields(by, message);
      const fields = definitionOf(message).fields.flatMap(({ name, type }) => {
        const feeds = shown.get(name) ?? shown.get(`${name}.0`);
        const invalid = declared.get(`${message}.${name}`);
        const rows: UnknownRow[] = [];
        const row = { autopilot: by, message };
        const all = (value: number): Values => ({ [invalid?.isList ? `${name}.*` : name]: value });
        // Cells that are not there are 0 beside those that are.
        if (feeds && invalid && name !== 'voltages_ext')
          rows.push({
            ...row,
            values: all(valueOf(invalid.text)),
            source: `invalid="${invalid.text}"`,
            feeds,
          });
        if (feeds && type === 'float' && invalid?.text !== 'NaN')
          rows.push({ ...row, values: { [name]: Number.NaN }, source: 'float', feeds });
        return rows;
      });
      const own = habits
        .filter(([bys, name]) => bys.includes(by) && name === message)
        .map(([, , values, source]): UnknownRow => {
          const after = publishedBy(by, message, values);
          const feeds = [...publishedBy(by, message).keys()].filter((path) => !after.has(path));
          return { autopilot: by, message, values, source, feeds };
        });
      return [...fields, ...own];
    }),
  );
}

if (import.meta.main) {
  const xml = process.argv
    .slice(2)
    .map((path) => readFileSync(path, 'utf8'))
    .join('\n');
  const lines = rowsFrom(xml).map(({ autopilot, message, values, feeds, source }) =>
    [
      autopilot,
      message,
      Object.entries(values)
        .map((pair) => pair.join('='))
        .join(' '),
      feeds.join(' '),
      source,
    ].join('\t'),
  );
  writeFileSync(table, `${['autopilot\tmessage\tvalues\tunknown then\tsource', ...lines].join('\n')}\n`);
}
