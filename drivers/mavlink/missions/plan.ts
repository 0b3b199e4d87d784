/** Writes missions as QGroundControl's plan files (`.plan`, version 1). Pure. */
import type { JsonObject, Json } from '../../../src/contract/json.ts';
import {
  command_jump,
  frame_mission,
  type MissionItem,
  plainFrame,
  type PlannedItem,
  type StoredItem,
  command_exclusion_circle,
  command_exclusion_polygon,
  command_fence_return,
  command_inclusion_circle,
  command_inclusion_polygon,
  command_rally,
  frame_global,
  frame_relative,
} from './item.ts';
import { type MissionKind, ownItems, mission_kinds } from '../vehicles/mission-kinds.ts';
import { z } from 'zod';
import { firstFault } from '../../../src/contract/first-fault.ts';
import type { Autopilot } from '../reports/kind.ts';
import { texts } from './texts.ts';
import { items_max } from './transfer.ts';
import { latitude, longitude } from '../../../src/contract/assets.ts';

// Fences and rally points in plan files and as items of the mission protocol, both ways. Pure.

/** ArduPilot counts the corners of a polygon in one byte. */
const corners_max = 255;
const areas_max = 100;
const points_max = 100;
const radius_max_m = 100_000;

const place = z.tuple([latitude, longitude]);
const place_with_height = z.tuple([latitude, longitude, z.number()]);

/** `geoFence` of a plan. */
const fencePart = z.looseObject({
  version: z.literal(2),
  polygons: z
    .array(z.looseObject({ inclusion: z.boolean(), polygon: z.array(place).min(3).max(corners_max) }))
    .max(areas_max)
    .default([]),
  circles: z
    .array(
      z.looseObject({
        inclusion: z.boolean(),
        circle: z.looseObject({ center: place, radius: z.number().positive().max(radius_max_m) }),
      }),
    )
    .max(areas_max)
    .default([]),
  breachReturn: place_with_height.optional(),
});

/** `rallyPoints` of a plan. */
const rallyPart = z.looseObject({
  version: z.literal(2),
  points: z.array(place_with_height).max(points_max).default([]),
});

function fenceItems(fence: z.output<typeof fencePart>): readonly PlannedItem[] {
  const polygons = fence.polygons.flatMap(({ inclusion, polygon }, index) => {
    const command = inclusion ? command_inclusion_polygon : command_exclusion_polygon;
    return polygon.map((corner, at): PlannedItem => {
      const path = `geoFence.polygons[${index}].polygon[${at}]`;
      return { path, item: placed(command, corner, { param1: polygon.length }) };
    });
  });
  const circles = fence.circles.map(({ inclusion, circle: { center, radius } }, index): PlannedItem => {
    const command = inclusion ? command_inclusion_circle : command_exclusion_circle;
    return { path: `geoFence.circles[${index}].circle`, item: placed(command, center, { param1: radius }) };
  });
  const [lat, lon, height_m] = fence.breachReturn ?? [];
  if (lat === undefined || lon === undefined) return [...polygons, ...circles];
  const item = placed(command_fence_return, [lat, lon], { frame: frame_relative, z: height_m ?? 0 });
  return [...polygons, ...circles, { path: 'geoFence.breachReturn', item }];
}

function rallyItems({ points }: z.output<typeof rallyPart>): readonly PlannedItem[] {
  return points.map(([lat, lon, height_m], index) => ({
    path: `rallyPoints.points[${index}]`,
    item: placed(command_rally, [lat, lon], { frame: frame_relative, z: height_m }),
  }));
}

function placed(
  command: number,
  [lat, lon]: readonly [number, number],
  about: Partial<StoredItem>,
): StoredItem {
  const params = { param1: 0, param2: 0, param3: 0, param4: 0 };
  const at = { x: Math.round(lat * 1e7), y: Math.round(lon * 1e7), z: 0, frame: frame_global };
  return { ...params, ...at, command, autocontinue: 0, ...about };
}

