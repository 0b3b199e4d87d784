/** The fence that a vehicle has stored: its areas, the limits that its parameters set, and whether it enforces them. */
import type { JsonObject } from '../../../src/contract/json.ts';
import type { CommandContext } from '../../../src/toolkit/driver/command.ts';
import type { Bounded, FencedWay } from '../commands/admission.ts';
import { readSome, valueOf } from '../commands/parameters.ts';
import type { Addressee } from '../vehicles/addressee.ts';
import { distance_m, isInside, offset, type Place } from '../vehicles/geo.ts';
import { isSupported } from '../vehicles/mission-kinds.ts';
import { isFenceEnabled, type Situation } from '../vehicles/situation.ts';
import { digestOf } from './compare.ts';
import { download } from './download.ts';
import {
  command_exclusion_circle,
  command_exclusion_polygon,
  command_inclusion_circle,
  command_inclusion_polygon,
  type PlannedItem,
  type StoredItem,
} from './item.ts';
import { texts } from './texts.ts';

/** A command for a flight waits no longer for what the vehicle has stored: the vehicle itself holds to it anyway. */
const look_up_ms = 1_500;
/** Another station may change its parameters. */
const limits_kept_ms = 60_000;
const enforcement_wait_ms = 5_000;
const state_fresh_ms = 5_000;
/** The way to a target is looked at in steps of this length. */
const step_min_m = 2;
const steps_max = 1_000;
const circle_steps = 72;

interface Area {
  readonly path: string;
  readonly includes: boolean;
  readonly contains: (at: Place) => boolean;
}

export function areasOf(items: readonly PlannedItem[]): readonly Area[] {
  const areas: Area[] = [];
  for (let index = 0; index < items.length; index += 1) {
    const planned = items[index];
    if (!planned) break;
    const { command, param1 } = planned.item;
    const { path } = planned;
    if (command === command_inclusion_polygon || command === command_exclusion_polygon) {
      const corners = items.slice(index, index + param1).map(placeOf);
      const contains = (at: Place): boolean => isInside(at, corners);
      areas.push({ path, includes: command === command_inclusion_polygon, contains });
      index += Math.max(0, param1 - 1);
    } else if (command === command_inclusion_circle || command === command_exclusion_circle) {
      const center = placeOf(planned);
      const contains = (at: Place): boolean => distance_m(at, center) <= param1;
      areas.push({ path, includes: command === command_inclusion_circle, contains });
    }
  }
  return areas;
}

function placeOf({ item: { x, y } }: PlannedItem): Place {
  return { lat: x / 1e7, lon: y / 1e7 };
}

/** ArduPilot demands to be inside each inclusion area (AC_PolyFence_loader), older PX4 inside one of them (geofence.cpp). */
export function outsideAreas(
  areas: readonly Area[],
  at: Place,
  fence_rule: Situation['fence_rule'],
): Area | 'all' | undefined {
  const excluding = areas.find(({ includes, contains }) => !includes && contains(at));
  if (excluding) return excluding;
  const including = areas.filter(({ includes }) => includes);
  if (fence_rule === 'each') return including.find(({ contains }) => !contains(at));
  return including.length === 0 || including.some(({ contains }) => contains(at)) ? undefined : 'all';
}

/** Returns the first area that a PX4 accepts and then drops, since home is not where the area demands it (PX4-Autopilot#22394). */
export function droppedArea(
  areas: readonly Area[],
  { autopilot, fence_rule, home }: Pick<Situation, 'autopilot' | 'fence_rule' | 'home'>,
): Area | undefined {
  if (autopilot !== 'px4' || fence_rule !== 'each' || !home) return undefined;
  return areas.find(({ includes, contains }) => contains(home) !== includes);
}

/** Returns what holds a vehicle to the fence that it has stored, and to the limits that it enforces. */
export function heldToFence(vehicle: Bounded): NonNullable<Bounded['againstFence']> {
  return async (way, context) => {
    const found = vehicle.address();
    if (!('to' in found) || found.situation.is_high_latency) return undefined;
    const { to, situation } = found;
    const items = await storedFence(vehicle, to, context);
    const stored = areasOf(items.map((item, index) => ({ path: texts.fence_item(index), item })));
    const areas = stored.filter((area) => droppedArea([area], situation) === undefined);
    return (
      againstAreas(areas, way, situation) ??
      beyondLimits(await limitsOf(vehicle, { to, situation, context }), way, situation)
    );
  };
}

