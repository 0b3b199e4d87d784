/** Converts replies of rpcd's iwinfo, system and file objects into readings. Field names as in rpcd's iwinfo.c. Pure. */
import { z } from 'zod';
import { byteCounter, counter, figure, goodRows, macText, text } from './loose.ts';
import {
  dbmOf,
  type HealthReading,
  type LinkReading,
  type Station,
  uncounted,
  unknown_link,
  unknown_station,
} from '../reading.ts';

export const boardReply = z.looseObject({
  hostname: text,
  model: text,
  board_name: text,
  /** Of Mesh Rider firmware. */
  sub_model: text,
  serial: text,
  release: z.looseObject({ distribution: text, version: text }).catch({ distribution: null, version: null }),
});
export type Board = z.output<typeof boardReply>;

const info = z.looseObject({
  mode: text,
  ssid: text,
  bssid: macText.nullable().catch(null),
  channel: figure,
  frequency: figure,
  txpower: figure,
  signal: figure,
  noise: figure,
  quality: figure,
  quality_max: figure,
  htmode: text,
  htmodelist: z.array(z.string()).catch([]),
  hardware: z.looseObject({ name: text }).catch({ name: null }),
});
export type Info = z.output<typeof info>;

export function infoOf(body: unknown): Info | undefined {
  return info.safeParse(body).data;
}

/** The number at the end of HT20, VHT80, HE160. */
export function widthOf(htmode: string | null): number | null {
  const digits = /^(?:HT|VHT|HE|EHT)(\d+)/u.exec(htmode ?? '')?.[1];
  return digits === undefined ? null : Number(digits);
}

export function linkOf(about: Info): LinkReading {
  const { quality, quality_max, frequency } = about;
  return {
    ...unknown_link,
    mode: about.mode,
    ssid: about.ssid,
    channel: about.channel === null || !Number.isInteger(about.channel) ? null : about.channel,
    freq_mhz: frequency !== null && frequency > 0 ? frequency : null,
    bandwidth_mhz: widthOf(about.htmode),
    txpower_dbm: about.txpower,
    rssi: dbmOf(about.signal),
    noise: dbmOf(about.noise),
    quality_pct: quality !== null && quality_max ? percentOf(quality, quality_max) : null,
  };
}

const rate = z
  .looseObject({
    rate: figure,
    mcs: counter,
    bytes: byteCounter,
    drop_misc: counter,
    failed: counter,
    retries: counter,
  })
  .nullable()
  .catch(null);

const stationRow = z.looseObject({
  mac: macText,
  signal: figure,
  signal_avg: figure,
  noise: figure,
  inactive: counter,
  connected_time: counter,
  rx: rate,
  tx: rate,
});

/** An answer without a body, as of a driver that reports no stations, is not an empty list. */
export function stationsOf(body: unknown): readonly Station[] | undefined {
  const read = z.looseObject({ results: z.array(z.unknown()) }).safeParse(body);
  if (!read.success) return undefined;
  const stations = goodRows(stationRow, read.data.results).map(stationOf);
  return stations.length === read.data.results.length ? stations : stations.map(uncounted);
}

function stationOf({ mac, rx, tx, ...row }: z.output<typeof stationRow>): Station {
  return {
    ...unknown_station,
    mac,
    rssi: dbmOf(row.signal_avg) ?? dbmOf(row.signal),
    noise: dbmOf(row.noise),
    inactive_ms: row.inactive,
    connected_s: row.connected_time,
    hops: 'direct',
    ...(rx ? { rx_rate_bps: rateOf(rx.rate), rx_errors: rx.drop_misc, rx_bytes: rx.bytes } : {}),
    ...(tx ? { tx_rate_bps: rateOf(tx.rate), mcs: tx.mcs, tx_bytes: tx.bytes } : {}),
    ...(tx ? { tx_retries: tx.retries, tx_failed: tx.failed } : {}),
  };
}

