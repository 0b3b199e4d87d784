/** The altitude of a target in every datum that matters: one explicit datum comes in, two heights come out. */
import type { MavlinkOptions } from './options.ts';
import type { Situation } from './situation.ts';

export interface Height {
  /** Metres above mean sea level. */
  readonly amsl_m: number;
  readonly above_home_m: number;
}

/** The target's heights, or the sentence that tells why they are not known. */
export function heightOf(
  alt_m: number,
  datum: MavlinkOptions['goto']['datum'],
  { home, undulation_m }: Pick<Situation, 'home' | 'undulation_m'>,
): Height | string {
  if (!home) return 'its home position is not known, so that no height above home can be worked out';
  if (datum === 'relative') return heights(home.alt_amsl_m + alt_m, alt_m);
  if (datum === 'amsl') return heights(alt_m, alt_m - home.alt_amsl_m);
  if (undulation_m === undefined) {
    return 'its receiver does not tell the ellipsoid from the sea level here, and alt_m is above the ellipsoid';
  }
  return heights(alt_m - undulation_m, alt_m - undulation_m - home.alt_amsl_m);
}

function heights(amsl_m: number, above_home_m: number): Height {
  return { amsl_m: toMillimetre(amsl_m), above_home_m: toMillimetre(above_home_m) };
}

function toMillimetre(metres: number): number {
  return Math.round(metres * 1_000) / 1_000;
}
