/** Writes missions as QGroundControl's plan files (`.plan`, version 1). Pure. */
import type { JsonObject } from '../../../src/contract/json.ts';
import { command_jump, frame_mission, type MissionItem, plainFrame } from './item.ts';
import { type MissionKind, ownItems } from './kinds.ts';
import { fenceOf, rallyOf } from './plan-areas.ts';

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
