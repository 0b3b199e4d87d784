/** What counts as the plan that was sent, although an autopilot stores its items in another format. */
import { describe, expect, it } from 'vitest';
import { compare } from '../../../../../drivers/mavlink/missions/compare.ts';
import {
  command_fence_return,
  command_inclusion_circle,
  command_inclusion_polygon,
  command_rally,
  command_speed,
  command_waypoint,
  type StoredItem,
} from '../../../../../drivers/mavlink/missions/item.ts';

const waypoint: StoredItem = {
  command: command_waypoint,
  frame: 3,
  autocontinue: 1,
  param1: 2,
  param2: 0,
  param3: 0,
  param4: Number.NaN,
  x: 473_977_420,
  y: 85_455_940,
  z: 30,
};
const return_home: StoredItem = { ...waypoint, command: 20, frame: 2, param1: 0, x: 0, y: 0, z: 0 };

function differencesOf(sent: StoredItem, stored: StoredItem) {
  return compare([sent], [stored], 0).differences.map(({ field }) => field);
}

describe('Comparison of a plan with what the vehicle stored', () => {
  it('accepts an equal plan and counts its items', () => {
    const plan = [waypoint, return_home];
    expect(compare(plan, plan, 0)).toEqual({ same: 2, differences: [], not_kept: [] });
  });

  it('names index, field and both values of the first item that differs', () => {
    const stored = [waypoint, { ...waypoint, z: 80 }, { ...waypoint, x: 0 }];
    expect(compare([waypoint, waypoint, waypoint], stored, 0)).toEqual({
      same: 1,
      differences: [{ index: 1, field: 'altitude', sent: 30, stored: 80 }],
      not_kept: [],
    });
  });

  it('does not compare the item that the vehicle keeps for itself', () => {
    const home = { ...waypoint, x: 1, y: 1, z: 400 };
    expect(compare([waypoint, return_home], [home, return_home], 1).differences).toEqual([]);
  });

  it('stops at the items that are missing', () => {
    expect(compare([waypoint, waypoint], [waypoint], 0)).toMatchObject({ same: 1, differences: [] });
  });

  it('reports another command alone, since its values mean something else', () => {
    expect(differencesOf(waypoint, { ...return_home, param1: 9 })).toEqual(['command']);
  });

  it('reports at most three differences', () => {
    const other = { ...waypoint, frame: 0, param1: 40, x: 1, y: 1, z: 0 };
    expect(differencesOf(waypoint, other)).toHaveLength(3);
  });

  it.each([
    ['a centimetre of place', { x: 473_977_421, y: 85_455_939 }, []],
    ['two centimetres of latitude', { x: 473_977_422 }, ['latitude']],
    ['two centimetres of longitude', { y: 85_455_942 }, ['longitude']],
    ['an altitude in whole centimetres', { z: 30.015 }, []],
    ['an altitude that is a metre lower', { z: 29 }, ['altitude']],
    ['the same frame for integers', { frame: 6 }, []],
    ['heights above sea level', { frame: 0 }, ['frame']],
    ['a time of waiting without its fraction', { param1: 1.4 }, []],
    ['another time of waiting', { param1: 3 }, ['param1']],
    ['0 instead of a heading that was not given', { param4: 0 }, []],
  ] as const)('judges %s of a waypoint', (_what, change, fields) => {
    expect(differencesOf(waypoint, { ...waypoint, ...change })).toEqual(fields);
  });

  it('lets the vehicle store what it likes where no place was sent', () => {
    const takeoff = { ...waypoint, command: 22, param1: 0, x: 0, y: 0 };
    expect(differencesOf(takeoff, { ...takeoff, x: 473_977_420, y: 85_455_940 })).toEqual([]);
  });

  it('ignores place and height of a command that has none', () => {
    expect(differencesOf(return_home, { ...return_home, x: 5, y: 5, z: 100, frame: 0 })).toEqual([]);
  });

  it('takes a landing at its place, whatever its height', () => {
    const land = { ...waypoint, command: 21, param1: 0, z: 0 };
    expect(differencesOf(land, { ...land, z: 12, frame: 0 })).toEqual([]);
    expect(differencesOf(land, { ...land, y: 85_460_000 })).toEqual(['longitude']);
  });

  it('tolerates 5 cm/s of a speed and no more', () => {
    const speed = { ...return_home, command: command_speed, param1: 1, param2: 8 };
    expect(differencesOf(speed, { ...speed, param2: 8.04 })).toEqual([]);
    expect(differencesOf(speed, { ...speed, param2: 8.5 })).toEqual(['param2']);
  });

  it('tolerates whole metres of a rally point', () => {
    const rally = { ...waypoint, command: command_rally, param1: 0, z: 30.6 };
    expect(differencesOf(rally, { ...rally, z: 30 })).toEqual([]);
    expect(differencesOf(rally, { ...rally, z: 32 })).toEqual(['altitude']);
  });

  it('holds corners, radius and place of a fence to be essential, and its height not', () => {
    const circle = { ...waypoint, command: command_inclusion_circle, param1: 120 };
    expect(differencesOf(circle, { ...circle, param1: 120.4, z: 0, frame: 0 })).toEqual([]);
    expect(differencesOf(circle, { ...circle, param1: 121 })).toEqual(['param1']);
    const corner = { ...waypoint, command: command_inclusion_polygon, param1: 4 };
    expect(differencesOf(corner, { ...corner, param1: 3 })).toEqual(['param1']);
    const back = { ...waypoint, command: command_fence_return };
    expect(differencesOf(back, { ...back, param1: 50 })).toEqual([]);
    expect(differencesOf(back, { ...back, x: 0 })).toEqual(['latitude']);
  });

  it('reports what the vehicle did not keep and does not need to fly the plan', () => {
    const sent = { ...waypoint, param2: 5, param3: Number.NaN };
    expect(compare([sent], [{ ...sent, param2: 0, param3: 7 }], 0)).toEqual({
      same: 1,
      differences: [],
      not_kept: [{ index: 0, field: 'param2', sent: 5, stored: 0 }],
    });
  });
});
