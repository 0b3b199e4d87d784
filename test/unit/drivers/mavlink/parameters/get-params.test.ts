/** The command `get_params`: reads parameters of both autopilots, at losses and within limits. */
import { describe, expect, it } from 'vitest';
import { texts } from '../../../../../drivers/mavlink/commands/parameter-texts.ts';
import { bitsOf } from '../../../../../drivers/mavlink/commands/parameters.ts';
import { reportable } from '../../../../../src/kit/tasks/result.ts';
import { eventually } from '../../../../support/eventually.ts';
import { autopilots } from '../commands/commands-lab.ts';
import { withDrone } from '../mavlink-lab.ts';

describe.concurrent('get_params', () => {
  it.each(autopilots)(
    'reads named parameters and reports which the vehicle has not: %s',
    async (autopilot) => {
      await withDrone({ autopilot }, async (lab) => {
        const names = ['BATT_LOW_VOLT', 'LOG_OFFSET', 'NO_SUCH'];
        expect(await lab.command('get_params', { names }, { remaining_ms: 30_000 })).toEqual({
          count: 2,
          // The integer stands in the bits of the float of a PX4, and -1 would be no number.
          parameters: { BATT_LOW_VOLT: 14.4, LOG_OFFSET: -1 },
          unanswered: ['NO_SUCH'],
        });
      });
    },
  );

  it.each(autopilots)(
    'reads all of them while every fifth frame is lost: %s',
    async (autopilot) => {
      await withDrone({ autopilot }, async (lab, drone) => {
        for (let each = 0; each < 300; each += 1)
          drone.parameters.stored.set(`TEST_${each}`, { value: each, isInteger: each % 2 === 0 });
        drone.lose_every = 5;
        const steps: (number | undefined)[] = [];
        const progress = (_sentence: string, pct?: number): void => void steps.push(pct);
        const result = await lab.command('get_params', {}, { remaining_ms: 60_000, progress });
        expect(result).toMatchObject({ count: drone.parameters.stored.size });
        const expected = [...drone.parameters.stored].map(([name, { value }]) => [name, value]);
        expect(result['parameters']).toEqual(Object.fromEntries(expected));
        expect(steps.length).toBeGreaterThan(3);
        drone.lose_every = 0;
        const some = await lab.command('get_params', { prefix: 'BATT_' }, { remaining_ms: 60_000 });
        expect(some).toEqual({ count: 2, parameters: { BATT_CAPACITY: 5_200, BATT_LOW_VOLT: 14.4 } });
      });
    },
    90_000,
  );

  it('runs again after a restart of the daemon at any age, and an old one does not run for the first time', async () => {
    await withDrone({}, async (lab) => {
      const names = ['BATT_CAPACITY'];
      const old = { remaining_ms: 30_000, age_ms: 60_000 };
      await expect(lab.command('get_params', { names }, old)).rejects.toThrow(
        /^too late: .*; command not sent$/u,
      );
      const again = await lab.command('get_params', { names }, { ...old, repeated: true });
      expect(again).toMatchObject({ parameters: { BATT_CAPACITY: 5_200 } });
    });
  });

  it('takes one name for each index, however many are sent', async () => {
    await withDrone({}, async (lab, drone) => {
      for (let each = 0; each < 100; each += 1)
        drone.parameters.stored.set(`TEST_${each}`, { value: each, isInteger: true });
      const param_count = drone.parameters.stored.size;
      const lies = Array.from({ length: 50 }, (_none, at) => `LIE_${at}`);
      const lie = (): void => {
        for (const param_id of lies.splice(0))
          drone.send('PARAM_VALUE', { param_id, param_index: 0, param_count, param_type: 9, param_value: 0 });
      };
      const result = await lab.command('get_params', {}, { remaining_ms: 60_000, progress: lie });
      expect(lies).toEqual([]);
      const expected = [...drone.parameters.stored].map(([name, { value }]) => [name, value]);
      expect(result['count']).toBe(param_count);
      expect(result['parameters']).toEqual(Object.fromEntries(expected));
    });
  }, 60_000);

  it('reports hostile names without what is not drawn, values that are no numbers as null, and each index once', async () => {
    await withDrone({}, async (lab, drone) => {
      const hostile = [
        ['__proto__', Number.NaN],
        ['constructor', Number.POSITIVE_INFINITY],
        ['', 1],
        ['A\u001b[2J\nB', 2],
        ['SIXTEEN_BYTES_OK', 3],
        ['TWICE', 4],
        ['TWICE', 5],
      ] as const;
      drone.withheld.add('PARAM_VALUE');
      const late = lab.command('get_params', {}, { remaining_ms: 60_000 });
      const send = (param_count: number): void => {
        for (const [param_index, [param_id, value]] of hostile.entries())
          drone.send('PARAM_VALUE', {
            param_id,
            param_index,
            param_count,
            param_type: 9,
            param_value: bitsOf(value, false),
          });
      };
      // The number of parameters changes while they are read.
      await eventually('complete', async () => {
        drone.withheld.delete('PARAM_VALUE');
        send(1_000);
        send(hostile.length);
        drone.withheld.add('PARAM_VALUE');
        return (await Promise.race([late, Promise.resolve(undefined)])) !== undefined;
      });
      expect(reportable(await late)).toEqual({
        count: 6,
        parameters: Object.fromEntries([
          ['', 1],
          ['A [2J B', 2],
          ['SIXTEEN_BYTES_OK', 3],
          ['TWICE', 5],
          ['__proto__', null],
          ['constructor', null],
        ]),
      });
    });
  }, 60_000);

  it('fails when the vehicle does not answer, sends only a part, or has too many', async () => {
    await withDrone({}, async (lab, drone) => {
      const both = lab.command('get_params', { names: ['RTL_ALT'], prefix: 'RTL' });
      await expect(both).rejects.toThrow(texts.names_and_prefix);
      const late = lab.command('get_params', {}, { remaining_ms: 2_000 });
      drone.withheld.add('PARAM_VALUE');
      await expect(late).rejects.toThrow(texts.too_late('Quadrotor 1', 0));
      const silent = lab.command('get_params', { names: ['RTL_ALT'] });
      await expect(silent).rejects.toThrow(texts.none_answered('Quadrotor 1', 'RTL_ALT', 8));
      drone.withheld.clear();
      for (let each = 0; each < 1_900; each += 1)
        drone.parameters.stored.set(`TEST_${each}`, { value: each, isInteger: true });
      await expect(lab.command('get_params')).rejects.toThrow(texts.too_many('Quadrotor 1', 1_911, 1_900));
    });
  }, 60_000);
});
