/** Vehicles that speak MAVLink 1: no extensions, no ids above 255, and answers that name no station. */
import { describe, expect, it } from 'vitest';
import { eventually } from '../../../../support/eventually.ts';
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

  it('and reads nothing else is an asset by its system id, and every command ends with an unknown outcome', async () => {
    await withLab(async (lab) => {
      const drone = await lab.fly({ airborne: true, autopilot: 'px4' });
      drone.speaks_mavlink1 = true;
      drone.reads_mavlink1_only = true;
      const provisional = 'mavlink:system-1';
      await lab.until('online', provisional);
      await lab.sees('sys_status', ({ armed }) => armed === true, provisional);
      const failed = lab.command('return_home', {}, { key: provisional });
      await expect(failed).rejects.toThrow(/did not answer return_home, .*; outcome unknown$/u);
      await eventually('frames have arrived', () => drone.received > 0);
      expect(drone.commands).toEqual([]);
    });
  }, 60_000);
});
