/** The fence that a vehicle has stored: whether it enforces it, and that the kit's own commands are held to it. */
import { describe, expect, it } from 'vitest';
import { texts as command_texts } from '../../../../../drivers/mavlink/commands/texts.ts';
import { texts } from '../../../../../drivers/mavlink/missions/texts.ts';
import { messageOf } from '../../../../../src/platform/errors.ts';
import { autopilotVersion } from '../../../../../drivers/mavlink/sim/telemetry.ts';
import { type MissionDrone, missionItem } from '../../../../fakes/mission-drone.ts';
import type { MavlinkLab } from '../mavlink-lab.ts';
import { placeAt, planFile, withMission } from './mission-lab.ts';

const name = 'Quadrotor 1';
const long = { remaining_ms: 60_000 };
const refused = (reason: string): string => command_texts.not_sent(command_texts.about(name, reason));
const corners = [placeAt(200, -200), placeAt(200, 200), placeAt(-200, 200), placeAt(-200, -200)];
const hole = [placeAt(90, -20), placeAt(90, 20), placeAt(110, 20), placeAt(110, -20)];
const geoFence = {
  version: 2,
  polygons: [
    { inclusion: true, polygon: corners, version: 1 },
    { inclusion: false, polygon: hole, version: 1 },
  ],
  circles: [],
};
const payload = { kind: 'fence', plan: planFile([], { geoFence }), allow_airborne: true };
type Payload = NonNullable<Parameters<MavlinkLab['command']>[1]>;

async function goTo(lab: MavlinkLab, [north_m, east_m]: readonly [number, number], alt_m = 40) {
  const [lat, lon] = placeAt(north_m, east_m);
  return lab.command('goto_waypoint', { lat, lon, alt_m });
}

describe.concurrent('upload_mission of a fence', () => {
  it.each([
    ['ardupilot', {}, { enforced: false, warning: texts.fence_disabled }],
    ['ardupilot', { FENCE_ENABLE: 1 }, { enforced: true }],
    [
      'ardupilot',
      { FENCE_ENABLE: 1, FENCE_TYPE: 3 },
      { enforced: false, warning: texts.not_enforced('FENCE_TYPE is 3, without areas (4)') },
    ],
    [
      'ardupilot',
      { FENCE_ENABLE: 1, FENCE_ACTION: 0 },
      { enforced: false, warning: texts.only_reported('FENCE_ACTION is 0') },
    ],
    ['px4', {}, { enforced: true }],
    ['px4', { GF_ACTION: 0 }, { enforced: false, warning: texts.not_enforced('GF_ACTION is 0') }],
    ['px4', { GF_ACTION: 1 }, { enforced: false, warning: texts.only_reported('GF_ACTION is 1') }],
  ] as const)('says whether the vehicle enforces it: %s %o', async (autopilot, set, expected) => {
    await withMission({ autopilot }, async (lab, drone) => {
      for (const [key, value] of Object.entries(set))
        drone.parameters.stored.set(key, { value, isInteger: true });
      expect(await lab.command('upload_mission', payload, long)).toMatchObject(expected);
    });
  });

  it('says that it does not know where the parameters are not answered', async () => {
    await withMission({}, async (lab, drone) => {
      drone.withheld.add('PARAM_VALUE');
      const names = 'FENCE_ENABLE, FENCE_TYPE, FENCE_ACTION';
      expect(await lab.command('upload_mission', payload, long)).toMatchObject({
        enforced: null,
        warning: texts.enforcement_unknown(names),
      });
    });
  });
});

/** PX4-Autopilot#22394: from 1.15 on each area counts, and those without home are accepted and dropped. */
describe.concurrent('Several areas of a PX4', () => {
  const square = (east_m: number): readonly (readonly number[])[] => [
    placeAt(200, east_m - 200),
    placeAt(200, east_m + 200),
    placeAt(-200, east_m + 200),
    placeAt(-200, east_m - 200),
  ];
  const areas = (...easts_m: readonly number[]): Payload => {
    const polygons = easts_m.map((east_m) => ({ inclusion: true, polygon: square(east_m), version: 1 }));
    return {
      kind: 'fence',
      plan: planFile([], { geoFence: { version: 2, polygons, circles: [] } }),
    };
  };
  const released = { '1.14': 0x01_0e_00_ff, '1.15': 0x01_0f_00_ff } as const;
  const withRelease = async (
    release: keyof typeof released,
    fn: (lab: MavlinkLab, drone: MissionDrone) => Promise<void>,
  ) =>
    withMission({ autopilot: 'px4' }, async (lab, drone) => {
      drone.fills = { AUTOPILOT_VERSION: { flight_sw_version: released[release] } };
      drone.send('AUTOPILOT_VERSION', autopilotVersion(drone.uid));
      await lab.sees('battery');
      await fn(lab, drone);
    });

  it.each([
    ['1.14', 250, undefined],
    ['1.15', 250, texts.target_against_fence({ path: texts.fence_item(0), includes: true })],
    ['1.15', 150, undefined],
  ] as const)('hold the commands of the kit as %s does, %i m east', async (release, east_m, reason) => {
    await withRelease(release, async (lab) => {
      await lab.command('upload_mission', { ...areas(0, 100), allow_airborne: true }, long);
      const refusal = await goTo(lab, [0, east_m]).then(() => undefined, messageOf);
      expect(refusal).toBe(reason && refused(reason));
    });
  });

  it('are refused where it would drop one', async () => {
    await withRelease('1.15', async (lab, drone) => {
      Object.assign(drone.flight, { lat: placeAt(0, 150)[0], lon: placeAt(0, 150)[1] });
      drone.flight.mode = 'LOITER';
      await lab.sees('gps', ({ lon }) => Math.abs(Number(lon) - placeAt(0, 150)[1]) < 1e-6);
      const upload = lab.command('upload_mission', { ...areas(0, 250), allow_airborne: true }, long);
      await expect(upload).rejects.toThrow(
        texts.fault('geoFence.polygons[1].polygon[0]', texts.dropped(true)),
      );
    });
  });

  it('are not enforced where it says so', async () => {
    await withRelease('1.15', async (lab, drone) => {
      const words = "Geofence invalid, doesn't contain Home position";
      drone.onParameters = () => drone.sendText(words);
      const upload = lab.command('upload_mission', { ...areas(0), allow_airborne: true }, long);
      await expect(upload).resolves.toMatchObject({ enforced: false, warning: texts.not_enforced(words) });
    });
  });
});

