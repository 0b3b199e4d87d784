/** The command `orbit`: PX4 has a command for it, an ArduPlane circles around each point, and other vehicles have none. */
import { describe, expect, it } from 'vitest';
import { texts } from '../../../../../drivers/mavlink/commands/texts.ts';
import { assetId } from '../../../../../src/contract/identity.ts';
import { field } from '../../../../fakes/fake-drone.ts';
import { kit_id } from '../../../../support/kit/hub-lab.ts';
import { drone_key, type MavlinkLab, withDrone } from '../mavlink-lab.ts';

const circle = { lat: field.lat + 0.001, lon: field.lon, alt_m: 40, radius_m: 30 };
const px4 = { autopilot: 'px4', airborne: true } as const;

function has(lab: MavlinkLab, name: string): boolean {
  return 'command' in lab.hub.findCommand(assetId(kit_id, drone_key), name);
}

describe.concurrent('orbit of PX4', () => {
  it('is completed when the vehicle reports the circle, in both directions', async () => {
    await withDrone(px4, async (lab, drone) => {
      const result = await lab.command('orbit', { ...circle, speed_mps: 5 });
      expect(result).toMatchObject({
        radius_m: 30,
        clockwise: true,
        alt_amsl_m: 528,
        height_above_home_m: 40,
        radius_observed: true,
        acknowledged: true,
      });
      expect(drone.flight.circle).toMatchObject({ radius_m: 30, speed_mps: 5 });
      await lab.sees('sys_status', ({ flight_mode }) => flight_mode === 'ORBIT');
      await lab.command('orbit', { ...circle, radius_m: 50, clockwise: false });
      expect(drone.flight.circle).toMatchObject({ radius_m: -50 });
      expect(drone.commands.at(-1)).toMatchObject({ command: 34, param1: -50, param2: Number.NaN, z: 528 });
      expect(await lab.command('hold')).toMatchObject({ flight_mode: 'LOITER' });
    });
  });

  it('is requested where the vehicle does not report circles unrequested', async () => {
    await withDrone(px4, async (lab, drone) => {
      drone.stopStream('ORBIT_EXECUTION_STATUS');
      expect(await lab.command('orbit', circle)).toMatchObject({ radius_observed: true });
      expect(drone.requests).toContain(360);
    });
  });

  it('is not completed while the vehicle reports another circle', async () => {
    await withDrone(px4, async (lab, drone) => {
      await lab.command('orbit', { ...circle, radius_m: 100 });
      drone.react = () => ({ result: 0 });
      await expect(lab.command('orbit', circle)).rejects.toThrow(
        new RegExp(`${texts.expects_orbit} was not observed within .*; outcome unknown$`, 'u'),
      );
      expect(drone.commands).toHaveLength(2);
    });
  });

  it('is refused before anything is sent when a part of the circle is outside the limits', async () => {
    const { lat, lon } = field;
    const corner = (north: number, east: number) => ({ lat: lat + north, lon: lon + east });
    const geofence = [corner(-0.01, -0.01), corner(-0.01, 0.01), corner(0.0015, 0.01), corner(0.0015, -0.01)];
    await withDrone(px4, { goto: { distance_max_m: 800, geofence } }, async (lab, drone) => {
      const refused = async (about: object, reason: string): Promise<void> =>
        expect(lab.command('orbit', { ...circle, ...about })).rejects.toThrow(
          texts.not_sent(texts.about('Quadrotor 1', reason)),
        );
      // 55 m from the northern side of the fence.
      await refused({ radius_m: 60 }, texts.orbit_outside);
      await refused({ lat: lat - 0.005, radius_m: 500 }, texts.orbit_far('the vehicle', 800));
      await refused({ speed_mps: 8 }, texts.orbit_fast(8, 30, '7.7'));
      await expect(lab.command('orbit', { ...circle, alt_m: 121 })).rejects.toThrow('too_big');
      await expect(lab.command('orbit', { ...circle, radius_m: 0 })).rejects.toThrow('too_small');
      expect(drone.commands).toEqual([]);
    });
  });
});

describe.concurrent('orbit of ArduPilot', () => {
  it('is the circle of a plane around its point; the vehicle does not report the radius', async () => {
    await withDrone({ type: 1, airborne: true }, async (lab, drone) => {
      const result = await lab.command('orbit', { ...circle, radius_m: 80, clockwise: false });
      expect(result).toMatchObject({ radius_m: 80, radius_observed: false, acknowledged: true });
      expect(drone.commands.at(-1)).toMatchObject({ command: 192, param2: 1, param3: 80, param4: 1, z: 40 });
      // The usual circle of a plane is clockwise, for which it takes 0 and not NaN.
      await lab.command('goto_waypoint', { lat: circle.lat, lon: circle.lon, alt_m: 40 });
      expect(drone.commands.at(-1)).toMatchObject({ command: 192, param3: 0, param4: 0 });
      await expect(lab.command('orbit', { ...circle, speed_mps: 5 })).rejects.toThrow('speed_mps');
    });
  });

  it('is not offered by a copter, whose circle has the radius of a stored parameter', async () => {
    await withDrone({ airborne: true }, async (lab) => {
      expect([has(lab, 'orbit'), has(lab, 'goto_waypoint')]).toEqual([false, true]);
    });
  });
});