function againstAreas(areas: readonly Area[], way: FencedWay, { fence_rule }: Situation): string | undefined {
  if (areas.length === 0) return undefined;
  const outside = outsideAreas(areas, way.to, fence_rule);
  if (outside !== undefined) return texts.target_against_fence(outside === 'all' ? undefined : outside);
  const isIn = (at: Place): boolean => outsideAreas(areas, at, fence_rule) === undefined;
  if (!circleOf(way).every(isIn)) return texts.circle_against_fence;
  return way.from && isIn(way.from) && !placesBetween(way.from, way.to).every(isIn)
    ? texts.way_against_fence
    : undefined;
}

function placesBetween(from: Place, to: Place): readonly Place[] {
  const steps = Math.min(steps_max, Math.ceil(distance_m(from, to) / step_min_m));
  return Array.from({ length: steps }, (_, step) => ({
    lat: from.lat + ((to.lat - from.lat) * step) / steps,
    lon: from.lon + ((to.lon - from.lon) * step) / steps,
  }));
}

function circleOf({ to, radius_m }: FencedWay): readonly Place[] {
  if (radius_m === undefined) return [];
  return Array.from({ length: circle_steps }, (_, step) =>
    offset(to, { bearing_deg: (360 * step) / circle_steps, metres: radius_m }),
  );
}

/** What it was last known to have stored, read now if that is not known; nothing where it cannot be read in time. */
async function storedFence(
  { stored }: Bounded,
  to: Addressee,
  context: CommandContext,
): Promise<readonly StoredItem[]> {
  const known = stored.fence;
  if (known) return known;
  const version = to.contact.latest.last('AUTOPILOT_VERSION');
  const hasFence = to.contact.version === 2 && version && isSupported('fence', version.capabilities);
  if (!hasFence) return [];
  try {
    const until_ms = performance.now() + Math.min(look_up_ms, context.remaining_ms() / 4);
    const items = await download(to, 'fence', { ...context, progress: () => undefined, until_ms });
    const digest = digestOf('fence', to.contact.autopilot, items);
    stored.remember('fence', { count: items.length, digest, items }, performance.now());
    return items;
  } catch {
    return [];
  }
}

/** Metres above home and from home; undefined: no limit. */
interface FenceLimits {
  readonly height?: Limit;
  readonly distance?: Limit;
}

interface Limit {
  readonly name: string;
  readonly max_m: number;
}

const type_height = 1;
const type_distance = 2;
const type_areas = 4;

interface Asked {
  readonly to: Addressee;
  readonly situation: Situation;
  readonly context: CommandContext;
}

const limit_names = {
  px4: ['GF_ACTION', 'GF_MAX_VER_DIST', 'GF_MAX_HOR_DIST'],
  rover: ['FENCE_TYPE', 'FENCE_RADIUS'],
  ardupilot: ['FENCE_TYPE', 'FENCE_RADIUS', 'FENCE_ALT_MAX'],
} as const;

async function limitsOf({ stored }: Bounded, { to, situation, context }: Asked): Promise<FenceLimits> {
  const now_ms = performance.now();
  const { autopilot, kind } = situation;
  if (autopilot !== 'px4' && !isFenceEnabled(to.contact, now_ms - state_fresh_ms)) return {};
  const names = limit_names[autopilot === 'px4' ? 'px4' : kind === 'rover' ? 'rover' : 'ardupilot'];
  const isKnown = stored.limits !== undefined && now_ms - stored.limits.read_ms < limits_kept_ms;
  if (!isKnown) {
    const values = await valuesOf(to, names, context, Math.min(look_up_ms, context.remaining_ms() / 4));
    stored.limits = values.size === names.length ? { values, read_ms: now_ms } : undefined;
  }
  return stored.limits ? limitsBy(stored.limits.values, autopilot) : {};
}

