/** Plan files as they come in: what is read of them, and what the local limits refuse, by item and key. */
import { describe, expect, it } from 'vitest';
import { texts as command_texts } from '../../../../../drivers/mavlink/commands/texts.ts';
import { checkPlan } from '../../../../../drivers/mavlink/missions/check-plan.ts';
import type { MissionKind } from '../../../../../drivers/mavlink/vehicles/mission-kinds.ts';
import { readPlan } from '../../../../../drivers/mavlink/missions/plan.ts';
import { texts } from '../../../../../drivers/mavlink/missions/texts.ts';
import { mavlinkOptions } from '../../../../../drivers/mavlink/options.ts';
import type { Situation } from '../../../../../drivers/mavlink/vehicles/situation.ts';
import type { JsonObject } from '../../../../../src/contract/json.ts';
import { field } from '../../../../fakes/fake-drone.ts';
import { situation } from '../commands/situation.ts';
import { placeAt, planFile, simpleItem, waypoint } from './mission-lab.ts';

const home = { lat: field.lat, lon: field.lon, alt_amsl_m: field.alt_amsl_m };
const corner = ([lat, lon]: readonly [number, number]) => ({ lat, lon });
/** A field with a corner that points inwards, between its north-west and its north-east. */
const geofence = [
  placeAt(-100, -100),
  placeAt(100, -100),
  placeAt(0, 0),
  placeAt(100, 100),
  placeAt(-100, 100),
].map(corner);

function fault(
  plan: Readonly<Record<string, unknown>>,
  about: Partial<Situation> = {},
  goto: Readonly<Record<string, unknown>> = {},
  kind: MissionKind = 'mission',
): string | undefined {
  const standing = situation({ position: home, home, ...about });
  const read = readPlan(plan as JsonObject, kind, standing.autopilot);
  if ('fault' in read) return read.fault;
  const limits = mavlinkOptions.parse({ links: [{ kind: 'udp_listen', port: 14_550 }], goto });
  return checkPlan(kind, read.items, standing, limits);
}

const first = 'mission.items[0]';
const heights = { min_m: 2, max_m: 120 };

