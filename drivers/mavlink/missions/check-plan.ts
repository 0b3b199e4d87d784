/** Checks each item of a plan against the local limits, before anything is sent. Pure. */
import { admitHeight, tooFar } from '../commands/gate.ts';
import { crosses, isInside, type Place } from '../vehicles/geo.ts';
import type { MavlinkOptions } from '../options.ts';
import type { Situation } from '../vehicles/situation.ts';
import {
  command_jump,
  command_speed,
  command_waypoint,
  frame_global,
  frame_mission,
  frame_relative,
  type ItemCommand,
  item_commands,
  type PlaceUse,
  plainFrame,
  type PlannedItem,
} from './item.ts';
import { type MissionKind, ownItems } from '../vehicles/mission-kinds.ts';
import { areasOf, droppedArea, outsideAreas } from './fence.ts';
import { texts } from './texts.ts';

export type Limits = Pick<MavlinkOptions, 'goto' | 'speed_max_mps'>;

const frame_terrain = 10;
const latitude_max = 90;
const longitude_max = 180;
/** `DO_CHANGE_SPEED`: no change, and the default. */
const speeds_special: ReadonlySet<number> = new Set([-1, -2]);

/** Returns the first fault, naming item and key; undefined when everything is within the limits. */
export function checkPlan(
  kind: MissionKind,
  items: readonly PlannedItem[],
  situation: Situation,
  limits: Limits,
): string | undefined {
  const { home } = situation;
  if (!home) return texts.home_unknown;
  if (kind === 'fence') return checkFence(items, situation.position ?? home, situation);
  for (const planned of items) {
    const fault =
      kind === 'rally' ? checkRally(planned, situation, limits) : checkItem(planned, situation, limits);
    if (fault !== undefined) return fault;
  }
  return kind === 'mission' ? checkLegs(items, situation, limits) : undefined;
}

function checkItem(planned: PlannedItem, situation: Situation, limits: Limits): string | undefined {
  const { path, item } = planned;
  const known = item_commands.get(item.command);
  if (!known) return texts.fault(`${path}.command`, texts.command_unsupported(item.command));
  if (item.command === command_speed) return checkSpeed(planned, limits);
  if (isUnkept(planned, situation)) return texts.fault(`${path}.params[0]`, texts.no_hold_time);
  if (known.place === 'none') return undefined;
  return checkFrame(planned) ?? checkPlaced(planned, known, { situation, limits });
}

function checkPlaced(
  planned: PlannedItem,
  known: ItemCommand,
  { situation, limits }: { readonly situation: Situation; readonly limits: Limits },
): string | undefined {
  const { path, item } = planned;
  const { place } = known;
  const isPlaceless = item.x === 0 && item.y === 0;
  if (isPlaceless && needsPlace(place, situation)) return texts.fault(`${path}.params[4]`, texts.place_unset);
  const placed = isPlaceless ? undefined : checkPlace(planned, situation, limits, known);
  if (placed !== undefined || (place !== 'flown' && place !== 'here_or_place')) return placed;
  return checkHeight(planned, situation, limits);
}

/** An ArduPlane does not store the time for which to hold at a waypoint, and flies on. */
function isUnkept({ item }: PlannedItem, { autopilot, kind }: Situation): boolean {
  const isPlane = autopilot === 'ardupilot' && (kind === 'plane' || kind === 'vtol');
  return isPlane && item.command === command_waypoint && Math.trunc(item.param1) > 0;
}

/** Without a place an ArduPilot takes off and lands where it is; a PX4 flies to latitude 0, longitude 0. */
function needsPlace(place: PlaceUse, { autopilot }: Situation): boolean {
  return place === 'flown' || (autopilot === 'px4' && place !== 'seen');
}

function checkSpeed({ path, item: { param2 } }: PlannedItem, { speed_max_mps }: Limits): string | undefined {
  if (speeds_special.has(param2) || (param2 > 0 && param2 <= speed_max_mps)) return undefined;
  return texts.fault(`${path}.params[1]`, texts.speed(param2, speed_max_mps));
}

