/** Reads QGroundControl's plan files (`.plan`, version 1) into items of the mission protocol. Pure. */
import { z } from 'zod';
import { firstFault } from '../../../src/contract/first-fault.ts';
import type { JsonObject } from '../../../src/contract/json.ts';
import type { Autopilot } from '../vehicles/kind.ts';
import { command_jump, frame_mission, type PlannedItem, type StoredItem } from './item.ts';
import { mission_kinds, type MissionKind, ownItems } from './kinds.ts';
import { fenceItems, fencePart, rallyItems, rallyPart } from './plan-areas.ts';
import { texts } from './texts.ts';
import { items_max } from './transfer.ts';

/** Larger numbers mean nothing in a parameter. */
const param_max = 1e9;
const number_or_none = z.number().min(-param_max).max(param_max).nullable();
/** Latitudes and longitudes are parameters 5 and 6. */
const params_count = 7;
const code_max = 65_535;

const simpleItem = z.looseObject({
  type: z.literal('SimpleItem'),
  command: z.int().min(0).max(code_max),
  frame: z.int().min(0).max(255),
  params: z.array(number_or_none).length(params_count),
  autoContinue: z.boolean().default(true),
  doJumpId: z.int().optional(),
});
type SimpleItem = z.output<typeof simpleItem>;

const anyItem = z.looseObject({ type: z.string(), complexItemType: z.string().optional() });

const planPart = z.looseObject({
  fileType: z.literal('Plan'),
  version: z.literal(1),
  mission: z.looseObject({ version: z.literal(2), items: z.array(anyItem).max(items_max) }).optional(),
  geoFence: fencePart.optional(),
  rallyPoints: rallyPart.optional(),
});

/** The items of one part of a plan, and the names of the other parts that are not empty. */
export interface ReadPlan {
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
    const parsed = simpleItem.safeParse(item);
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
