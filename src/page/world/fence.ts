/** Where a drone calls home, and what its feeds report of its fence: whether it is breached. No feed reports its shape. */
import { fieldOf, numberOf } from './world.ts';
import type { Place } from './geo.ts';
import type { Now } from '../types.d.ts';

export function homeOf(asset_id: string, { world }: Now): Place | undefined {
  const message = world.feeds.get(asset_id)?.['home'];
  const lat = numberOf(message, 'lat');
  const lon = numberOf(message, 'lon');
  return lat === undefined || lon === undefined ? undefined : { lat, lon };
}

/**
 * Which limit of its fence the drone has crossed, in the words of the contract; '' when it does not report which. Undefined: none, or
 * not reported.
 */
export function breachOf(asset_id: string, { world }: Now): string | undefined {
  const message = world.feeds.get(asset_id)?.['fence'];
  if (fieldOf(message, 'breached') !== true) return undefined;
  const type = fieldOf(message, 'breach_type');
  return typeof type === 'string' && type !== 'none' ? type : '';
}
