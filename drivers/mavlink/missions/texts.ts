/** Sentences about missions that people read; tests refer to them by name. */
import type { MissionKind } from '../vehicles/mission-kinds.ts';

const names: Readonly<Record<MissionKind, string>> = {
  mission: 'mission',
  fence: 'fence',
  rally: 'list of rally points',
};
const item_names: Readonly<Record<MissionKind, string>> = {
  mission: 'mission item',
  fence: 'fence item',
  rally: 'rally point',
};

/** MAV_MISSION_RESULT: name and meaning. */
const acks: readonly (readonly [name: string, meaning: string])[] = [
  ['ACCEPTED', 'accepted'],
  ['ERROR', 'it cannot do this now'],
  ['UNSUPPORTED_FRAME', 'an altitude frame is not supported'],
  ['UNSUPPORTED', 'a command is not supported'],
  ['NO_SPACE', 'its memory is too small for all items'],
  ['INVALID', 'an item is invalid'],
  ['INVALID_PARAM1', 'parameter 1 of an item is invalid'],
  ['INVALID_PARAM2', 'parameter 2 of an item is invalid'],
  ['INVALID_PARAM3', 'parameter 3 of an item is invalid'],
  ['INVALID_PARAM4', 'parameter 4 of an item is invalid'],
  ['INVALID_PARAM5_X', 'the latitude of an item is invalid'],
  ['INVALID_PARAM6_Y', 'the longitude of an item is invalid'],
  ['INVALID_PARAM7', 'the altitude of an item is invalid'],
  ['INVALID_SEQUENCE', 'an item arrived out of order'],
  ['DENIED', 'it accepts no such request from this station'],
  ['OPERATION_CANCELLED', 'the transfer was cancelled'],
];

export function ackText(type: number): string {
  const [name, meaning] = acks[type] ?? [];
  return name === undefined ? `result ${type}` : `${name}: ${meaning}`;
}

