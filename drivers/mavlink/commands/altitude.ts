/** Converts the altitude of a target from its configured datum to heights above sea level and above home. */
import { z } from 'zod';
import type { JsonObject } from '../../../src/contract/json.ts';
import type { MavlinkOptions } from '../options.ts';
import type { Kind } from '../reports/kind.ts';
import type { Situation } from '../vehicles/situation.ts';
import { texts } from './texts.ts';

export interface Height {
  /** Metres above mean sea level. */
  readonly amsl_m: number;
  readonly above_home_m: number;
}

const datum_names = {
  relative: 'home',
  amsl: 'mean sea level',
  ellipsoid: 'the WGS-84 ellipsoid',
} as const;

/** Returns the schema of `alt_m`. Heights above home have the local limits; those of other datums depend on home. */
export function altitudeInput(
  { datum, height_min_m, height_max_m }: MavlinkOptions['goto'],
  kind: Kind,
): z.ZodNumber {
  const limited =
    datum === 'relative' && kind !== 'rover' ? z.number().min(height_min_m).max(height_max_m) : z.number();
  return limited
    .describe(`metres above ${datum_names[datum]}`)
    .meta({ title: 'Altitude', 'x-kit-datum': datum, 'x-kit-unit': 'm' });
}

/** A height in the result of a command. */
export function shownHeight(
  { amsl_m, above_home_m }: Height,
  alt_datum?: MavlinkOptions['goto']['datum'],
): JsonObject {
  const heights = { alt_amsl_m: amsl_m, height_above_home_m: above_home_m };
  return alt_datum === undefined ? heights : { ...heights, alt_datum };
}

/** Returns the target's heights, or the reason why they are unknown. */
export function heightOf(
  alt_m: number,
  datum: MavlinkOptions['goto']['datum'],
  { home, undulation_m }: Pick<Situation, 'home' | 'undulation_m'>,
): Height | string {
  if (!home) return texts.home_unknown;
  if (datum === 'relative') return heights(home.alt_amsl_m + alt_m, alt_m);
  if (datum === 'amsl') return heights(alt_m, alt_m - home.alt_amsl_m);
  if (undulation_m === undefined) return texts.ellipsoid_unknown;
  return heights(alt_m - undulation_m, alt_m - undulation_m - home.alt_amsl_m);
}

function heights(amsl_m: number, above_home_m: number): Height {
  return { amsl_m: toMillimetre(amsl_m), above_home_m: toMillimetre(above_home_m) };
}

function toMillimetre(metres: number): number {
  return Math.round(metres * 1_000) / 1_000;
}