describe('A mission of a plan', () => {
  it('is taken within the limits', () => {
    const items = [
      simpleItem(22, [0, 0, 0, null, 0, 0, 20]),
      waypoint(100, 100),
      simpleItem(16, [0, 0, 0, null, ...placeAt(10, 10), 530], { frame: 0 }),
      simpleItem(21, [0, 0, 0, null, ...placeAt(0, 0), 0]),
    ];
    expect(fault(planFile(items))).toBeUndefined();
  });

  it('has no time to hold at a waypoint for an ArduPlane, which would not store it', () => {
    const holding = planFile([simpleItem(16, [5, 0, 0, null, ...placeAt(10, 10), 30])]);
    expect(fault(holding)).toBeUndefined();
    expect(fault(holding, { kind: 'plane', autopilot: 'px4' })).toBeUndefined();
    for (const kind of ['plane', 'vtol'] as const)
      expect(fault(holding, { kind })).toBe(texts.fault(`${first}.params[0]`, texts.no_hold_time));
  });

  it.each([21, 22, 84, 85])(
    'must give a PX4, which flies to latitude 0, longitude 0, the place of command %i',
    (command) => {
      const placeless = planFile([waypoint(10, 10), simpleItem(command, [0, 0, 0, null, 0, 0, 20])]);
      expect(fault(placeless)).toBeUndefined();
      expect(fault(placeless, { autopilot: 'px4' })).toBe(
        texts.fault('mission.items[1].params[4]', texts.place_unset),
      );
      const placed = planFile([simpleItem(command, [0, 0, 0, null, ...placeAt(10, 10), 20])]);
      expect(fault(placed, { autopilot: 'px4' })).toBeUndefined();
    },
  );

  it.each<[string, Readonly<Record<string, unknown>>, string]>([
    [
      'a survey',
      { type: 'ComplexItem', complexItemType: 'survey', version: 5 },
      texts.complex(first, 'survey'),
    ],
    [
      'a servo',
      simpleItem(183, [9, 1_900, 0, 0, 0, 0, 0]),
      texts.fault(`${first}.command`, texts.command_unsupported(183)),
    ],
    [
      'arming',
      simpleItem(400, [1, 21_196, 0, 0, 0, 0, 0]),
      texts.fault(`${first}.command`, texts.command_unsupported(400)),
    ],
    [
      'a point too far away',
      waypoint(3_000, 0),
      texts.fault(first, command_texts.target_far(3_000, 'home', 2_000)),
    ],
    [
      'a point too high',
      waypoint(0, 10, 121),
      texts.fault(first, command_texts.target_height(121, 'alt_m 121 is relative', heights)),
    ],
    [
      'a point above sea level that is below home',
      simpleItem(16, [0, 0, 0, null, ...placeAt(0, 10), 30], { frame: 0 }),
      texts.fault(first, command_texts.target_height(-458, 'alt_m 30 is amsl', heights)),
    ],
    [
      'a height above the terrain',
      simpleItem(16, [0, 0, 0, null, ...placeAt(0, 10), 30], { frame: 10 }),
      texts.fault(`${first}.frame`, texts.frame_terrain),
    ],
    [
      'a local frame',
      simpleItem(16, [0, 0, 0, null, ...placeAt(0, 10), 30], { frame: 1 }),
      texts.fault(`${first}.frame`, texts.frame(1)),
    ],
    [
      'coordinates that are not set',
      simpleItem(16, [0, 0, 0, null, 0, 0, 30]),
      texts.fault(`${first}.params[4]`, texts.place_unset),
    ],
    [
      'a latitude that does not exist',
      simpleItem(16, [0, 0, 0, null, 91, 8, 30]),
      texts.fault(first, texts.latitude(91)),
    ],
    [
      'a speed above the limit',
      simpleItem(178, [1, 16, -1, 0, 0, 0, 0], { frame: 2 }),
      texts.fault(`${first}.params[1]`, texts.speed(16, 15)),
    ],
    [
      'a take-off beyond the height',
      simpleItem(22, [0, 0, 0, null, 0, 0, 500]),
      texts.fault(first, command_texts.target_height(500, 'alt_m 500 is relative', heights)),
    ],
    [
      'a jump to nowhere',
      simpleItem(177, [7, 1, 0, 0, 0, 0, 0], { frame: 2 }),
      texts.no_jump_target(`${first}.params[0]`, 7),
    ],
  ])('is refused with %s', (_title, item, sentence) => {
    expect(fault(planFile([item, waypoint(0, 0)]))).toBe(sentence);
  });

  it.each<[string, Readonly<Record<string, unknown>>, string]>([
    ['is no plan', { fileType: 'Mission', version: 1 }, 'plan: fileType'],
    ['is of another version', { ...planFile([]), version: 2 }, 'plan: version'],
    ['has no items', planFile([]), texts.empty('mission')],
    ['has an item with six parameters', planFile([simpleItem(16, [0, 0, 0, 0, 0, 0])]), `${first}: params`],
    [
      'has a text for a number',
      planFile([simpleItem(16, [0, 0, 0, 0, 0, 0, 0], { command: '16' })]),
      `${first}: command`,
    ],
  ])('is refused if the file %s', (_title, plan, begin) => {
    expect(fault(plan)?.startsWith(begin)).toBe(true);
  });

  it('is refused outside the geofence, also on the way between two points inside it', () => {
    const goto = { geofence };
    expect(fault(planFile([waypoint(80, 0)]), {}, goto)).toBe(texts.fault(first, texts.outside));
    const across = planFile([waypoint(80, -90), waypoint(80, 90)]);
    expect(fault(across, {}, goto)).toBe(texts.fault('mission.items[1]', texts.leg_outside(first)));
    const around = [waypoint(80, -90), waypoint(-50, 0), waypoint(80, 90)];
    expect(fault(planFile(around), {}, goto)).toBeUndefined();
    // The jump leads straight back to the first point.
    const jump = simpleItem(177, [1, 2, 0, 0, 0, 0, 0], { frame: 2 });
    for (const autopilot of ['ardupilot', 'px4'] as const) {
      const sentence = texts.fault(first, texts.leg_outside('mission.items[2]'));
      expect(fault(planFile([...around, jump]), { autopilot }, goto)).toBe(sentence);
    }
  });

  it('has no heights for a rover, and needs the home of the vehicle', () => {
    expect(fault(planFile([waypoint(10, 10, 0)]), { kind: 'rover' })).toBeUndefined();
    expect(fault(planFile([waypoint(10, 10)]), { home: undefined })).toBe(texts.home_unknown);
  });
});