/** kbit/s; 0 until the first frame. */
function rateOf(kbps: number | null | undefined): number | null {
  const bps = (kbps ?? 0) * 1_000;
  return bps > 0 && Number.isFinite(bps) ? bps : null;
}

const listReply = z.looseObject({ results: z.unknown() });

/** The valid rows of a list that iwinfo answers. */
export function rowsIn<S extends z.ZodType>(row: S, body: unknown): z.output<S>[] {
  return goodRows(row, listReply.safeParse(body).data?.results);
}

const surveyRow = z.looseObject({ mhz: figure, noise: figure, active_time: counter, busy_time: counter });

/** Counters and noise of the channel in use. */
export function surveyOf(body: unknown, freq_mhz: number | null) {
  const rows = rowsIn(surveyRow, body);
  const used = rows.find(({ mhz }) => mhz !== null && mhz === freq_mhz);
  return {
    active_ms: used?.active_time ?? null,
    busy_ms: used?.busy_time ?? null,
    noise: dbmOf(used?.noise),
  };
}

const systemInfo = z.looseObject({
  uptime: figure,
  memory: z.looseObject({ total: figure, available: figure }).catch({ total: null, available: null }),
});

export function healthOf(body: unknown): HealthReading {
  const read = systemInfo.safeParse(body).data;
  const { total = null, available = null } = read?.memory ?? {};
  const uptime = read?.uptime ?? null;
  return {
    uptime_s: uptime !== null && uptime >= 0 ? uptime : null,
    cpu_pct: null,
    cpu_ticks: null,
    mem_pct: total !== null && total > 0 && available !== null ? percentOf(total - available, total) : null,
    temperature_c: null,
    voltage: null,
  };
}

/** Ten numbers of 20 digits and more. */
const stat_chars_max = 512;

/** The first line of /proc/stat: user, nice, system, idle, iowait, ... (proc(5)). */
export function ticksOf(stat_text: string | undefined): HealthReading['cpu_ticks'] {
  const fields = /^cpu +([\d ]+)/u.exec(stat_text?.slice(0, stat_chars_max) ?? '')?.[1];
  if (fields === undefined) return null;
  const ticks = fields.trim().split(/ +/u).map(Number);
  if (ticks.length < 5 || ticks.some((each) => !Number.isFinite(each))) return null;
  return { idle: (ticks[3] ?? 0) + (ticks[4] ?? 0), all: ticks.reduce((sum, each) => sum + each, 0) };
}

/** The text that `file read` answers. */
export function fileText(body: unknown): string | undefined {
  return z.looseObject({ data: z.string() }).safeParse(body).data?.data;
}

const channelRow = z.looseObject({
  channel: figure,
  mhz: figure,
  /** Excludes channels that are not clearly allowed. */
  restricted: z
    .unknown()
    .optional()
    .transform((raw) => raw !== undefined && raw !== false && raw !== 0 && raw !== '0'),
});
export interface Channel {
  readonly channel: number;
  readonly mhz: number;
}

/** Channels of the band in use on which sending is allowed. */
export function channelsOf(body: unknown, freq_mhz: number | null): readonly Channel[] {
  const rows = rowsIn(channelRow, body);
  return rows.flatMap(({ channel, mhz, restricted }) =>
    channel === null || mhz === null || restricted || freq_mhz === null || bandOf(mhz) !== bandOf(freq_mhz)
      ? []
      : [{ channel, mhz }],
  );
}

/** As the Linux kernel defines them. */
function bandOf(mhz: number): string {
  if (mhz < 1_000) return 's1g';
  if (mhz < 4_900) return '2g';
  return mhz < 5_925 ? '5g' : '6g';
}

export function powersOf(body: unknown): readonly number[] {
  const row = z.looseObject({ dbm: figure });
  const rows = rowsIn(row, body);
  return [...new Set(rows.flatMap(({ dbm }) => (dbm === null ? [] : [dbm])))];
}

function percentOf(part: number, whole: number): number {
  return Math.round(Math.min(100, Math.max(0, (part / whole) * 100)) * 10) / 10;
}
