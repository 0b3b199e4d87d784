/** Rovers, boats and submarines of both autopilots, which report themselves as airborne or not at all. */
import { describe, expect, it } from 'vitest';
import { texts } from '../../../../../drivers/mavlink/commands/texts.ts';
import { autopilots, near } from './commands-lab.ts';
import { withLab } from '../mavlink-lab.ts';

const types = [
  { name: 'rover', type: 10 },
  { name: 'boat', type: 11 },
  { name: 'submarine', type: 12 },
] as const;
const all = autopilots.flatMap((autopilot) => types.map((about) => ({ autopilot, ...about })));

describe.concurrent('A vehicle that cannot fall', () => {
  it.each(all)(
    'is disarmed, whatever it reports of its flight: $autopilot $name',
    async ({ autopilot, type }) => {
      await withLab(async (lab) => {
        const drone = await lab.fly({ autopilot, type });
        await lab.sees(
          'sys_status',
          ({ ekf_ok, pre_arm_check }) => ekf_ok !== null && pre_arm_check !== null,
        );
        await lab.sees('gps');
        // A drift of its altitude is no flight.
        drone.flight.height_m = 1.5;
        drone.flight.armed = true;
        await lab.sees('sys_status', ({ armed }) => armed === true);
        expect(await lab.command('disarm')).toMatchObject({ armed: false, acknowledged: true });
        expect(drone.flight.armed).toBe(false);
      });
    },
  );

  // HOLD of ArduRover switches the motors off, so that a boat drifts (ArduPilot#10186, #30079).
  it.each([
    { name: 'boat', type: 11, gps: 'ok', flight_mode: 'LOITER' },
    { name: 'boat without a position', type: 11, gps: 'lost', flight_mode: 'HOLD', caveat: 'drifts' },
    { name: 'rover', type: 10, gps: 'ok', flight_mode: 'HOLD' },
    { name: 'submarine', type: 12, gps: 'ok', flight_mode: 'POSHOLD' },
    {
      name: 'submarine without a position',
      type: 12,
      gps: 'lost',
      flight_mode: 'ALT_HOLD',
      caveat: 'keeps_depth',
    },
  ] as const)('stays where it is by hold, or says what it does not keep: $name', async (about) => {
    await withLab(async (lab) => {
      const { type, gps, flight_mode } = about;
      const drone = await lab.fly({ type });
      drone.gps = gps;
      drone.flight.armed = true;
      drone.flight.mode = 'AUTO';
      const isHealthy = gps === 'ok' || type === 12;
      await lab.sees('sys_status', ({ armed, ekf_ok }) => armed === true && ekf_ok === isHealthy);
      if (gps === 'ok') await lab.sees('gps');
      expect(await lab.command('hold')).toEqual({
        flight_mode,
        acknowledged: true,
        ...('caveat' in about ? { warning: texts.hold_caveats[about.caveat] } : {}),
      });
      expect(drone.flight.mode).toBe(flight_mode === 'HOLD' ? 'MOTORS_OFF' : 'HOLD');
    });
  });

  it('has no heights in the result of goto_waypoint, and no height above a nonsensical home', async () => {
    await withLab(async (lab) => {
      const drone = await lab.fly({ type: 10 });
      drone.flight.armed = true;
      drone.flight.mode = 'GUIDED';
      const gps = await lab.sees('gps', ({ alt_amsl_m }) => alt_amsl_m !== null);
      await lab.sees('sys_status', ({ armed, ekf_ok }) => armed === true && ekf_ok !== null);
      expect(gps).toMatchObject({ alt_amsl_m: 488, relative_alt_m: null });
      const result = await lab.command('goto_waypoint', near);
      expect(result).toEqual({ lat: near.lat, lon: near.lon, acknowledged: true });
    });
  });
});