/** Returns `geoFence`; undefined when the items are no complete fence. */
export function fenceOf(items: readonly StoredItem[]): JsonObject | undefined {
  const polygons: Json[] = [];
  const circles: Json[] = [];
  let breach_return: readonly Json[] | undefined;
  for (let at = 0; at < items.length; at += 1) {
    const item = items[at];
    if (!item) break;
    const { command, param1 } = item;
    if (command === command_inclusion_polygon || command === command_exclusion_polygon) {
      const corners = items.slice(at, at + param1);
      if (param1 < 1 || corners.length < param1 || corners.some((each) => each.command !== command))
        return undefined;
      const inclusion = command === command_inclusion_polygon;
      polygons.push({ inclusion, polygon: corners.map(placeOf), version: 1 });
      at += param1 - 1;
    } else if (command === command_inclusion_circle || command === command_exclusion_circle) {
      const circle = { center: placeOf(item), radius: rounded(param1) };
      circles.push({ inclusion: command === command_inclusion_circle, circle, version: 1 });
    } else if (command === command_fence_return) breach_return = [...placeOf(item), rounded(item.z)];
    else return undefined;
  }
  return {
    version: 2,
    polygons,
    circles,
    ...(breach_return === undefined ? {} : { breachReturn: breach_return }),
  };
}

function rallyOf(items: readonly StoredItem[]): JsonObject {
  return { version: 2, points: items.map((item) => [...placeOf(item), rounded(item.z)]) };
}

function placeOf({ x, y }: StoredItem): readonly number[] {
  return [x / 1e7, y / 1e7];
}

/** Floats of the wire have seven digits. */
function rounded(value: number): number {
  return Math.round(value * 1_000) / 1_000;
}

export interface PlanContext {
  readonly autopilot: 'ardupilot' | 'px4' | 'other';
  /** MAV_TYPE. */
  readonly vehicle_type: number;
  /** Home as the vehicle reports it; undefined while unknown. */
  readonly home: { readonly lat: number; readonly lon: number; readonly alt_amsl_m: number } | undefined;
}

const firmware_types = { ardupilot: 3, px4: 12, other: 0 } as const;
/** Modes of the altitude in files: relative, above sea level, above the terrain. */
const altitude_modes: ReadonlyMap<number, number> = new Map([
  [0, 2],
  [3, 1],
  [10, 4],
]);

const empty_fence = { version: 2, circles: [], polygons: [] };
const no_rally_points = { version: 2, points: [] };

/** Returns the plan; `no home` while home is unknown, which a plan must have; `incomplete` for a fence of which items are missing. */
export function planOf(
  kind: MissionKind,
  items: readonly MissionItem[],
  context: PlanContext,
): JsonObject | 'incomplete' | 'no home' {
  const { autopilot, vehicle_type, home } = context;
  const own = ownItems(kind, autopilot);
  // The first item of an ArduPilot is its home.
  const [first] = own > 0 ? items : [];
  const planned = first ? { lat: first.x / 1e7, lon: first.y / 1e7, alt_amsl_m: first.z } : home;
  if (!planned) return 'no home';
  const fence = kind === 'fence' ? fenceOf(items) : empty_fence;
  if (!fence) return 'incomplete';
  // Items of a file count from 1, those of PX4 from 0.
  const offset = own > 0 ? 0 : 1;
  const flown = kind === 'mission' ? items.slice(own) : [];
  return {
    fileType: 'Plan',
    version: 1,
    groundStation: 'kit-connector',
    mission: {
      version: 2,
      firmwareType: firmware_types[autopilot],
      vehicleType: vehicle_type,
      plannedHomePosition: [planned.lat, planned.lon, planned.alt_amsl_m],
      items: flown.map((item) => simpleItem(item, offset)),
    },
    geoFence: fence,
    rallyPoints: kind === 'rally' ? rallyOf(items) : no_rally_points,
  };
}

function simpleItem(item: MissionItem, offset: number): JsonObject {
  const frame = plainFrame(item.frame);
  const scale = frame === frame_mission ? 1 : 1e7;
  const jump = item.command === command_jump ? offset : 0;
  const mode = altitude_modes.get(frame);
  return {
    type: 'SimpleItem',
    command: item.command,
    frame,
    autoContinue: item.autocontinue === 1,
    doJumpId: item.seq + offset,
    params: [
      known(item.param1 + jump),
      known(item.param2),
      known(item.param3),
      known(item.param4),
      item.x / scale,
      item.y / scale,
      known(item.z),
    ],
    ...(mode === undefined ? {} : { Altitude: known(item.z), AltitudeMode: mode, AMSLAltAboveTerrain: null }),
  };
}

/** NaN is "not given", which files write as null. */
function known(value: number): number | null {
  return Number.isFinite(value) ? value : null;
}

// Reads QGroundControl's plan files (`.plan`, version 1) into items of the mission protocol. Pure.

/** Larger numbers mean nothing in a parameter. */
const param_max = 1e9;
const number_or_none = z.number().min(-param_max).max(param_max).nullable();
/** Latitudes and longitudes are parameters 5 and 6. */
const params_count = 7;
const code_max = 65_535;

