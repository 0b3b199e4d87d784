/** Every command against both autopilots: done, refused, unanswered, interrupted, late, and cut off. */
import { describe, expect, it } from 'vitest';
import type { FakeDrone } from '../../../fakes/fake-drone.ts';
import { field } from '../../../fakes/fake-drone.ts';
import { type MavlinkLab, withLab } from './mavlink-lab.ts';

const autopilots = ['ardupilot', 'px4'] as const;
type About = Parameters<MavlinkLab['fly']>[0];

/** A drone of which everything is known that the gates ask for. */
async function withDrone(
  about: About,
  fn: (lab: MavlinkLab, drone: FakeDrone) => Promise<void>,
  options: Readonly<Record<string, unknown>> = {},
): Promise<void> {
  await withLab(async (lab) => {
    const drone = await lab.fly(about);
    await lab.sees('gps', ({ alt_m, relative_alt_m }) => alt_m !== null && relative_alt_m !== null);
    await lab.sees('sys_status', ({ ekf_ok, pre_arm_check }) => ekf_ok !== null && pre_arm_check !== null);
    await fn(lab, drone);
  }, options);
}

const near = { lat: field.lat + 0.001, lon: field.lon, alt_m: 30 };
const params: Readonly<Record<string, Record<string, unknown>>> = {
  set_mode: { mode: 'LOITER' },
  goto_waypoint: near,
};
/** What moves a vehicle that is in the air; `arm` and `disarm` are for one on the ground. */
const in_the_air = ['return_home', 'set_mode', 'goto_waypoint'] as const;
const on_the_ground = ['arm', 'disarm'] as const;
const all = [
  ...on_the_ground.map((name) => ({ name, airborne: false })),
  ...in_the_air.map((name) => ({ name, airborne: true })),
];
const payloadOf = (name: string) => params[name] as Parameters<MavlinkLab['command']>[1];

/** A disarmed vehicle shows nothing new when it is disarmed. */
const prepare = (drone: FakeDrone, name: string): void => {
  if (name === 'disarm') drone.flight.armed = true;
};

