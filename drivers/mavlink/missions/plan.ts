/** Writes missions as QGroundControl's plan files (`.plan`, version 1). Pure. */
import type { JsonObject } from '../../../src/contract/json.ts';
import type { MissionItem } from './download.ts';

export interface PlanContext {
  readonly autopilot: 'ardupilot' | 'px4' | 'other';
  /** MAV_TYPE. */
  readonly vehicle_type: number;
  /** Home as the vehicle reports it; undefined while unknown. */
  readonly home: { readonly lat: number; readonly lon: number; readonly alt_amsl_m: number } | undefined;
}

const firmware_types = { ardupilot: 3, px4: 12, other: 0 } as const;
const command_jump = 177;
/** Frames whose x and y are no coordinates. */
const frame_mission = 2;
/** Frames of the protocol with integer coordinates, as files name them. */
const plain_frames: ReadonlyMap<number, number> = new Map([
  [5, 0],
  [6, 3],
  [11, 10],
]);
/** Modes of the altitude in files: relative, above sea level, above the terrain. */
const altitude_modes: ReadonlyMap<number, number> = new Map([
  [0, 2],
  [3, 1],
  [10, 4],
]);

/** Returns the plan; undefined while home is unknown, which a plan must have. */
export function planOf(items: readonly MissionItem[], context: PlanContext): JsonObject | undefined {
  const { autopilot, vehicle_type, home } = context;
  // The first item of an ArduPilot is its home.
  const [first] = autopilot === 'ardupilot' ? items : [];
  const planned = first ? { lat: first.x / 1e7, lon: first.y / 1e7, alt_amsl_m: first.z } : home;
  if (!planned) return undefined;
  const flown = first ? items.slice(1) : items;
  // Items of a file count from 1, those of PX4 from 0.
  const offset = autopilot === 'ardupilot' ? 0 : 1;
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
    geoFence: { version: 2, circles: [], polygons: [] },
    rallyPoints: { version: 2, points: [] },
  };
}

function simpleItem(item: MissionItem, offset: number): JsonObject {
  const frame = plain_frames.get(item.frame) ?? item.frame;
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
