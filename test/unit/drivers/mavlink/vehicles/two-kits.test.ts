/** Two kits that receive one vehicle, each over a UDP socket of its own: with ids of their own, and with the same ids. */
import { describe, expect, it } from 'vitest';
import { texts } from '../../../../../drivers/mavlink/vehicles/texts.ts';
import type { FakeDrone } from '../../../../fakes/fake-drone.ts';
import { type MavlinkLab, withLab } from '../mavlink-lab.ts';

const set_mode = 176;
const [guided, loiter] = [4, 5];
const denied = 2;

/** A vehicle that two kits command; everything that it sends reaches both, as over one radio net. */
async function withTwoKits(
  second_ids: Readonly<Record<string, number>>,
  fn: (one: MavlinkLab, other: MavlinkLab, drone: FakeDrone) => Promise<void>,
): Promise<void> {
  await withLab(async (one) => {
    await withLab(second_ids, async (other) => {
      const drone = await one.fly({ airborne: true });
      drone.alsoTo(other.port);
      for (const kit of [one, other]) {
        await kit.sees('gps', ({ relative_alt_m }) => relative_alt_m !== null);
        await kit.sees('sys_status', ({ ekf_ok }) => ekf_ok !== null);
      }
      await fn(one, other, drone);
    });
  });
}

/** The kits receive each other: the vehicle forwards between its ports, as autopilots do. Commands differ, whatever their numbers. */
async function untilAlarm(one: MavlinkLab, other: MavlinkLab, drone: FakeDrone): Promise<void> {
  drone.forwards = true;
  await one.command('set_mode', { mode: 'GUIDED' });
  await other.command('return_home');
  await Promise.all([one.sees('sys_status', isShared), other.sees('sys_status', isShared)]);
}

const isShared = ({ alarms }: Readonly<Record<string, unknown>>): boolean =>
  Array.isArray(alarms) && alarms.includes(texts.own_id_shared(245, 191));

describe.concurrent('Two kits with ids of their own', () => {
  it('each get the answers to their own commands, and no alarm', async () => {
    await withTwoKits({ system_id: 246 }, async (one, other, drone) => {
      drone.react = (command, execute) =>
        command.param2 === guided ? { result: denied, texts: ['not now'] } : execute();
      const [refused, done] = await Promise.allSettled([
        one.command('set_mode', { mode: 'GUIDED' }),
        other.command('set_mode', { mode: 'LOITER' }),
      ]);
      expect(refused).toMatchObject({ status: 'rejected' });
      expect(String((refused as PromiseRejectedResult).reason)).toMatch(
        /refused set_mode GUIDED \(DENIED\)/u,
      );
      expect(done).toMatchObject({ value: { flight_mode: 'LOITER', acknowledged: true } });
      const senders = new Set(drone.beats.map(({ sysid, compid }) => `${sysid}/${compid}`));
      expect([...senders].toSorted((a, b) => a.localeCompare(b))).toEqual(['245/191', '246/191']);
      expect([...one.log.at('error'), ...other.log.at('error')]).toEqual([]);
    });
  });

  it('take no answer of an old autopilot, which names no station, to a command of the other one', async () => {
    await withTwoKits({ system_id: 246 }, async (one, other, drone) => {
      drone.forwards = true;
      const to_all = { progress: 0, result_param2: 0, target_system: 0, target_component: 0 };
      let theirs: Promise<unknown> = Promise.resolve();
      drone.react = ({ command, param2 }) => {
        if (param2 === guided) theirs = other.command('set_mode', { mode: 'LOITER' }).catch(() => undefined);
        if (param2 === loiter) drone.send('COMMAND_ACK', { command, result: denied, ...to_all });
        return undefined;
      };
      const ours = one.command('set_mode', { mode: 'GUIDED' });
      await expect(ours).rejects.toThrow(/did not answer set_mode GUIDED, .*; outcome unknown$/u);
      await theirs;
      expect(drone.commands.some(({ command, param2 }) => command === set_mode && param2 === loiter)).toBe(
        true,
      );
    });
  });

  it('see when the other one has taken the vehicle', async () => {
    await withTwoKits({ system_id: 246 }, async (one, other) => {
      const target = { lat: 47.399_742, lon: 8.545_594, alt_m: 30, wait_for_arrival: true };
      const flying = one.command('goto_waypoint', target, { remaining_ms: 60_000 });
      // Refused before it is awaited, on a busy machine.
      flying.catch(() => undefined);
      await one.sees('sys_status', ({ flight_mode }) => flight_mode === 'GUIDED');
      await other.sees('sys_status', ({ flight_mode }) => flight_mode === 'GUIDED');
      expect(await other.command('return_home')).toMatchObject({ flight_mode: 'RTL' });
      await expect(flying).rejects.toThrow(/outcome unknown$/u);
    });
  });
});

describe.concurrent('Two kits with the same ids', () => {
  it('raise an alarm in both when each receives the frames of the other', async () => {
    await withTwoKits({}, async (one, other, drone) => {
      await untilAlarm(one, other, drone);
      expect(one.log.at('error')).toEqual([texts.rival]);
    });
  });

  it('count no answer, but effects: a refusal of the other one refuses nothing, and no speed is reported as set', async () => {
    await withTwoKits({}, async (one, other, drone) => {
      await untilAlarm(one, other, drone);
      const to_kits = { progress: 0, result_param2: 0, target_system: 245, target_component: 191 };
      drone.react = ({ command }, execute) => {
        drone.send('COMMAND_ACK', { command, result: denied, ...to_kits });
        return execute();
      };
      expect(await one.command('set_mode', { mode: 'GUIDED' })).toEqual({
        flight_mode: 'GUIDED',
        acknowledged: false,
      });
      drone.react = () => ({ result: 0 });
      await expect(other.command('set_speed', { speed_mps: 5 })).rejects.toThrow(
        /another station uses the ids of this kit, .*; outcome unknown$/u,
      );
    });
  });
});
