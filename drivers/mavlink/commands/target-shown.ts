/** Whether a vehicle reports the target that it was sent to. */
import type { Contact } from '../vehicles/contact.ts';
import type { Messages } from '../wire/messages.ts';
import type { Height } from './altitude.ts';
import { distance_m, offset, type Place } from '../vehicles/geo.ts';

const target_tolerance_m = 1;
/** Distance and direction are reported in whole metres and degrees, and up to a second after the position. */
const way_tolerance_m = 5;
const way_tolerance_share = 0.02;
const way_delay_s = 2;
/** After this time its report of the target is no longer the one before the command. */
const settle_ms = 1_200;
/** Nearer, it would be shown by any target in the neighbourhood. */
const way_min_m = 20;

interface Target extends Place {
  readonly amsl_m: number | undefined;
}

export function isNear(
  report: Pick<Messages['POSITION_TARGET_GLOBAL_INT'], 'alt' | 'lat_int' | 'lon_int'>,
  { lat, lon, amsl_m }: Target,
): boolean {
  const off_m = distance_m({ lat: report.lat_int / 1e7, lon: report.lon_int / 1e7 }, { lat, lon });
  return (
    off_m <= target_tolerance_m &&
    (amsl_m === undefined || Math.abs(report.alt - amsl_m) <= target_tolerance_m)
  );
}

/** Whether the reported target is this one. Rovers report no meaningful altitude. */
export function isTargetShown(
  { latest, kind }: Contact,
  { lat, lon }: Place,
  height: Height,
  since_ms = Number.NEGATIVE_INFINITY,
): boolean {
  const report = latest.since('POSITION_TARGET_GLOBAL_INT', since_ms);
  const amsl_m = kind === 'rover' ? undefined : height.amsl_m;
  return report !== undefined && isNear(report, { lat, lon, amsl_m });
}

/** While they avoid an obstacle, these report the place that they fly to first as their target. */
export function mayGoAround({ autopilot, kind }: Contact): boolean {
  return autopilot === 'ardupilot' && (kind === 'copter' || kind === 'rover');
}

/** Whether it reports another place as its target, and a distance and direction that lead to this one. */
export function isOnWayTo(contact: Contact, target: Place, since_ms: number): boolean {
  const { latest } = contact;
  const way = latest.since('NAV_CONTROLLER_OUTPUT', since_ms);
  const at = latest.since('GLOBAL_POSITION_INT', since_ms);
  const isReported = latest.since('POSITION_TARGET_GLOBAL_INT', since_ms + settle_ms) !== undefined;
  if (!mayGoAround(contact) || !isReported || !way || !at || way.wp_dist < way_min_m) return false;
  const from = { lat: at.lat / 1e7, lon: at.lon / 1e7 };
  const shown = offset(from, { bearing_deg: way.target_bearing, metres: way.wp_dist });
  const moved_m = (way_delay_s * Math.hypot(at.vx, at.vy)) / 100;
  return distance_m(shown, target) <= way_tolerance_m + moved_m + way_tolerance_share * way.wp_dist;
}
