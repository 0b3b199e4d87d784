/** Parses gpsd's reports (gpsd_json(5)): one line in, its position out. Pure. */
import { z } from 'zod';
import { answer_limits, readJson } from '../../src/contract/bounded-json.ts';

const degrees_lat = z.number().min(-90).max(90);
const degrees_lon = z.number().min(-180).max(180);

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
type Report = z.output<typeof report>;

/** One report of a receiver. */
export interface Tpv {
  /** As gpsd names the receiver. */
  readonly device: string;
  /** Null: the receiver has no fix. */
  readonly position: Position | null;
}

export interface Position {
  readonly latitude: number;
  readonly longitude: number;
  /** Metres above the WGS-84 ellipsoid; null for a 2-D fix. */
  readonly altitude: number | null;
  /** UTC; null: the receiver does not know the time yet. */
  readonly time_ms: number | null;
}

/** Whether the line is a report at all; the first one of gpsd is its version. */
export function isReport(line: string): boolean {
  return reportIn(line) !== undefined;
}

/** The TPV report of the line; undefined: the line is another report, or none. */
export function readTpv(line: string): Tpv | undefined {
  const data = reportIn(line);
  return data?.class === 'TPV' ? { device: data.device ?? '', position: positionOf(data) } : undefined;
}

function reportIn(line: string): Report | undefined {
  try {
    return report.safeParse(readJson(line, answer_limits)).data;
  } catch {
    return undefined;
  }
}

/** A report without a fix may carry an old latitude or zeros, so the mode is checked before the fields. */
function positionOf(tpv: Report): Position | null {
  if ((tpv.mode ?? 0) < 2) return null;
  const { data: latitude } = degrees_lat.safeParse(tpv.lat);
  const { data: longitude } = degrees_lon.safeParse(tpv.lon);
  if (latitude === undefined || longitude === undefined) return null;
  if (latitude === 0 && longitude === 0) return null;
  return { latitude, longitude, altitude: altitudeOf(tpv), time_ms: timeOf(tpv) };
}

/** gpsd before 3.20 reports `alt` alone, above mean sea level. A 2-D fix sometimes has mode 3, but no altitude at all. */
function altitudeOf({ mode, alt, altHAE, altMSL, geoidSep }: Report): number | null {
  if (mode === 2) return null;
  if (altHAE !== undefined) return altHAE;
  const above_sea_m = altMSL ?? alt;
  return above_sea_m === undefined || geoidSep === undefined ? null : above_sea_m + geoidSep;
}

/** Text since gpsd 2.96, seconds before. */
function timeOf({ time }: Report): number | null {
  if (time === undefined) return null;
  const ms = typeof time === 'number' ? time * 1_000 : Date.parse(time);
  return Number.isFinite(ms) ? ms : null;
}