describe('A fence of a plan', () => {
  const area = (inclusion: boolean, from_m: number, to_m: number) => ({
    inclusion,
    polygon: [placeAt(from_m, from_m), placeAt(to_m, from_m), placeAt(to_m, to_m), placeAt(from_m, to_m)],
  });
  const fenced = (...polygons: readonly unknown[]) =>
    planFile([], { geoFence: { version: 2, polygons, circles: [] } });

  it('is taken if the vehicle is within it', () => {
    expect(fault(fenced(area(true, -50, 50), area(false, 10, 20)), {}, {}, 'fence')).toBeUndefined();
  });

  it('is refused if the vehicle would breach it at once', () => {
    const including = fenced(area(true, 10, 50));
    expect(fault(including, { autopilot: 'px4', fence_rule: 'any' }, {}, 'fence')).toBe(
      texts.fault('geoFence', texts.not_included),
    );
    const outside = texts.fault('geoFence.polygons[0].polygon[0]', texts.not_in_area);
    expect(fault(including, {}, {}, 'fence')).toBe(outside);
    const excluded = texts.fault('geoFence.polygons[0].polygon[0]', texts.excluded);
    expect(fault(fenced(area(false, -10, 10)), {}, {}, 'fence')).toBe(excluded);
    const circles = [{ inclusion: false, circle: { center: placeAt(5, 5), radius: 20 } }];
    const around = planFile([], { geoFence: { version: 2, circles } });
    expect(fault(around, {}, {}, 'fence')).toBe(texts.fault('geoFence.circles[0].circle', texts.excluded));
  });

  it('is refused with two corners, or a radius below 0', () => {
    const line = fenced({ inclusion: true, polygon: [placeAt(0, 0), placeAt(1, 1)] });
    expect(fault(line, {}, {}, 'fence')).toMatch(/^plan: geoFence\.polygons\.0\.polygon: /u);
    const circles = [{ inclusion: true, circle: { center: placeAt(0, 0), radius: -5 } }];
    const plan = planFile([], { geoFence: { version: 2, circles } });
    expect(fault(plan, {}, {}, 'fence')).toMatch(/^plan: geoFence\.circles\.0\.circle\.radius: /u);
  });
});

describe('Rally points of a plan', () => {
  it('are checked like targets', () => {
    const rally = (place: readonly [number, number], height_m: number) =>
      fault(
        planFile([], { rallyPoints: { version: 2, points: [[...place, height_m]] } }),
        {},
        { geofence },
        'rally',
      );
    const path = 'rallyPoints.points[0]';
    expect(rally(placeAt(-50, 0), 30)).toBeUndefined();
    expect(rally(placeAt(80, 0), 30)).toBe(texts.fault(path, texts.outside));
    expect(rally(placeAt(-50, 0), 1)).toBe(
      texts.fault(path, command_texts.target_height(1, 'alt_m 1 is relative', heights)),
    );
  });
});