const simpleItemPart = z.looseObject({
  type: z.literal('SimpleItem'),
  command: z.int().min(0).max(code_max),
  frame: z.int().min(0).max(255),
  params: z.array(number_or_none).length(params_count),
  autoContinue: z.boolean().default(true),
  doJumpId: z.int().optional(),
});
type SimpleItem = z.output<typeof simpleItemPart>;

const anyItem = z.looseObject({ type: z.string(), complexItemType: z.string().optional() });

const planPart = z.looseObject({
  fileType: z.literal('Plan'),
  version: z.literal(1),
  mission: z.looseObject({ version: z.literal(2), items: z.array(anyItem).max(items_max) }).optional(),
  geoFence: fencePart.optional(),
  rallyPoints: rallyPart.optional(),
});

/** The items of one part of a plan, and the names of the other parts that are not empty. */
interface ReadPlan {
  readonly items: readonly PlannedItem[];
  readonly others: readonly MissionKind[];
}

/** Returns the reason when the plan cannot be read, naming item and key. */
export function readPlan(
  plan: JsonObject,
  kind: MissionKind,
  autopilot: Autopilot,
): ReadPlan | { readonly fault: string } {
  const parsed = planPart.safeParse(plan);
  if (!parsed.success) return { fault: texts.fault('plan', firstFault(parsed.error)) };
  const { mission, geoFence, rallyPoints } = parsed.data;
  const areas = {
    fence: geoFence ? fenceItems(geoFence) : [],
    rally: rallyPoints ? rallyItems(rallyPoints) : [],
  };
  const given = mission?.items ?? [];
  const counts = { mission: given.length, fence: areas.fence.length, rally: areas.rally.length };
  const others = mission_kinds.filter((each) => each !== kind && counts[each] > 0);
  if (counts[kind] === 0) return { fault: texts.empty(kind) };
  if (counts[kind] > items_max) return { fault: texts.too_many(counts[kind], items_max) };
  if (kind !== 'mission') return { items: areas[kind], others };
  const items = missionItems(given, autopilot);
  return 'fault' in items ? items : { items: items.list, others };
}

type Listed = { readonly list: readonly PlannedItem[] } | { readonly fault: string };

function missionItems(given: readonly z.output<typeof anyItem>[], autopilot: Autopilot): Listed {
  const simple: SimpleItem[] = [];
  for (const [index, item] of given.entries()) {
    const path = pathOf(index);
    if (item.type !== 'SimpleItem') return { fault: texts.complex(path, item.complexItemType ?? item.type) };
    const parsed = simpleItemPart.safeParse(item);
    if (!parsed.success) return { fault: texts.fault(path, firstFault(parsed.error)) };
    simple.push(parsed.data);
  }
  const before = ownItems('mission', autopilot);
  const list: PlannedItem[] = [];
  for (const [index, item] of simple.entries()) {
    const [param1, ...rest] = item.params;
    if (item.command !== command_jump) {
      list.push({ path: pathOf(index), item: storedItem(item, autopilot) });
      continue;
    }
    const target = simple.findIndex(({ doJumpId }) => doJumpId === param1);
    if (target < 0) return { fault: texts.no_jump_target(`${pathOf(index)}.params[0]`, param1 ?? null) };
    const jump = { ...item, params: [target + before, ...rest] };
    list.push({ path: pathOf(index), item: storedItem(jump, autopilot) });
  }
  return { list };
}

function pathOf(index: number): string {
  return `mission.items[${index}]`;
}

/** A value that is not given is NaN for PX4, which ArduPilot refuses. */
function storedItem({ command, frame, params, autoContinue }: SimpleItem, autopilot: Autopilot): StoredItem {
  const none = autopilot === 'px4' ? Number.NaN : 0;
  const [param1, param2, param3, param4, lat, lon, z_m] = params.map((each) => each ?? Number.NaN);
  const [x, y] = [lat, lon].map((each) => coordinate(each, frame));
  return {
    command,
    frame,
    param1: given(param1, none),
    param2: given(param2, none),
    param3: given(param3, none),
    param4: given(param4, none),
    x: x ?? 0,
    y: y ?? 0,
    z: given(z_m, 0),
    autocontinue: autoContinue ? 1 : 0,
  };
}

function coordinate(degrees: number | undefined, frame: number): number {
  const units = given(degrees, 0) * (frame === frame_mission ? 1 : 1e7);
  return Math.round(Math.max(-(2 ** 31), Math.min(2 ** 31 - 1, units)));
}

function given(value: number | undefined, otherwise: number): number {
  return value === undefined || !Number.isFinite(value) ? otherwise : value;
}
