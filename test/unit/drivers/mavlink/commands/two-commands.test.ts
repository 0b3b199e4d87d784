/** A command while an earlier one is unanswered, or while a pilot takes over. */
import { describe, expect, it } from 'vitest';
import type { FakeDrone } from '../../../../fakes/fake-drone.ts';
import { texts } from '../../../../../drivers/mavlink/vehicles/texts.ts';
import { freePort } from '../../../../support/ports.ts';
import { withDrone, withLab } from '../mavlink-lab.ts';

const set_mode = 176;
const denied = 2;
const [guided, loiter, rtl] = [4, 5, 6];
const to_kit = { progress: 0, result_param2: 0, target_system: 245, target_component: 191 };

/** The mode that its heartbeat shows at once, without waiting for the next one. */
function showMode(drone: FakeDrone, custom_mode: number): void {
  const about = { type: 2, autopilot: 3, system_status: 4, mavlink_version: 3 };
  drone.send('HEARTBEAT', { ...about, base_mode: 1 | 128, custom_mode });
}

describe.concurrent('A command after one that was cancelled without an answer', () => {
  it('is not reported as refused by the late refusal of the earlier one', async () => {
    await withDrone({ airborne: true }, async (lab, drone) => {
      const cancelled = new AbortController();
      drone.react = () => {
        cancelled.abort(new Error('the task was cancelled'));
        return undefined;
      };
      const first = lab.command('set_mode', { mode: 'GUIDED' }, { signal: cancelled.signal });
      await expect(first).rejects.toThrow(/outcome unknown$/u);
      drone.react = (command, execute) => {
        drone.send('COMMAND_ACK', { command: command.command, result: denied, ...to_kit });
        return execute();
      };
      expect(await lab.command('set_mode', { mode: 'RTL' })).toEqual({
        flight_mode: 'RTL',
        acknowledged: true,
      });
      expect(drone.commands.map(({ command, param2 }) => [command, param2])).toEqual([
        [set_mode, guided],
        [set_mode, rtl],
      ]);
    });
  });

  it('is reported as refused by its own refusal', async () => {
    await withDrone({ airborne: true }, async (lab, drone) => {
      const cancelled = new AbortController();
      drone.react = () => {
        cancelled.abort(new Error('the task was cancelled'));
        return undefined;
      };
      const first = lab.command('set_mode', { mode: 'GUIDED' }, { signal: cancelled.signal });
      await expect(first).rejects.toThrow(/outcome unknown$/u);
      drone.react = ({ command }) => {
        drone.send('COMMAND_ACK', { command, result: 0, ...to_kit });
        return { result: denied, texts: ['not now'] };
      };
      await expect(lab.command('set_mode', { mode: 'LOITER' })).rejects.toThrow(
        'refused set_mode LOITER (DENIED): not now',
      );
    });
  });
});

describe.concurrent('A command after one that was sent over another link', () => {
  it('is not reported as refused by a late refusal that comes over the new link', async () => {
    const [first, second] = [await freePort(), await freePort()];
    const links = [first, second].map((port) => ({ kind: 'udp_listen', host: '127.0.0.1', port }));
    await withLab({ links }, async (lab) => {
      const drone = await lab.fly({ port: first, airborne: true });
      drone.alsoTo(second);
      await lab.sees('gps');
      await lab.sees('sys_status', ({ ekf_ok, pre_arm_check }) => ekf_ok !== null && pre_arm_check !== null);
      drone.react = () => {
        drone.onlyTo(second);
        return undefined;
      };
      await expect(lab.command('set_mode', { mode: 'GUIDED' })).rejects.toThrow(/outcome unknown$/u);
      let isLate = true;
      drone.react = ({ command }) => {
        if (isLate) drone.send('COMMAND_ACK', { command, result: denied, ...to_kit });
        isLate = false;
        // Later than a refusal is waited for.
        setTimeout(() => (drone.flight.mode = 'RTL'), 1_300);
        return undefined;
      };
      const outcome = await lab.command('set_mode', { mode: 'RTL' }).then(
        ({ flight_mode }) => flight_mode,
        (error: unknown) => String(error),
      );
      expect(outcome).toMatch(/^RTL$|outcome unknown$/u);
    });
  });
});

describe.concurrent('A command whose effect a pilot has ended', () => {
  it('is not sent again, and is completed, since its effect was seen', async () => {
    await withDrone({ airborne: true }, async (lab, drone) => {
      drone.react = (_command, execute) => {
        execute();
        showMode(drone, rtl);
        setTimeout(() => {
          drone.flight.mode = 'LOITER';
          showMode(drone, loiter);
        }, 100);
        return undefined;
      };
      expect(await lab.command('return_home')).toEqual({ flight_mode: 'LOITER', acknowledged: false });
      expect(drone.commands).toHaveLength(1);
      const changes = lab.log.lines.filter(({ sentence }) => sentence === texts.mode_changed);
      expect(changes.map(({ facts }) => [facts['before'], facts['flight_mode']])).toEqual([
        ['AUTO', 'RTL'],
        ['RTL', 'LOITER'],
      ]);
    });
  });
});
