/** Every command against both autopilots: done, refused, without effect, late. */
import { describe, expect, it } from 'vitest';
import { texts } from '../../../../../drivers/mavlink/commands/texts.ts';
import { autopilots, each_command, near, payloadOf, prepare, withBoth } from './commands-lab.ts';
import { withDrone } from '../mavlink-lab.ts';

describe.concurrent('A completed command', () => {
  it.each(autopilots)(
    'arms when the heartbeat confirms it, and never bypasses the checks: %s',
    async (autopilot) => {
      await withDrone({ autopilot }, async (lab, drone) => {
        expect(await lab.command('arm')).toEqual({ armed: true, acknowledged: true });
        expect(drone.commands).toMatchObject([{ command: 400, param1: 1, param2: 0 }]);
        expect(drone.flight.armed).toBe(true);
      });
    },
  );

  it.each(autopilots)('disarms a vehicle on the ground: %s', async (autopilot) => {
    await withDrone({ autopilot }, async (lab, drone) => {
      await lab.command('arm');
      expect(await lab.command('disarm')).toEqual({ armed: false, acknowledged: true });
      expect(drone.flight.armed).toBe(false);
    });
  });

  it.each(autopilots)('sets each mode that the vehicle has: %s', async (autopilot) => {
    await withDrone({ autopilot, airborne: true }, async (lab) => {
      for (const mode of ['LOITER', 'AUTO', 'GUIDED', 'RTL', 'LAND']) {
        const px4_names: Readonly<Record<string, string>> = { AUTO: 'MISSION', GUIDED: 'LOITER' };
        const flight_mode = autopilot === 'px4' ? (px4_names[mode] ?? mode) : mode;
        const is_warned = autopilot === 'ardupilot' && mode === 'LOITER';
        expect(await lab.command('set_mode', { mode })).toEqual({
          flight_mode,
          acknowledged: true,
          ...(is_warned ? { warning: texts.stick_leads(3, 1_500) } : {}),
        });
      }
    });
  });

  it.each(autopilots)(
    'flies to a height above home, whatever frame the autopilot reads: %s',
    async (autopilot) => {
      await withDrone({ autopilot, airborne: true }, async (lab, drone) => {
        expect(await lab.command('goto_waypoint', near)).toEqual({
          lat: near.lat,
          lon: near.lon,
          alt_amsl_m: 518,
          height_above_home_m: 30,
          alt_datum: 'relative',
          acknowledged: true,
        });
        expect(drone.flight.target).toMatchObject({
          height_m: 30,
          lat: expect.closeTo(near.lat, 6) as number,
        });
        const [sent] = drone.commands;
        expect(sent).toMatchObject(
          autopilot === 'px4' ? { frame: 0, z: 518, param2: 1 } : { frame: 6, z: 30, param2: 1 },
        );
      });
    },
  );

  it('takes alt_m above sea level or above the ellipsoid when the configuration selects it', async () => {
    await withDrone({ airborne: true }, { goto: { datum: 'amsl' } }, async (lab) => {
      expect(await lab.command('goto_waypoint', { ...near, alt_m: 523 })).toMatchObject({
        height_above_home_m: 35,
      });
    });
    await withDrone({ airborne: true, autopilot: 'px4' }, { goto: { datum: 'ellipsoid' } }, async (lab) => {
      expect(await lab.command('goto_waypoint', { ...near, alt_m: 565.3 })).toMatchObject({
        alt_amsl_m: 518,
        height_above_home_m: 30,
      });
    });
  });

  it('is completed without an answer when the effect is observed', async () => {
    await withDrone({}, async (lab, drone) => {
      drone.react = (_command, execute) => {
        execute();
        return undefined;
      };
      expect(await lab.command('arm')).toEqual({ armed: true, acknowledged: false });
      expect(drone.commands).toHaveLength(1);
    });
  });
});

describe.concurrent('A command that uses a fallback or takes long', () => {
  it('sets the mode with the older message on firmware without the command', async () => {
    await withDrone({ airborne: true }, async (lab, drone) => {
      drone.react = () => ({ result: 3 });
      expect(await lab.command('set_mode', { mode: 'LOITER' })).toMatchObject({ flight_mode: 'LOITER' });
    });
  });

  it('reports progress while the vehicle executes it, and completes with the final answer', async () => {
    await withDrone({ airborne: true }, async (lab, drone) => {
      drone.react = (_command, execute) => {
        const to = { progress: 40, result_param2: 0, target_system: 245, target_component: 191 };
        setTimeout(() => drone.send('COMMAND_ACK', { command: 20, result: 5, ...to }), 100);
        setTimeout(() => {
          const answer = execute();
          drone.send('COMMAND_ACK', { command: 20, result: answer?.result ?? 4, ...to });
        }, 200);
        return { result: 5 };
      };
      const reported: unknown[] = [];
      const result = await lab.command('return_home', {}, { progress: (...report) => reported.push(report) });
      expect(result).toEqual({ flight_mode: 'RTL', acknowledged: true });
      expect(reported).toEqual([0, 40].map((pct) => [texts.executing('Quadrotor 1'), pct]));
      expect(drone.commands).toHaveLength(1);
    });
  });
});

