/** Fences and rally points in plan files and as items of the mission protocol, both ways. Pure. */
import { z } from 'zod';
import { latitude, longitude } from '../../../src/contract/assets.ts';
import type { Json, JsonObject } from '../../../src/contract/json.ts';
import {
  command_exclusion_circle,
  command_exclusion_polygon,
  command_fence_return,
  command_inclusion_circle,
  command_inclusion_polygon,
  command_rally,
  frame_global,
  frame_relative,
  type PlannedItem,
  type StoredItem,
} from './item.ts';

/** ArduPilot counts the corners of a polygon in one byte. */
const corners_max = 255;
const areas_max = 100;
const points_max = 100;
const radius_max_m = 100_000;

const place = z.tuple([latitude, longitude]);
const place_with_height = z.tuple([latitude, longitude, z.number()]);

/** `geoFence` of a plan. */
export const fencePart = z.looseObject({
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
export const rallyPart = z.looseObject({
  version: z.literal(2),
  points: z.array(place_with_height).max(points_max).default([]),
});

/** Returns the items of a fence. */
export function fenceItems(fence: z.output<typeof fencePart>): readonly PlannedItem[] {
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

/** Returns the items of rally points. */
export function rallyItems({ points }: z.output<typeof rallyPart>): readonly PlannedItem[] {
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

/** Returns `rallyPoints`. */
export function rallyOf(items: readonly StoredItem[]): JsonObject {
  return { version: 2, points: items.map((item) => [...placeOf(item), rounded(item.z)]) };
}

function placeOf({ x, y }: StoredItem): readonly number[] {
  return [x / 1e7, y / 1e7];
}

/** Floats of the wire have seven digits. */
function rounded(value: number): number {
  return Math.round(value * 1_000) / 1_000;
}