export const texts = {
  reading: (vehicle: string, done: number, all: number) => `${vehicle}: ${done} of ${all} items read`,
  writing: (vehicle: string, done: number, all: number) => `${vehicle}: ${done} of ${all} items sent`,
  unanswered: (vehicle: string, what: string, requests: number) =>
    `${vehicle} did not answer ${requests} messages about ${what}`,
  the_transfer: (kind: MissionKind) => `the transfer of a ${names[kind]}`,
  the_count: (kind: MissionKind) => `its ${names[kind]}`,
  the_upload: (kind: MissionKind) => `the new ${names[kind]}`,
  the_clearing: (kind: MissionKind) => `the removal of its ${names[kind]}`,
  item: (kind: MissionKind, seq: number) => `${item_names[kind]} ${seq}`,
  refused: (vehicle: string, what: string, result: string) => `${vehicle} refused ${what} (${result})`,
  gave_up: (vehicle: string, attempts: number) => `${vehicle} ended the transfer ${attempts} times`,
  busy: (vehicle: string, station: number | undefined) =>
    `${vehicle} is busy with a transfer of another station${station === undefined ? '' : ` (system ${station})`}; repeat the command when that has ended`,
  other_station: (station: number) => `another station (system ${station}) transferred with it meanwhile`,
  interrupted: (vehicle: string) => `${vehicle} restarted or changed its link during the transfer`,
  stopped: (vehicle: string) => `the task was stopped during the transfer with ${vehicle}`,
  too_late: (vehicle: string) => `the deadline of the task passed during the transfer with ${vehicle}`,
  changing: (vehicle: string, kind: MissionKind) =>
    `another station keeps changing the ${names[kind]} of ${vehicle}; repeat the command when that has ended`,
  too_long: (vehicle: string, kind: MissionKind, { count, max }: { count: number; max: number }) =>
    `${vehicle} has a ${names[kind]} of ${count} items; ${max} can be read`,
  incomplete_fence: (vehicle: string) => `${vehicle} has a fence with incomplete areas`,
  unsupported: (vehicle: string, kind: MissionKind) =>
    `${vehicle} reports no support for a ${names[kind]} in the mission protocol`,
  fault: (path: string, what: string) => `${path}: ${what}`,
  complex: (path: string, type: string) =>
    `${path}: complex item ${type} is not supported; convert it to waypoints in the ground station`,
  no_jump_target: (path: string, id: number | null) => `${path}: no item has doJumpId ${id}`,
  empty: (kind: MissionKind) => `plan: has no ${item_names[kind]}; clear_mission removes what is stored`,
  too_many: (count: number, max: number) => `plan: has ${count} items; ${max} are allowed`,
  command_unsupported: (command: number) => `command ${command} is not supported in missions`,
  speed: (given: number, max: number) =>
    `speed ${given} m/s; above 0 up to ${max} m/s are allowed (speed_max_mps)`,
  frame_terrain: 'heights above the terrain cannot be checked; use heights above home or above sea level',
  frame: (frame: number) => `frame ${frame} is not supported; use 0 (above sea level) or 3 (above home)`,
  no_hold_time: 'this autopilot does not hold at waypoints; use a loiter item instead',
  place_unset: 'coordinates are not set (latitude 0, longitude 0)',
  latitude: (given: number) => `latitude ${given} is not within -90 and 90`,
  longitude: (given: number) => `longitude ${given} is not within -180 and 180`,
  outside: 'outside the geofence (goto.geofence)',
  leg_outside: (from: string) => `the leg from ${from} leaves the geofence (goto.geofence)`,
  excluded: 'the vehicle is inside this exclusion area',
  not_included: 'the vehicle is outside every inclusion area',
  not_in_area: 'the vehicle is outside this inclusion area',
  dropped: (includes: boolean) =>
    `home is ${includes ? 'outside this inclusion' : 'inside this exclusion'} area: a PX4 accepts it and does not enforce it`,
  fence_item: (index: number) => `fence item ${index}`,
  target_against_fence: (area: { readonly path: string; readonly includes: boolean } | undefined) =>
    area === undefined
      ? 'target is outside every inclusion area of the fence that the vehicle has stored'
      : `target is ${area.includes ? 'outside an inclusion' : 'inside an exclusion'} area of the fence that the vehicle has stored (${area.path}; download_mission kind fence shows it)`,
  way_against_fence: 'the straight way to the target leaves the fence that the vehicle has stored',
  circle_against_fence: 'the circle leaves the fence that the vehicle has stored',
  above_fence: (height_m: number, { name, max_m }: { name: string; max_m: number }) =>
    `target is ${height_m} m above home; the fence of the vehicle allows ${max_m} m above home (${name})`,
  beyond_fence: (away_m: number, { name, max_m }: { name: string; max_m: number }) =>
    `target is ${away_m} m from home; the fence of the vehicle allows ${max_m} m from home (${name})`,
  fence_disabled:
    'the vehicle stores this fence and does not enforce it: FENCE_ENABLE is 0; enable_fence enables it. The kit holds its own commands to it',
  not_enforced: (why: string) =>
    `the vehicle stores this fence and does not enforce it: ${why}. The kit holds its own commands to it`,
  only_reported: (why: string) => `the vehicle reports a breach of this fence and does nothing: ${why}`,
  enforcement_unknown: (names: string) =>
    `whether the vehicle enforces this fence is not known: it did not answer for ${names}`,
  home_unknown: 'home position unknown; wait until the vehicle reports it',
  underway: 'vehicle is airborne or on its mission (allow_airborne)',
  airborne_unknown: 'vehicle does not report whether it is airborne (allow_airborne)',
  kind_unsupported: (kind: string) => `missions of vehicles of kind ${kind} are not supported`,
  /** What the vehicle has now, after a transfer that did not end well. */
  holds: (kind: MissionKind, { held, same, all }: { held: number; same: number; all: number }) =>
    `its ${names[kind]} has ${held} items now, ${same} of them as in the plan of ${all}`,
  ended_early: ({ sent, all }: { sent: number; all: number }, reason: string) =>
    `the upload ended after ${sent} of ${all} items: ${reason}`,
  differs: (path: string, { field, sent, stored }: { field: string; sent: number; stored: number }) =>
    `${path}: ${field} was sent as ${sent} and stored as ${stored}`,
  not_read_back: (vehicle: string, reason: string) =>
    `the items that ${vehicle} has stored could not be read (${reason})`,
  away: 'it is offline',
  not_cleared: (vehicle: string, kind: MissionKind, left: number) =>
    `${vehicle} still has a ${names[kind]} of ${left} items`,
  not_in_mission: 'vehicle is not on its mission',
  on_mission: 'vehicle is on its mission already',
  no_mission: 'vehicle has no mission',
  digest_unknown: 'the stored mission is unknown; read it with download_mission first',
  digest_differs: 'the stored mission has another digest',
  item_not_set: (vehicle: string, item: number) => `${vehicle} did not go to item ${item} of its mission`,
} as const;
