/** Reads the files of Mesh Rider firmware: link state, temperature and voltage, position. Pure. */
import { z } from 'zod';
import { answer_limits, readJson } from '../../../src/contract/bounded-json.ts';
import { byteCounter, counter, figure, goodRows, macText } from './loose.ts';
import { dbmOf, type PositionReading, type Station, uncounted, unknown_station } from '../reading.ts';

/** Paths in the firmware. */
export const meshrider_files = {
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

export interface LinkState {
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
