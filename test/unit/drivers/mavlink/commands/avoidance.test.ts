/** Vehicles that avoid obstacles report the place that they fly to first, and not their target. */
import { describe, expect, it } from 'vitest';
import { field } from '../../../../fakes/fake-drone.ts';
import { near } from './commands-lab.ts';
import { type MavlinkLab, withDrone } from '../mavlink-lab.ts';

const aside = { lat: field.lat + 0.0005, lon: field.lon + 0.0005, height_m: 30 };
const elsewhere = { lat: field.lat + 0.001, lon: field.lon + 0.001, height_m: 30 };

describe.concurrent('goto_waypoint around an obstacle', () => {
  it('is completed when distance and direction of the target are reported', async () => {
    await withDrone({ airborne: true }, async (lab, drone) => {
      drone.flight.around = aside;
      expect(await lab.command('goto_waypoint', near)).toMatchObject({
        lat: near.lat,
        going_around: true,
        acknowledged: true,
      });
    });
  });

  it('is not completed when they lead elsewhere', async () => {
    await withDrone({ airborne: true }, async (lab, drone) => {
      drone.flight.around = aside;
      drone.react = () => {
        drone.flight.mode = 'GUIDED';
        drone.flight.target = elsewhere;
        return { result: 0 };
      };
      await expect(lab.command('goto_waypoint', near)).rejects.toThrow(
        /was not observed .*; outcome unknown$/u,
      );
    });
  });

  it('does not concern a PX4, which reports its target', async () => {
    await withDrone({ airborne: true, autopilot: 'px4' }, async (lab, drone) => {
      await lab.command('goto_waypoint', near);
      expect(drone.requests).not.toContain(62);
      const result: Awaited<ReturnType<MavlinkLab['command']>> = await lab.command('goto_waypoint', near);
      expect(result).not.toHaveProperty('going_around');
    });
  });
});