function limitsBy(values: ReadonlyMap<string, number>, autopilot: Situation['autopilot']): FenceLimits {
  const limit = (name: string): Limit => ({ name, max_m: values.get(name) ?? 0 });
  if (autopilot === 'px4') {
    if (values.get('GF_ACTION') === px4_none) return {};
    return { height: limit('GF_MAX_VER_DIST'), distance: limit('GF_MAX_HOR_DIST') };
  }
  const type = values.get('FENCE_TYPE') ?? 0;
  return {
    ...((type & type_height) === 0 ? {} : { height: limit('FENCE_ALT_MAX') }),
    ...((type & type_distance) === 0 ? {} : { distance: limit('FENCE_RADIUS') }),
  };
}

async function valuesOf(
  to: Addressee,
  names: readonly string[],
  context: CommandContext,
  wait_ms: number,
): Promise<Map<string, number>> {
  const read = await readSome(to, names, { context, wait_ms });
  return new Map([...read].map(([name, value]) => [name, valueOf(value, to.contact.autopilot) ?? 0]));
}

/** A limit of 0 is none. */
function beyondLimits(
  { height, distance }: FenceLimits,
  { to, radius_m = 0, above_home_m }: FencedWay,
  { home }: Situation,
): string | undefined {
  if (height && height.max_m > 0 && above_home_m !== undefined && above_home_m > height.max_m)
    return texts.above_fence(above_home_m, height);
  const away_m = home && distance_m(to, home) + radius_m;
  return distance && distance.max_m > 0 && away_m !== undefined && away_m > distance.max_m
    ? texts.beyond_fence(Math.round(away_m), distance)
    : undefined;
}

/**
 * Whether a vehicle enforces the areas of its fence, with the parameters that say so; null: they could not be read. `since_ms`: before
 * the fence was sent.
 */
export async function enforcementOf(
  to: Addressee,
  context: CommandContext,
  since_ms: number,
): Promise<{
  readonly enforced: boolean | null;
  readonly warning?: string;
  readonly parameters?: JsonObject;
}> {
  const is_px4 = to.contact.autopilot === 'px4';
  const names = is_px4 ? ['GF_ACTION'] : ['FENCE_ENABLE', 'FENCE_TYPE', 'FENCE_ACTION'];
  const values = await valuesOf(to, names, context, enforcement_wait_ms);
  if (values.size < names.length)
    return { enforced: null, warning: texts.enforcement_unknown(names.join(', ')) };
  const parameters = Object.fromEntries(values);
  const reason = is_px4
    ? (invalidity(to, since_ms) ?? px4Laxity(values))
    : ardupilotLaxity(values, isFenceEnabled(to.contact, performance.now() - state_fresh_ms));
  return { enforced: reason === undefined, parameters, ...(reason === undefined ? {} : { warning: reason }) };
}

/** PX4 src/modules/navigator/geofence_params.yaml. */
const px4_none = 0;
const px4_warning = 1;

/** A PX4 has accepted the areas then, and dropped one of them. */
function invalidity({ contact }: Addressee, since_ms: number): string | undefined {
  const told = contact.texts.find(
    ({ text, at_ms }) => at_ms >= since_ms && /^geofence invalid/iu.test(text.text),
  );
  return told && texts.not_enforced(told.text.text);
}

function px4Laxity(values: ReadonlyMap<string, number>): string | undefined {
  const action = values.get('GF_ACTION');
  if (action === px4_none) return texts.not_enforced('GF_ACTION is 0');
  return action === px4_warning ? texts.only_reported('GF_ACTION is 1') : undefined;
}

/** FENCE_AUTOENABLE may enable it without FENCE_ENABLE. */
function ardupilotLaxity(values: ReadonlyMap<string, number>, isEnabled: boolean): string | undefined {
  if (values.get('FENCE_ENABLE') === 0 && !isEnabled) return texts.fence_disabled;
  const type = values.get('FENCE_TYPE') ?? 0;
  if ((type & type_areas) === 0) return texts.not_enforced(`FENCE_TYPE is ${type}, without areas (4)`);
  return values.get('FENCE_ACTION') === 0 ? texts.only_reported('FENCE_ACTION is 0') : undefined;
}