function checkFrame({ path, item }: PlannedItem): string | undefined {
  const frame = plainFrame(item.frame);
  if (frame === frame_global || frame === frame_relative) return undefined;
  return texts.fault(
    `${path}.frame`,
    frame === frame_terrain ? texts.frame_terrain : texts.frame(item.frame),
  );
}

function checkRally(planned: PlannedItem, situation: Situation, limits: Limits): string | undefined {
  const { path, item } = planned;
  if (item.x === 0 && item.y === 0) return texts.fault(path, texts.place_unset);
  return checkPlace(planned, situation, limits) ?? checkHeight(planned, situation, limits);
}

function placeOf({ item: { x, y } }: PlannedItem): Place {
  return { lat: x / 1e7, lon: y / 1e7 };
}

/** A place that a camera only looks at may be anywhere. */
function checkPlace(
  planned: PlannedItem,
  { home }: Situation,
  { goto: options }: Limits,
  known?: ItemCommand,
): string | undefined {
  const { path } = planned;
  const place = placeOf(planned);
  if (Math.abs(place.lat) > latitude_max) return texts.fault(path, texts.latitude(place.lat));
  if (Math.abs(place.lon) > longitude_max) return texts.fault(path, texts.longitude(place.lon));
  if (known?.place === 'seen' || !home) return undefined;
  const far = tooFar(place, home, 'home', options);
  if (far !== undefined) return texts.fault(path, far);
  const isOutside = options.geofence !== undefined && !isInside(place, options.geofence);
  return isOutside ? texts.fault(path, texts.outside) : undefined;
}

/** Rovers drive at the height of the ground. */
function checkHeight(
  { path, item }: PlannedItem,
  situation: Situation,
  { goto: options }: Limits,
): string | undefined {
  if (situation.kind === 'rover') return undefined;
  const datum = plainFrame(item.frame) === frame_global ? 'amsl' : 'relative';
  const height = admitHeight(item.z, situation, { ...options, datum });
  return typeof height === 'string' ? texts.fault(path, height) : undefined;
}

/** The ways between items, jumps included, must stay within the local geofence, which may have corners that point inwards. */
function checkLegs(
  items: readonly PlannedItem[],
  { autopilot }: Situation,
  { goto: { geofence } }: Limits,
): string | undefined {
  if (!geofence) return undefined;
  // The numbers of jumps count the vehicle's own items.
  const before = ownItems('mission', autopilot);
  let from: PlannedItem | undefined;
  const legs: (readonly [PlannedItem, PlannedItem])[] = [];
  for (const planned of items) {
    if (from && planned.item.command === command_jump) {
      const target = items.slice(Math.max(0, planned.item.param1 - before)).find(isFlownTo);
      if (target) legs.push([from, target]);
    }
    if (!isFlownTo(planned)) continue;
    if (from) legs.push([from, planned]);
    from = planned;
  }
  const out = legs.find(([a, b]) => crosses(placeOf(a), placeOf(b), geofence));
  return out && texts.fault(out[1].path, texts.leg_outside(out[0].path));
}

function isFlownTo({ item }: PlannedItem): boolean {
  const place = item_commands.get(item.command)?.place;
  const isPlace = place === 'flown' || place === 'ground' || place === 'here_or_place';
  return isPlace && (item.x !== 0 || item.y !== 0) && item.frame !== frame_mission;
}

/** A fence that the vehicle is outside of would be breached at once. */
function checkFence(items: readonly PlannedItem[], at: Place, situation: Situation): string | undefined {
  const unset = items.find(({ item: { x, y } }) => x === 0 && y === 0);
  if (unset) return texts.fault(unset.path, texts.place_unset);
  const areas = areasOf(items);
  const outside = outsideAreas(areas, at, situation.fence_rule);
  const dropped = outside === undefined ? droppedArea(areas, situation) : undefined;
  if (dropped) return texts.fault(dropped.path, texts.dropped(dropped.includes));
  if (outside === undefined) return undefined;
  return outside === 'all'
    ? texts.fault('geoFence', texts.not_included)
    : texts.fault(outside.path, outside.includes ? texts.not_in_area : texts.excluded);
}
