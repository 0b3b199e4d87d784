/** The takeoff of an ArduPlane: a mode that climbs to the height of a parameter, which the command must name. */
import { describe, expect, it } from 'vitest';
import { texts } from '../../../../../drivers/mavlink/commands/texts.ts';
import type { FakeDrone } from '../../../../fakes/fake-drone.ts';
import { field } from '../../../../fakes/fake-drone.ts';
import { type MavlinkLab, withDrone } from '../mavlink-lab.ts';

const set_mode = 176;
const takeoff = 22;
const takeoff_mode = 13;
const long = { remaining_ms: 30_000 };

/** Runs `fn` with an armed plane on the ground, whose TKOFF_ALT is 5 m. */
async function withPlane(
  fn: (lab: MavlinkLab, drone: FakeDrone) => Promise<void>,
  options: Readonly<Record<string, unknown>> = {},
): Promise<void> {
  await withDrone({ type: 1 }, options, async (lab, drone) => {
    drone.flight.armed = true;
    await lab.sees('sys_status', ({ armed }) => armed === true);
    await fn(lab, drone);
  });
}

describe.concurrent('takeoff of an ArduPlane', () => {
  it('sets its TAKEOFF mode, and completes at the height that is set there', async () => {
    await withPlane(async (lab, drone) => {
      const result = await lab.command('takeoff', { height_m: 5.4 }, long);
      expect(result).toEqual({ alt_amsl_m: 493, height_above_home_m: 5, acknowledged: true });
      expect(drone.flight.height_m).toBeGreaterThan(1.5);
      const sent = drone.commands.map(({ command, param2 }) => [command, param2]);
      expect(sent).toEqual([[set_mode, takeoff_mode]]);
    });
  });

  it('is refused with the height that it would climb to, and nothing is sent', async () => {
    await withPlane(async (lab, drone) => {
      await expect(lab.command('takeoff', { height_m: 30 }, long)).rejects.toThrow(
        `${texts.takeoff_height(5, 5)}; command not sent`,
      );
      drone.parameters.stored.delete('TKOFF_DIST');
      await expect(lab.command('takeoff', { height_m: 5 }, long)).rejects.toThrow(
        `${texts.takeoff_param('TKOFF_DIST')}; command not sent`,
      );
      drone.parameters.stored.clear();
      await expect(lab.command('takeoff', { height_m: 5 }, long)).rejects.toThrow(/; command not sent$/u);
      expect(drone.commands.filter(({ command }) => command === set_mode || command === takeoff)).toEqual([]);
    });
  });

  it('is refused when it would end outside the geofence or too far away', async () => {
    const corner = (north: number, east: number) => ({
      lat: field.lat + north / 10_000,
      lon: field.lon + east / 10_000,
    });
    // 50 m to the north are outside.
    const geofence = [corner(3, -5), corner(3, 5), corner(-5, 5), corner(-5, -5)];
    await withPlane(
      async (lab, drone) => {
        await expect(lab.command('takeoff', { height_m: 5 }, long)).rejects.toThrow(texts.target_outside);
        drone.parameters.stored.set('TKOFF_DIST', { value: 20, isInteger: false });
        expect(await lab.command('takeoff', { height_m: 5 }, long)).toMatchObject({ acknowledged: true });
      },
      { goto: { geofence, distance_max_m: 100 } },
    );
    await withPlane(
      async (lab) => {
        await expect(lab.command('takeoff', { height_m: 5 }, long)).rejects.toThrow(
          texts.target_far(50, 'home', 40),
        );
      },
      { goto: { distance_max_m: 40 } },
    );
  });

  it('has an unknown outcome when the mode is set and the plane stays on the ground', async () => {
    await withPlane(async (lab, drone) => {
      // It waits to be thrown.
      drone.react = (_command, execute) => {
        const answer = execute();
        drone.flight.target = { ...field, height_m: 0 };
        return answer;
      };
      await expect(lab.command('takeoff', { height_m: 5 }, long)).rejects.toThrow(
        /accepted takeoff, but an airborne vehicle was not observed within 20\.\d s; outcome unknown$/u,
      );
      expect(drone.commands).toHaveLength(1);
    });
  });

  it('fails when the pilot takes over on the way up', async () => {
    await withPlane(async (lab, drone) => {
      drone.parameters.stored.set('TKOFF_ALT', { value: 100, isInteger: false });
      const climbing = lab.command('takeoff', { height_m: 100 }, long);
      await lab.sees('sys_status', ({ flight_mode }) => flight_mode === 'TAKEOFF');
      await lab.sees('gps', ({ relative_alt_m }) => Number(relative_alt_m) > 2);
      drone.flight.mode = 'LOITER';
      await expect(climbing).rejects.toThrow(
        new RegExp(`${texts.abandoned('Plane 1', 'LOITER')}; outcome unknown`, 'u'),
      );
    });
  });
});
