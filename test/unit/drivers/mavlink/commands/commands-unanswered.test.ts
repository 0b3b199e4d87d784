/** Every command with both autopilots: without an answer, interrupted by a restart or by a lost link. */
import { describe, expect, it } from 'vitest';
import { texts } from '../../../../../src/kit/tasks/texts.ts';
import { each_command, payloadOf, prepare, withBoth } from './commands-lab.ts';
import type { FakeDrone } from '../../../../fakes/fake-drone.ts';
import { type MavlinkLab, withDrone } from '../mavlink-lab.ts';

describe.concurrent('A command without an answer', () => {
  // With each heartbeat that shows the vehicle as it was, or each second where a copy makes it safer, until less than a second is left.
  it.each(each_command)(
    '$name is sent again, and fails with an unknown outcome',
    async ({ name, ...about }) => {
      await withBoth(about, async (lab, drone) => {
        prepare(drone, name);
        drone.react = () => undefined;
        await expect(lab.command(name, payloadOf(name), { remaining_ms: 5_500 })).rejects.toThrow(
          /did not answer .*; outcome unknown$/u,
        );
        const numbers = drone.commands.map((sent) =>
          'confirmation' in sent ? sent.confirmation : undefined,
        );
        const isInt = numbers.includes(undefined);
        expect(numbers.length).toBeGreaterThanOrEqual(4);
        expect(numbers.length).toBeLessThanOrEqual(5);
        expect(numbers).toEqual(numbers.map((_, copy) => (isInt ? undefined : copy)));
      });
    },
  );

  it.each(['arm', 'goto_waypoint'])(
    '%s is not sent again while the vehicle answers nothing that was sent later: the copy may be on its way',
    async (name) => {
      await withBoth({ airborne: name !== 'arm' }, async (lab, drone) => {
        drone.react = () => {
          drone.deaf = true;
          return undefined;
        };
        await expect(lab.command(name, payloadOf(name))).rejects.toThrow(
          /did not answer .*; outcome unknown$/u,
        );
        expect(drone.commands).toHaveLength(1);
      });
    },
  );

  it('counts an answer that comes 4 s later, and a refusal too', async () => {
    await withDrone({ autopilot: 'px4' }, async (lab, drone) => {
      drone.lag_ms = 2_000;
      expect(await lab.command('arm')).toEqual({ armed: true, acknowledged: true });
      drone.flight.armed = false;
      drone.react = () => ({ result: 1 });
      await lab.sees('sys_status', ({ armed }) => armed === false);
      await expect(lab.command('arm')).rejects.toThrow('refused arm (TEMPORARILY_REJECTED)');
      expect(drone.commands).toHaveLength(2);
    });
  });

  it.each(each_command)(
    '$name has an unknown outcome when it is cancelled after it was sent, and is not sent again',
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
  // A vehicle that has restarted is disarmed, and in one of its modes.
  it.each(each_command)(
    '$name has an unknown outcome when the vehicle accepts it and restarts behind the same radio',
    async ({ name, ...about }) => {
      await withBoth({ ...about, uptime_ms: 60_000 }, async (lab, drone) => {
        prepare(drone, name);
        if (name === 'disarm') await lab.sees('sys_status', ({ armed }) => armed === true);
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

  // No heartbeat shows a restart: it has no clock, and the mode and the motors may be as ordered.
  it.each(
    (['accepted', 'not answered'] as const).flatMap((answer) => [
      { name: 'disarm', airborne: false, answer },
      { name: 'set_mode', airborne: true, answer },
    ]),
  )(
    '$name, $answer, has an unknown outcome when the heartbeat after a restart looks like its effect',
    async ({ name, airborne, answer }) => {
      await withBoth({ airborne, uptime_ms: 60_000 }, async (lab, drone) => {
        prepare(drone, name);
        if (name === 'disarm') await lab.sees('sys_status', ({ armed }) => armed === true);
        let has_restarted = false;
        const shown = lab.sees('sys_status', ({ armed }) => has_restarted && armed === false);
        drone.react = () => {
          withholdClock(drone);
          void drone.reboot({ keep_port: true });
          has_restarted = true;
          return answer === 'accepted' ? { result: 0 } : undefined;
        };
        await Promise.all([
          expect(lab.command(name, payloadOf(name))).rejects.toThrow(
            /restarted, or another sender took its place, after .* was sent; outcome unknown$/u,
          ),
          shown.then(() => drone.send('SYSTEM_TIME', { time_unix_usec: 0, time_boot_ms: 1_000 })),
        ]);
      });
    },
  );

  it('disarm has an unknown outcome when the vehicle sends no clock any more', async () => {
    await withBoth({ airborne: false }, async (lab, drone) => {
      prepare(drone, 'disarm');
      await lab.sees('sys_status', ({ armed }) => armed === true);
      drone.react = (_command, execute) => {
        withholdClock(drone);
        return execute();
      };
      await expect(lab.command('disarm', {}, { remaining_ms: 3_000 })).rejects.toThrow(/outcome unknown$/u);
    });
  });

  it.each([
    { where: 'behind the same radio', keep_port: true },
    { where: 'and sends from another port', keep_port: false },
  ])(
    'set_speed has an unknown outcome when the vehicle accepts it and restarts $where before the speed shows',
    async ({ keep_port }) => {
      await withDrone({ airborne: true, uptime_ms: 60_000 }, async (lab, drone) => {
        await speedIsShown(lab, drone);
        drone.react = () => {
          setTimeout(() => void drone.reboot({ keep_port }), 100);
          return { result: 0 };
        };
        await expect(lab.command('set_speed', { speed_mps: 5 })).rejects.toThrow(/outcome unknown$/u);
      });
    },
  );

  it.each([
    { lost: 'the vehicle', says: /^link to Quadrotor 1 lost after set_speed was sent .*; outcome unknown$/u },
    { lost: 'its clock', says: /accepted set_speed, but sends no clock any more .*; outcome unknown$/u },
  ])('set_speed has an unknown outcome when $lost is lost before the speed shows', async ({ lost, says }) => {
    await withDrone({ airborne: true }, async (lab, drone) => {
      await speedIsShown(lab, drone);
      drone.react = (_command, execute) => {
        if (lost === 'its clock') withholdClock(drone);
        else setTimeout(() => (drone.silent = true), 50);
        return execute();
      };
      const result = lab.command('set_speed', { speed_mps: 5 }, { remaining_ms: 4_000 });
      await expect(result).rejects.toThrow(says);
    });
  });
});

/** Resolves when the vehicle has just shown another speed than it is given later. */
async function speedIsShown(lab: MavlinkLab, drone: FakeDrone): Promise<void> {
  const groundspeed = 1.25;
  const rest = { airspeed: 0, heading: 0, throttle: 0, alt: 0, climb: 0 };
  drone.send('VFR_HUD', { ...rest, groundspeed });
  await lab.sees('vfr_hud', (shown) => shown['groundspeed'] === groundspeed);
}

/** Loses what would show a restart. */
function withholdClock(drone: FakeDrone): void {
  for (const clocked of ['ATTITUDE', 'GLOBAL_POSITION_INT'] as const) drone.withheld.add(clocked);
}
