/** Items of missions, fences and rally points, and what each command means for the checks before an upload. */
import type { Messages } from '../wire/messages.ts';

/** As on the wire. */
export type MissionItem = Messages['MISSION_ITEM_INT'];
/** An item without the addresses of its transfer. */
export type StoredItem = Omit<
  MissionItem,
  'current' | 'mission_type' | 'seq' | 'target_component' | 'target_system'
>;

/** An item of a plan, with its place in the file. */
export interface PlannedItem {
  /** Such as `mission.items[3]`. */
  readonly path: string;
  readonly item: StoredItem;
}

export const command_waypoint = 16;
export const command_jump = 177;
export const command_speed = 178;
export const command_fence_return = 5000;
export const command_inclusion_polygon = 5001;
export const command_exclusion_polygon = 5002;
export const command_inclusion_circle = 5003;
export const command_exclusion_circle = 5004;
export const command_rally = 5100;
/** Heights above sea level. */
export const frame_global = 0;
/** Frame of items without a place. */
export const frame_mission = 2;
/** Heights above home. */
export const frame_relative = 3;

/** Frames with integer coordinates, as the ones that files name. */
const plain_frames: ReadonlyMap<number, number> = new Map([
  [5, 0],
  [6, 3],
  [11, 10],
]);

export function plainFrame(frame: number): number {
  return plain_frames.get(frame) ?? frame;
}

/**
 * `flown`: the vehicle flies to the place and its height. `here_or_place`: as well, but without a place it acts where it is.
 * `ground`: the place counts, its height does not. `seen`: a place that it only looks at. `none`: no place.
 */
export type PlaceUse = 'flown' | 'here_or_place' | 'ground' | 'seen' | 'none';

export interface ItemCommand {
  readonly name: string;
  readonly place: PlaceUse;
  /** Numbers of the parameters that change what the vehicle does: it must have stored them as sent. */
  readonly params: readonly number[];
}

/** MAV_CMD that a mission may have. Others, such as servos, relays, parachutes and arming, are refused. */
export const item_commands: ReadonlyMap<number, ItemCommand> = new Map([
  [16, { name: 'WAYPOINT', place: 'flown', params: [1] }],
  [17, { name: 'LOITER_UNLIM', place: 'flown', params: [] }],
  [18, { name: 'LOITER_TURNS', place: 'flown', params: [1] }],
  [19, { name: 'LOITER_TIME', place: 'flown', params: [1] }],
  [20, { name: 'RETURN_TO_LAUNCH', place: 'none', params: [] }],
  [21, { name: 'LAND', place: 'ground', params: [] }],
  [22, { name: 'TAKEOFF', place: 'here_or_place', params: [] }],
  [31, { name: 'LOITER_TO_ALT', place: 'flown', params: [] }],
  [82, { name: 'SPLINE_WAYPOINT', place: 'flown', params: [1] }],
  [84, { name: 'VTOL_TAKEOFF', place: 'here_or_place', params: [] }],
  [85, { name: 'VTOL_LAND', place: 'ground', params: [] }],
  [93, { name: 'DELAY', place: 'none', params: [1] }],
  [112, { name: 'CONDITION_DELAY', place: 'none', params: [1] }],
  [114, { name: 'CONDITION_DISTANCE', place: 'none', params: [1] }],
  [115, { name: 'CONDITION_YAW', place: 'none', params: [1] }],
  [177, { name: 'DO_JUMP', place: 'none', params: [1, 2] }],
  [178, { name: 'DO_CHANGE_SPEED', place: 'none', params: [1, 2] }],
  [189, { name: 'DO_LAND_START', place: 'none', params: [] }],
  [195, { name: 'DO_SET_ROI_LOCATION', place: 'seen', params: [] }],
  [197, { name: 'DO_SET_ROI_NONE', place: 'none', params: [] }],
  [201, { name: 'DO_SET_ROI', place: 'seen', params: [] }],
  [203, { name: 'DO_DIGICAM_CONTROL', place: 'none', params: [] }],
  [205, { name: 'DO_MOUNT_CONTROL', place: 'none', params: [] }],
  [206, { name: 'DO_SET_CAM_TRIGG_DIST', place: 'none', params: [1] }],
  [530, { name: 'SET_CAMERA_MODE', place: 'none', params: [] }],
  [1000, { name: 'DO_GIMBAL_MANAGER_PITCHYAW', place: 'none', params: [] }],
  [2000, { name: 'IMAGE_START_CAPTURE', place: 'none', params: [] }],
  [2001, { name: 'IMAGE_STOP_CAPTURE', place: 'none', params: [] }],
  [2500, { name: 'VIDEO_START_CAPTURE', place: 'none', params: [] }],
  [2501, { name: 'VIDEO_STOP_CAPTURE', place: 'none', params: [] }],
  [3000, { name: 'DO_VTOL_TRANSITION', place: 'none', params: [1] }],
]);