describe.concurrent('A command that the vehicle refuses', () => {
  it('fails with the text that ArduPilot sends after its answer', async () => {
    await withDrone({}, async (lab, drone) => {
      drone.react = () => ({ result: 4, texts: ['PreArm: GPS 1: Bad fix'] });
      await expect(lab.command('arm')).rejects.toThrow(
        'Quadrotor 1 refused arm (FAILED): PreArm: GPS 1: Bad fix',
      );
    });
  });

  it('fails with the notice in which ArduPilot explains it, beside a warning', async () => {
    await withDrone({ airborne: true }, async (lab, drone) => {
      drone.react = () => {
        setTimeout(() => {
          drone.sendText('Mode change to AUTO failed', 4);
          drone.sendText("No Mission. Can't set AUTO.", 5);
        }, 50);
        return { result: 4 };
      };
      await expect(lab.command('set_mode', { mode: 'AUTO' })).rejects.toThrow(
        "refused set_mode AUTO (FAILED): Mode change to AUTO failed; No Mission. Can't set AUTO.",
      );
    });
  });

  it('fails with the text that PX4 sends in two chunks', async () => {
    await withDrone({ autopilot: 'px4' }, async (lab, drone) => {
      drone.react = () => ({ result: 1, texts: ['Arming denied: Resolve system health failures first\t'] });
      await expect(lab.command('arm')).rejects.toThrow(
        'Quadrotor 1 refused arm (TEMPORARILY_REJECTED): Arming denied: Resolve system health failures first',
      );
    });
  });
});

describe.concurrent('A command that the vehicle answers', () => {
  it.each(each_command)(
    '$name fails with the text of the autopilot that refuses it, and is not sent again',
    async ({ name, ...about }) => {
      await withBoth(about, async (lab, drone) => {
        prepare(drone, name);
        drone.react = () => ({ result: 2, texts: ['not now'] });
        await expect(lab.command(name, payloadOf(name))).rejects.toThrow(/refused .*\(DENIED\): not now$/u);
        expect(drone.commands).toHaveLength(1);
      });
    },
  );

  it.each(each_command)(
    '$name is not reported as completed when it is accepted without effect',
    async ({ name, ...about }) => {
      await withBoth(about, async (lab, drone) => {
        prepare(drone, name);
        drone.react = () => ({ result: 0, texts: ['Switching is currently not available'] });
        await expect(lab.command(name, payloadOf(name))).rejects.toThrow(
          /accepted .* was not observed within .*: Switching is currently not available; outcome unknown$/u,
        );
      });
    },
  );
});

describe.concurrent('A command that arrives too late', () => {
  it.each(each_command)('$name is not sent', async ({ name, ...about }) => {
    await withBoth(about, async (lab, drone) => {
      await expect(lab.command(name, payloadOf(name), { remaining_ms: 400 })).rejects.toThrow(
        /^too late: .*; command not sent$/u,
      );
      await expect(
        lab.command(name, payloadOf(name), { signal: AbortSignal.abort(new Error('superseded')) }),
      ).rejects.toThrow('superseded');
      await expect(lab.command(name, payloadOf(name), { age_ms: 10_001 })).rejects.toThrow(
        texts.not_sent(texts.task_old('10.0', 10)),
      );
      expect(drone.commands).toEqual([]);
    });
  });

  it('is sent when the configuration gives tasks more time', async () => {
    await withDrone({}, { task_age_max_s: 60 }, async (lab) => {
      expect(await lab.command('arm', {}, { age_ms: 59_000 })).toMatchObject({ armed: true });
      await expect(lab.command('disarm', {}, { age_ms: 61_000 })).rejects.toThrow(texts.task_old('61.0', 60));
    });
  });
});

const command_arm = 400;
const command_run_checks = 401;

describe.concurrent('arm of an ArduPilot whose checks fail without a reason', () => {
  it('lets it run its checks, and names all of its reasons', async () => {
    await withDrone({}, async (lab, drone) => {
      drone.pre_arm_ok = false;
      drone.gps = 'ok';
      await lab.sees('sys_status', ({ pre_arm_check }) => pre_arm_check === false);
      await expect(lab.command('arm')).rejects.toThrow(
        texts.pre_arm_failed(['PreArm: Compass not calibrated']),
      );
      expect(drone.commands.map(({ command }) => command)).toEqual([command_run_checks]);
      // Known now, they are not requested again.
      await expect(lab.command('arm')).rejects.toThrow('PreArm: Compass not calibrated');
      expect(drone.commands).toHaveLength(1);
    });
  });

  it('arms it when the failure was that of an earlier mode', async () => {
    await withDrone({}, async (lab, drone) => {
      drone.pre_arm_ok = false;
      await lab.sees('sys_status', ({ pre_arm_check }) => pre_arm_check === false);
      drone.pre_arm_ok = true;
      expect(await lab.command('arm')).toMatchObject({ armed: true, acknowledged: true });
      expect(drone.commands.map(({ command }) => command)).toEqual([command_run_checks, command_arm]);
    });
  });

  it('refuses without a reason when it does not answer', async () => {
    await withDrone({}, async (lab, drone) => {
      drone.pre_arm_ok = false;
      await lab.sees('sys_status', ({ pre_arm_check }) => pre_arm_check === false);
      drone.react = () => undefined;
      await expect(lab.command('arm')).rejects.toThrow(texts.pre_arm_failed([]));
      expect(drone.commands.some(({ command }) => command === command_arm)).toBe(false);
    });
  });
});
