/** Converts messages to the feeds `home`, `wind`, `vibration` and `fence`. Unknown values become null. */
import type { z } from 'zod';
import type { droneFeeds } from '../../../src/contract/drone-feeds.ts';
import type { Messages } from '../wire/messages.ts';
import { isPlace, undulation } from './feeds.ts';

type Feed<K extends keyof typeof droneFeeds> = z.output<(typeof droneFeeds)[K]>;

const breach_types = ['none', 'min_altitude', 'max_altitude', 'boundary'] as const;

/** `HOME_POSITION`. Undefined while home is not set. */
export function homeFeed(
  { latitude, longitude, altitude }: Messages['HOME_POSITION'],
  gps: Messages['GPS_RAW_INT'] | undefined,
): Feed<'home'> | undefined {
  if (!isPlace(latitude, longitude)) return undefined;
  const alt_amsl_m = altitude / 1_000;
  const undulation_m = gps && undulation(gps);
  return {
    lat: latitude / 1e7,
    lon: longitude / 1e7,
    alt_m: undulation_m === undefined ? null : rounded(alt_amsl_m + undulation_m, 3),
    alt_amsl_m,
  };
}

/** `WIND` of ArduPilot. Undefined without an estimate, for which it sends zeros. */
export function windFeed({ speed, direction }: Messages['WIND']): Feed<'wind'> | undefined {
  if (!Number.isFinite(speed) || !Number.isFinite(direction) || (speed === 0 && direction === 0))
    return undefined;
  return { speed_mps: rounded(Math.abs(speed), 2), direction: rounded(compass(direction), 1) };
}

/** `WIND_COV` of PX4: a vector in the direction in which the air moves. */
export function windVectorFeed({ wind_x, wind_y }: Messages['WIND_COV']): Feed<'wind'> | undefined {
  if (!Number.isFinite(wind_x) || !Number.isFinite(wind_y)) return undefined;
  const direction = (Math.atan2(-wind_y, -wind_x) * 180) / Math.PI;
  return {
    speed_mps: rounded(Math.hypot(wind_x, wind_y), 2),
    direction: rounded(compass(direction), 1),
  };
}

/** `VIBRATION`. */
export function vibrationFeed(report: Messages['VIBRATION']): Feed<'vibration'> {
  const { vibration_x, vibration_y, vibration_z, clipping_0, clipping_1, clipping_2 } = report;
  return {
    x: measured(vibration_x),
    y: measured(vibration_y),
    z: measured(vibration_z),
    clipping: [clipping_0, clipping_1, clipping_2],
  };
}

/** `FENCE_STATUS`. */
export function fenceFeed(status: Messages['FENCE_STATUS']): Feed<'fence'> {
  const { breach_status, breach_count, breach_type } = status;
  return {
    breached: breach_status !== 0,
    breach_count,
    breach_type: breach_types[breach_type] ?? null,
  };
}

/** Degrees from 0 to below 360. */
function compass(degrees: number): number {
  return ((degrees % 360) + 360) % 360;
}

function measured(value: number): number | null {
  return Number.isFinite(value) ? rounded(value, 3) : null;
}

function rounded(value: number, digits: number): number {
  const factor = 10 ** digits;
  return Math.round(value * factor) / factor;
}
