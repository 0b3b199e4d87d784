/** Compares what a vehicle has stored with what was sent. Autopilots store items in their own formats. Pure. */
import {
  command_exclusion_circle,
  command_fence_return,
  command_rally,
  command_speed,
  item_commands,
  plainFrame,
  type StoredItem,
} from './item.ts';
import { createHash } from 'node:crypto';
import type { Autopilot } from '../reports/kind.ts';
import { type MissionKind, ownItems } from '../vehicles/mission-kinds.ts';

/** ArduPilot stores centimetres, and whole metres for rally points. */
const altitude_tolerance_m = 0.02;
const rally_tolerance_m = 1;
/** One unit is a centimetre on the ground. */
const place_tolerance = 1;
/** ArduPilot cuts many parameters to integers. */
const param_tolerance = 0.99;
const speed_tolerance_mps = 0.05;
/** Of the radius of a circle, in metres, and of the number of corners. */
const fence_tolerance = 0.5;
const param_names = ['param1', 'param2', 'param3', 'param4'] as const;
const differences_max = 3;

/** One value that the vehicle has stored differently. */
export interface Difference {
  /** Index of the item as sent. */
  readonly index: number;
  readonly field: 'altitude' | 'command' | 'frame' | 'latitude' | 'longitude' | (typeof param_names)[number];
  readonly sent: number;
  readonly stored: number;
}

export interface Comparison {
  /** Items at the start that are as sent. */
  readonly same: number;
  /** Of the first item that changes what the vehicle does. */
  readonly differences: readonly Difference[];
  /** Parameters that the autopilot does not keep and that do not change where it flies. */
  readonly not_kept: readonly Difference[];
}

/** `first`: items before it are the vehicle's own, such as the home of an ArduPilot. */
export function compare(
  sent: readonly StoredItem[],
  stored: readonly StoredItem[],
  first: number,
): Comparison {
  const not_kept: Difference[] = [];
  for (let index = first; index < sent.length; index += 1) {
    const [ours, theirs] = [sent[index], stored[index]];
    if (!ours || !theirs) return { same: index, differences: [], not_kept };
    const differences = essential({ ours, theirs, index });
    if (differences.length > 0)
      return { same: index, differences: differences.slice(0, differences_max), not_kept };
    not_kept.push(...lost({ ours, theirs, index }));
  }
  return { same: sent.length, differences: [], not_kept };
}

interface Pair {
  readonly ours: StoredItem;
  readonly theirs: StoredItem;
  readonly index: number;
}

function essential(pair: Pair): readonly Difference[] {
  const { ours, theirs, index } = pair;
  if (ours.command !== theirs.command)
    return [{ index, field: 'command', sent: ours.command, stored: theirs.command }];
  const { place, height, params, tolerance } = usesOf(ours.command);
  const set = params.flatMap((number): readonly Difference[] => {
    const field = param_names[number - 1];
    if (!field || isNear(ours[field], theirs[field], tolerance)) return [];
    return [{ index, field, sent: ours[field], stored: theirs[field] }];
  });
  return [...(place ? placeOf(pair) : []), ...(height ? heightOf(pair) : []), ...set];
}

/** 0, 0 means "where the vehicle is", which an autopilot may store as it likes. */
function placeOf({ ours, theirs, index }: Pair): readonly Difference[] {
  if (ours.x === 0 && ours.y === 0) return [];
  const found: Difference[] = [];
  if (Math.abs(ours.x - theirs.x) > place_tolerance)
    found.push({ index, field: 'latitude', sent: ours.x / 1e7, stored: theirs.x / 1e7 });
  if (Math.abs(ours.y - theirs.y) > place_tolerance)
    found.push({ index, field: 'longitude', sent: ours.y / 1e7, stored: theirs.y / 1e7 });
  return found;
}

function heightOf({ ours, theirs, index }: Pair): readonly Difference[] {
  const found: Difference[] = [];
  const [sent, stored] = [plainFrame(ours.frame), plainFrame(theirs.frame)];
  if (sent !== stored) found.push({ index, field: 'frame', sent, stored });
  const tolerance_m = ours.command === command_rally ? rally_tolerance_m : altitude_tolerance_m;
  if (!isNear(ours.z, theirs.z, tolerance_m))
    found.push({ index, field: 'altitude', sent: ours.z, stored: theirs.z });
  return found;
}

/** Returns parameters with a value that the vehicle has not stored. */
function lost({ ours, theirs, index }: Pair): readonly Difference[] {
  return param_names.flatMap((field): readonly Difference[] => {
    const sent = ours[field];
    const isSet = Number.isFinite(sent) && sent !== 0;
    return isSet && !isNear(sent, theirs[field], param_tolerance)
      ? [{ index, field, sent, stored: theirs[field] }]
      : [];
  });
}

interface Uses {
  readonly place: boolean;
  readonly height: boolean;
  readonly params: readonly number[];
  /** Of the parameters. */
  readonly tolerance: number;
}

function usesOf(command: number): Uses {
  const known = item_commands.get(command);
  if (known) {
    const { place, params } = known;
    const height = place === 'flown' || place === 'here_or_place';
    const tolerance = command === command_speed ? speed_tolerance_mps : param_tolerance;
    return { place: place !== 'none', height, params, tolerance };
  }
  const isFence = command >= command_fence_return && command <= command_exclusion_circle;
  // Corners of a polygon have their number as parameter 1, circles their radius.
  const params = isFence && command !== command_fence_return ? [1] : [];
  return { place: true, height: !isFence, params, tolerance: fence_tolerance };
}

/** Not given and 0 are the same. */
function isNear(a: number, b: number, tolerance: number): boolean {
  const [sent, stored] = [Number.isFinite(a) ? a : 0, Number.isFinite(b) ? b : 0];
  return Math.abs(sent - stored) <= tolerance;
}

// A digest of what a vehicle has stored: equal items have equal digests. Pure.

/** Returns the SHA-256 of the items without the vehicle's own ones, as hexadecimal digits. */
export function digestOf(kind: MissionKind, autopilot: Autopilot, items: readonly StoredItem[]): string {
  const listed = items
    .slice(ownItems(kind, autopilot))
    .map(({ command, frame, param1, param2, param3, param4, x, y, z }) =>
      [command, plainFrame(frame), param1, param2, param3, param4, x, y, z].map(String).join(' '),
    );
  return createHash('sha256').update(listed.join('\n')).digest('hex');
}