describe.concurrent('a command that is done', () => {
  it.each(autopilots)(
    'arms once the heartbeat shows it, and never asks to bypass the checks: %s',
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

  it.each(autopilots)('returns home: %s', async (autopilot) => {
    await withDrone({ autopilot, airborne: true }, async (lab) => {
      expect(await lab.command('return_home')).toEqual({ flight_mode: 'RTL', acknowledged: true });
    });
  });

  it.each(autopilots)('sets each mode that the vehicle has: %s', async (autopilot) => {
    await withDrone({ autopilot, airborne: true }, async (lab) => {
      for (const mode of ['LOITER', 'AUTO', 'GUIDED', 'RTL', 'LAND']) {
        const px4_names: Readonly<Record<string, string>> = { AUTO: 'MISSION', GUIDED: 'LOITER' };
        const flight_mode = autopilot === 'px4' ? (px4_names[mode] ?? mode) : mode;
        expect(await lab.command('set_mode', { mode })).toEqual({ flight_mode, acknowledged: true });
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

  it('takes alt_m above sea level or above the ellipsoid when the configuration says so', async () => {
    await withDrone(
      { airborne: true },
      async (lab) => {
        expect(await lab.command('goto_waypoint', { ...near, alt_m: 523 })).toMatchObject({
          height_above_home_m: 35,
        });
      },
      { goto: { datum: 'amsl' } },
    );
    await withDrone(
      { airborne: true, autopilot: 'px4' },
      async (lab) => {
        expect(await lab.command('goto_waypoint', { ...near, alt_m: 565.3 })).toMatchObject({
          alt_amsl_m: 518,
          height_above_home_m: 30,
        });
      },
      { goto: { datum: 'ellipsoid' } },
    );
  });

  it('is completed although the answer was lost, when the effect was seen', async () => {
    await withDrone({}, async (lab, drone) => {
      drone.react = (_command, obey) => {
        obey();
        return undefined;
      };
      expect(await lab.command('arm')).toEqual({ armed: true, acknowledged: false });
      expect(drone.commands).toHaveLength(1);
    });
  });
});

describe.concurrent('a command that takes another way', () => {
  it('sets the mode with the old message on firmware that does not know the command', async () => {
    await withDrone({ airborne: true }, async (lab, drone) => {
      drone.react = () => ({ result: 3 });
      expect(await lab.command('set_mode', { mode: 'LOITER' })).toMatchObject({ flight_mode: 'LOITER' });
    });
  });

  it('is done when a vehicle that was at work says so, and tells meanwhile how far it is', async () => {
    await withDrone({ airborne: true }, async (lab, drone) => {
      drone.react = (_command, obey) => {
        setTimeout(() => {
          const answer = obey();
          const to = { progress: 0, result_param2: 0, target_system: 245, target_component: 191 };
          drone.send('COMMAND_ACK', { command: 20, result: answer?.result ?? 4, ...to });
        }, 200);
        return { result: 5 };
      };
      const told: string[] = [];
      const result = await lab.command('return_home', {}, { progress: (sentence) => told.push(sentence) });
      expect(result).toEqual({ flight_mode: 'RTL', acknowledged: true });
      expect(told).toEqual(['Quadrotor 1 is at work']);
      expect(drone.commands).toHaveLength(1);
    });
  });
});

describe.concurrent('a command that the vehicle refuses', () => {
  it('fails with the words that ArduPilot says after its answer', async () => {
    await withDrone({}, async (lab, drone) => {
      drone.react = () => ({ result: 4, texts: ['PreArm: GPS 1: Bad fix'] });
      await expect(lab.command('arm')).rejects.toThrow(
        'Quadrotor 1 refused arm (FAILED): PreArm: GPS 1: Bad fix',
      );
    });
  });

  it('fails with the words that PX4 says in two pieces', async () => {
    await withDrone({ autopilot: 'px4' }, async (lab, drone) => {
      drone.react = () => ({ result: 1, texts: ['Arming denied: Resolve system health failures first\t'] });
      await expect(lab.command('arm')).rejects.toThrow(
        'Quadrotor 1 refused arm (TEMPORARILY_REJECTED): Arming denied: Resolve system health failures first',
      );
    });
  });

  it.each(all)('$name fails as DENIED', async ({ name, airborne }) => {
    await withDrone({ airborne }, async (lab, drone) => {
      prepare(drone, name);
      drone.react = () => ({ result: 2, texts: ['not now'] });
      await expect(lab.command(name, payloadOf(name))).rejects.toThrow(/refused .*\(DENIED\): not now$/u);
      expect(drone.commands).toHaveLength(1);
    });
  });
});

describe.concurrent('a command that is accepted without effect', () => {
  it.each(all)('$name is not reported as done', async ({ name, airborne }) => {
    await withDrone({ airborne }, async (lab, drone) => {
      prepare(drone, name);
      drone.react = () => ({ result: 0, texts: ['Switching is currently not available'] });
      await expect(lab.command(name, payloadOf(name))).rejects.toThrow(
        /accepted .* was not seen within .*: Switching is currently not available; outcome unknown$/u,
      );
    });
  });
});

describe.concurrent('a command without an answer', () => {
  it.each([
    { name: 'arm', airborne: false, copies: 1 },
    { name: 'goto_waypoint', airborne: true, copies: 1 },
    { name: 'disarm', airborne: false, copies: 3 },
    { name: 'return_home', airborne: true, copies: 3 },
    { name: 'set_mode', airborne: true, copies: 3 },
  ])('$name: copies sent: $copies, outcome unknown', async ({ name, airborne, copies }) => {
    await withDrone({ airborne }, async (lab, drone) => {
      prepare(drone, name);
      drone.react = () => undefined;
      await expect(lab.command(name, payloadOf(name))).rejects.toThrow(
        /did not answer .*; outcome unknown$/u,
      );
      expect(drone.commands).toHaveLength(copies);
    });
  });

  it('is not sent again when the vehicle says that it is at work', async () => {
    await withDrone({ airborne: true }, async (lab, drone) => {
      drone.react = () => ({ result: 5 });
      const result = lab.command('return_home', {}, { remaining_ms: 4_000 });
      await expect(result).rejects.toThrow(/outcome unknown$/u);
      expect(drone.commands).toHaveLength(1);
    });
  });
});

describe.concurrent('a command whose vehicle goes away', () => {
  it.each(all)('$name: the vehicle starts anew in the middle', async ({ name, airborne }) => {
    await withDrone({ airborne }, async (lab, drone) => {
      prepare(drone, name);
      drone.react = () => {
        void drone.reboot();
        return undefined;
      };
      await expect(lab.command(name, payloadOf(name))).rejects.toThrow(
        /started anew or changed its link after .* was sent; outcome unknown$/u,
      );
    });
  });

  it.each(all)('$name: the link is lost after it was sent', async ({ name, airborne }) => {
    await withDrone({ airborne }, async (lab, drone) => {
      prepare(drone, name);
      drone.react = () => {
        drone.silent = true;
        return undefined;
      };
      await expect(lab.command(name, payloadOf(name))).rejects.toThrow(
        /^the link to Quadrotor 1 was lost after .* was sent .*; outcome unknown$/u,
      );
    });
  });
});

describe.concurrent('a command that comes too late', () => {
  it.each(all)('$name is not sent', async ({ name, airborne }) => {
    await withDrone({ airborne }, async (lab, drone) => {
      await expect(lab.command(name, payloadOf(name), { remaining_ms: 400 })).rejects.toThrow(
        /^too late: .*nothing was done$/u,
      );
      await expect(
        lab.command(name, payloadOf(name), { signal: AbortSignal.abort(new Error('superseded')) }),
      ).rejects.toThrow('superseded');
      expect(drone.commands).toEqual([]);
    });
  });
});
