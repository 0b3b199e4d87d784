/** Vehicles that are heard over a satellite: by HIGH_LATENCY2 alone. */
import { describe, expect, it } from 'vitest';
import { texts } from '../../../../../drivers/mavlink/commands/texts.ts';
import { field } from '../../../../fakes/fake-drone.ts';
import { autopilots } from '../commands/commands-lab.ts';
import { withDrone, withLab } from '../mavlink-lab.ts';

const provisional = 'mavlink:system-1';

describe.concurrent('A vehicle that is heard by HIGH_LATENCY2 alone', () => {
  it.each(autopilots)(
    'stays the same asset, is online, and obeys commands that make it safer: %s',
    async (autopilot) => {
      await withDrone({ autopilot, airborne: true }, async (lab, drone) => {
        drone.high_latency_ms = 1_500;
        const status = await lab.sees('sys_status', ({ high_latency }) => high_latency === true);
        const is_ardupilot = autopilot === 'ardupilot';
        expect(status).toMatchObject({
          armed: is_ardupilot ? true : null,
          flight_mode: is_ardupilot ? 'AUTO' : 'MISSION',
          ekf_ok: null,
          failures: [],
        });
        const requests = drone.requests.length;
        lab.outbox.clear();
        expect(await lab.sees('gps')).toMatchObject({ alt_m: null, relative_alt_m: null });
        expect(await lab.sees('battery')).toEqual({ voltage: null, current: null, remaining_pct: 76 });
        // Longer than the silence after which another vehicle would be offline.
        for (let each = 0; each < 4; each += 1) {
          lab.outbox.clear();
          await lab.sees('sys_status');
        }
        expect(lab.hub.assets().map(({ key, status: shown }) => [key, shown])).toEqual([
          ['mavlink:00000000c0ffee01', 'online'],
        ]);
        const target = { lat: field.lat, lon: field.lon, alt_m: 30 };
        await expect(lab.command('goto_waypoint', target)).rejects.toThrow(
          texts.not_sent(texts.about('Quadrotor 1', texts.high_latency)),
        );
        expect(await lab.command('return_home', {}, { remaining_ms: 30_000 })).toEqual({
          flight_mode: 'RTL',
          acknowledged: true,
        });
        expect(drone.commands.map(({ command }) => command)).toEqual([20]);
        expect(drone.requests).toHaveLength(requests);
        drone.high_latency_ms = undefined;
        lab.outbox.clear();
        await lab.sees(
          'sys_status',
          ({ high_latency, ekf_ok }) => high_latency === undefined && ekf_ok === true,
        );
      });
    },
    60_000,
  );

  it('is an asset with its first message, shows what has failed, and is offline after its own time', async () => {
    await withLab({ high_latency_offline_after_s: 10 }, async (lab) => {
      const drone = await lab.fly({ airborne: true, autopilot: 'px4' });
      drone.high_latency_ms = 1_000;
      drone.pre_arm_ok = false;
      await lab.until('online', provisional);
      const status = await lab.sees('sys_status', () => true, provisional);
      expect(status).toMatchObject({ high_latency: true, failures: ['compass'], armed: null });
      expect(drone.requests).toEqual([]);
      drone.silent = true;
      const begin_ms = performance.now();
      await lab.until('offline', provisional);
      expect(performance.now() - begin_ms).toBeGreaterThan(8_000);
    });
  }, 60_000);
});
