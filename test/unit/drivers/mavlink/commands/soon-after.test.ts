/** Commands soon after the kit has received a vehicle for the first time, and what a vehicle writes soon after a command. */
import { describe, expect, it } from 'vitest';
import { texts } from '../../../../../drivers/mavlink/commands/texts.ts';
import { withDrone, withLab } from '../mavlink-lab.ts';
import { near } from './commands-lab.ts';

describe.concurrent('A command that is sent when its vehicle has just been received', () => {
  it.each(['HOME_POSITION', 'GLOBAL_POSITION_INT', 'EXTENDED_SYS_STATE'] as const)(
    'waits within its time for what the vehicle has not reported yet: %s',
    async (name) => {
      await withLab(async (lab) => {
        const drone = await lab.fly({ airborne: true });
        drone.withheld.add(name);
        await lab.until('online');
        setTimeout(() => drone.withheld.delete(name), 6_000);
        const payload = { ...near, wait_for_arrival: false };
        expect(
          await lab.command('goto_waypoint', payload, { remaining_ms: 60_000, age_ms: 9_000 }),
        ).toMatchObject({
          acknowledged: true,
        });
      });
    },
  );

  it('is refused when the vehicle does not report it in that time', async () => {
    await withLab(async (lab) => {
      const drone = await lab.fly({ airborne: true });
      drone.withheld.add('HOME_POSITION');
      await lab.until('online');
      const refused = lab.command('goto_waypoint', near);
      await expect(refused).rejects.toThrow(texts.not_sent(texts.about('Quadrotor 1', texts.home_unknown)));
      expect(drone.commands).toEqual([]);
    });
  });

  it('is refused at once for what waiting does not change', async () => {
    await withLab(async (lab) => {
      await lab.fly({});
      await lab.sees('sys_status');
      const from_ms = performance.now();
      await expect(lab.command('goto_waypoint', near)).rejects.toThrow(texts.not_armed);
      expect(performance.now() - from_ms).toBeLessThan(100);
    });
  });
});

describe.concurrent('What a vehicle writes in the first second', () => {
  it('stands in the result from warning on', async () => {
    await withDrone({ airborne: true }, async (lab, drone) => {
      drone.react = (_command, execute) => {
        setTimeout(() => {
          drone.sendText('Potential Thrust Loss (2)', 4);
          drone.sendText('Mission: 3 WP', 6);
        }, 300);
        return execute();
      };
      expect(await lab.command('return_home')).toEqual({
        flight_mode: 'RTL',
        acknowledged: true,
        vehicle_texts: ['Potential Thrust Loss (2)'],
      });
    });
  });
});