describe.concurrent('The stored fence', () => {
  it.each(['ardupilot', 'px4'] as const)('holds the own commands of the kit: %s', async (autopilot) => {
    await withMission({ autopilot }, async (lab, drone) => {
      await lab.command('upload_mission', payload, long);
      const inclusion = texts.target_against_fence({ path: texts.fence_item(0), includes: true });
      await expect(goTo(lab, [0, 250])).rejects.toThrow(refused(inclusion));
      await expect(goTo(lab, [100, 0])).rejects.toThrow(
        refused(texts.target_against_fence({ path: texts.fence_item(4), includes: false })),
      );
      drone.flight.mode = 'LOITER';
      Object.assign(drone.flight, { lat: placeAt(60, 0)[0], lon: placeAt(60, 0)[1] });
      await lab.sees('gps', ({ lat }) => Math.abs(Number(lat) - placeAt(60, 0)[0]) < 1e-6);
      await expect(goTo(lab, [150, 0])).rejects.toThrow(refused(texts.way_against_fence));
      expect(drone.commands.filter(({ command }) => command === 192)).toEqual([]);
      expect(await goTo(lab, [60, 100])).toMatchObject({ acknowledged: true });
    });
  });

  it('is read where it is not known, and a command goes on where it cannot be read', async () => {
    await withMission({}, async (lab, drone) => {
      const circle = missionItem(0, { command: 5_003, param1: 100, mission_type: 1, frame: 0, z: 0 });
      const [lat, lon] = placeAt(0, 0);
      drone.missions.stored[1] = [{ ...circle, x: Math.round(lat * 1e7), y: Math.round(lon * 1e7) }];
      drone.missions.intercept = ({ name: message }) => message.startsWith('MISSION_REQUEST');
      expect(await goTo(lab, [0, 150])).toMatchObject({ acknowledged: true });
      drone.missions.intercept = undefined;
      await expect(goTo(lab, [0, 160])).rejects.toThrow(
        refused(texts.target_against_fence({ path: texts.fence_item(0), includes: true })),
      );
    });
  });

  it.each([
    [
      'ardupilot',
      { FENCE_ENABLE: 1, FENCE_ALT_MAX: 30 },
      texts.above_fence(40, { name: 'FENCE_ALT_MAX', max_m: 30 }),
    ],
    [
      'ardupilot',
      { FENCE_ENABLE: 1, FENCE_RADIUS: 80 },
      texts.beyond_fence(100, { name: 'FENCE_RADIUS', max_m: 80 }),
    ],
    ['px4', { GF_MAX_VER_DIST: 35 }, texts.above_fence(40, { name: 'GF_MAX_VER_DIST', max_m: 35 })],
    ['px4', { GF_MAX_HOR_DIST: 90 }, texts.beyond_fence(100, { name: 'GF_MAX_HOR_DIST', max_m: 90 })],
  ] as const)('has limits by parameters: %s %o', async (autopilot, set, reason) => {
    await withMission({ autopilot }, async (lab, drone) => {
      for (const [key, value] of Object.entries(set)) {
        const isInteger = drone.parameters.stored.get(key)?.isInteger ?? false;
        drone.parameters.stored.set(key, { value, isInteger });
      }
      lab.outbox.clear();
      await lab.sees('sys_status');
      await lab.sees('battery');
      await expect(goTo(lab, [100, 0])).rejects.toThrow(refused(reason));
    });
  });
});

describe.concurrent('enable_fence', () => {
  it('enables it, as the vehicle reports; not where it is outside, nor without a fence', async () => {
    await withMission({}, async (lab, drone) => {
      const { stored } = drone.parameters;
      await lab.command('upload_mission', payload, long);
      drone.flight.mode = 'LOITER';
      Object.assign(drone.flight, { lat: placeAt(0, 300)[0], lon: placeAt(0, 300)[1] });
      await lab.sees('gps', ({ lon }) => Math.abs(Number(lon) - placeAt(0, 300)[1]) < 1e-6);
      await expect(lab.command('enable_fence')).rejects.toThrow(/would leave it at once; command not sent$/u);
      Object.assign(drone.flight, { lat: placeAt(0, 0)[0], lon: placeAt(0, 0)[1] });
      await lab.sees('gps', ({ lon }) => Math.abs(Number(lon) - placeAt(0, 0)[1]) < 1e-6);
      expect(await lab.command('enable_fence')).toEqual({ enabled: true, acknowledged: true });
      expect(stored.get('FENCE_ENABLE')?.value).toBe(1);
      stored.set('FENCE_ENABLE', { value: 0, isInteger: true });
      stored.set('FENCE_TYPE', { value: 4, isInteger: true });
      drone.missions.stored[1] = [];
      lab.outbox.clear();
      await lab.sees('sys_status');
      await lab.sees('battery');
      await expect(lab.command('enable_fence')).rejects.toThrow(command_texts.fence_missing);
    });
  });
});
