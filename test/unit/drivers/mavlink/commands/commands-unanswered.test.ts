/** Every command with both autopilots: without an answer, interrupted by a restart or by a lost link. */
import { describe, expect, it } from 'vitest';
import { each_command, payloadOf, prepare, withBoth } from './commands-lab.ts';
import { withDrone } from '../mavlink-lab.ts';
import { texts } from '../../../../../src/tasks/texts.ts';

describe.concurrent('A command without an answer', () => {
  const copies_sent: Readonly<Record<string, number>> = {
    arm: 1,
    goto_waypoint: 1,
    disarm: 3,
    return_home: 3,
    set_mode: 3,
  };
  const waited = each_command.map((about) => ({ ...about, copies: copies_sent[about.name] ?? 0 }));
  it.each(waited)(
    '$name is sent $copies times and fails with an unknown outcome',
    async ({ name, copies, ...about }) => {
      await withBoth(about, async (lab, drone) => {
        prepare(drone, name);
        drone.react = () => undefined;
        await expect(lab.command(name, payloadOf(name))).rejects.toThrow(
          /did not answer .*; outcome unknown$/u,
        );
        expect(drone.commands).toHaveLength(copies);
      });
    },
  );

  it('counts an answer that comes 4 s later, and a refusal too', async () => {
    await withDrone({ autopilot: 'px4' }, async (lab, drone) => {
      const to = { progress: 0, result_param2: 0, target_system: 245, target_component: 191 };
      drone.react = (_command, execute) => {
        setTimeout(() => {
          execute();
          drone.send('COMMAND_ACK', { command: 400, result: 0, ...to });
        }, 4_000);
        return undefined;
      };
      expect(await lab.command('arm')).toMatchObject({ armed: true });
      drone.flight.armed = false;
      drone.react = () => {
        setTimeout(() => drone.send('COMMAND_ACK', { command: 400, result: 1, ...to }), 4_000);
        return undefined;
      };
      await lab.sees('sys_status', ({ armed }) => armed === false);
      await expect(lab.command('arm')).rejects.toThrow('refused arm (TEMPORARILY_REJECTED)');
    });
  });

  it.each(each_command)(
    '$name has an unknown outcome when it is cancelled after it was sent',
    async ({ name, ...about }) => {
      await withBoth(about, async (lab, drone) => {
        prepare(drone, name);
        const cancelled = new AbortController();
        drone.react = () => {
          setTimeout(() => cancelled.abort(new Error(texts.cancelled)), 100);
          return undefined;
        };
        await expect(lab.command(name, payloadOf(name), { signal: cancelled.signal })).rejects.toThrow(
          /stopped after .* was sent to Quadrotor 1; outcome unknown$/u,
        );
        expect(drone.commands).toHaveLength(1);
      });
    },
  );

  it('is not sent again while the vehicle executes it', async () => {
    await withDrone({ airborne: true }, async (lab, drone) => {
      drone.react = () => ({ result: 5 });
      const result = lab.command('return_home', {}, { remaining_ms: 4_000 });
      await expect(result).rejects.toThrow(/outcome unknown$/u);
      expect(drone.commands).toHaveLength(1);
    });
  });
});

describe.concurrent('A command whose vehicle is lost', () => {
  it.each(each_command)(
    '$name fails with an unknown outcome when the vehicle restarts',
    async ({ name, ...about }) => {
      await withBoth(about, async (lab, drone) => {
        prepare(drone, name);
        drone.react = () => {
          void drone.reboot();
          return undefined;
        };
        await expect(lab.command(name, payloadOf(name))).rejects.toThrow(
          /restarted or changed its link after .* was sent; outcome unknown$/u,
        );
      });
    },
  );

  // A vehicle that has restarted is disarmed, and in one of its modes.
  it.each(each_command.filter(({ name }) => name !== 'disarm'))(
    '$name has an unknown outcome when the vehicle accepts it and restarts behind the same radio',
    async ({ name, ...about }) => {
      await withBoth(about, async (lab, drone) => {
        drone.react = () => {
          setTimeout(() => void drone.reboot({ keep_port: true }), 50);
          return { result: 0 };
        };
        const payload = name === 'set_mode' ? { mode: 'GUIDED' } : payloadOf(name);
        await expect(lab.command(name, payload)).rejects.toThrow(/outcome unknown$/u);
        expect(drone.commands).toHaveLength(1);
      });
    },
  );

  it.each(each_command)(
    '$name fails with an unknown outcome when the link is lost',
    async ({ name, ...about }) => {
      await withBoth(about, async (lab, drone) => {
        prepare(drone, name);
        drone.react = () => {
          drone.silent = true;
          return undefined;
        };
        await expect(lab.command(name, payloadOf(name))).rejects.toThrow(
          /^link to Quadrotor 1 lost after .* was sent .*; outcome unknown$/u,
        );
      });
    },
  );
});
