/** Vehicles that speak MAVLink 1: no extensions, no ids above 255, and answers that name no station. */
import { describe, expect, it } from 'vitest';
import { field } from '../../../../fakes/fake-drone.ts';
import { withLab } from '../mavlink-lab.ts';

const key = 'mavlink:00000000c0ffee01';

describe.concurrent('A vehicle that sends MAVLink 1', () => {
  it.each(['ardupilot', 'px4'] as const)('is served and obeys: %s', async (autopilot) => {
    await withLab(async (lab) => {
      const drone = await lab.fly({ autopilot, airborne: true });
      drone.speaks_mavlink1 = true;
      await lab.sees('gps', ({ relative_alt_m }) => relative_alt_m !== null);
      const raw = await lab.sees('gps_raw');
      // The height above the ellipsoid is an extension.
      expect(raw).toMatchObject({ fix_type: 3 });
      await lab.sees('sys_status', ({ ekf_ok }) => ekf_ok !== null);
      await lab.sees('battery');
      expect(await lab.command('return_home', {}, { key })).toEqual({
        flight_mode: 'RTL',
        acknowledged: true,
      });
      drone.react = () => ({ result: 2, texts: ['not now'] });
      const refused = lab.command('set_mode', { mode: 'LOITER' }, { key });
      await expect(refused).rejects.toThrow(/refused set_mode LOITER \(DENIED\)/u);
    });
  });

  it.each(['ardupilot', 'px4'] as const)('and reads nothing else obeys: %s', async (autopilot) => {
    await withLab(async (lab) => {
      const drone = await lab.fly({ autopilot, airborne: true });
      drone.speaks_mavlink1 = true;
      drone.reads_mavlink1_only = true;
      // Identified by its answer, with the streams that were requested from it.
      await lab.sees('gps', ({ relative_alt_m }) => relative_alt_m !== null);
      await lab.sees('sys_status', ({ ekf_ok }) => ekf_ok !== null);
      const { lat, lon } = field;
      const target = { lat: lat + 0.001, lon, alt_m: 30 };
      expect(await lab.command('goto_waypoint', target, { key })).toMatchObject({ acknowledged: true });
      expect(await lab.command('return_home', {}, { key })).toMatchObject({ flight_mode: 'RTL' });
    });
  });

  it.each(['download_mission', 'clear_mission'])(
    'has no fence to transfer: %s is refused',
    async (command) => {
      await withLab(async (lab) => {
        const drone = await lab.fly({ airborne: true });
        drone.speaks_mavlink1 = true;
        await lab.sees('sys_status', ({ ekf_ok }) => ekf_ok !== null);
        const refused = lab.command(command, {
          kind: 'fence',
          ...(command === 'clear_mission' ? { allow_airborne: true } : {}),
        });
        await expect(refused).rejects.toThrow(
          /the transfer of a fence needs MAVLink 2, .*; command not sent$/u,
        );
      });
    },
  );

  it('has no circle to report: orbit of a PX4 is refused', async () => {
    await withLab(async (lab) => {
      const drone = await lab.fly({ airborne: true, autopilot: 'px4' });
      drone.speaks_mavlink1 = true;
      await lab.sees('gps', ({ relative_alt_m }) => relative_alt_m !== null);
      await lab.sees('sys_status', ({ ekf_ok }) => ekf_ok !== null);
      const circle = { lat: field.lat, lon: field.lon, alt_m: 30, radius_m: 20 };
      await expect(lab.command('orbit', circle)).rejects.toThrow(/orbit needs MAVLink 2/u);
    });
  });
});
