/** Outcomes of deliveries on their way to the database. */
import { expect, it } from 'vitest';
import { InvariantBroken, StorageUnavailable } from '../../../../src/platform/errors.ts';
import { Settling } from '../../../../src/cloud/webhooks/deliverer.ts';
import type { Settlement } from '../../../../src/cloud/webhooks/webhook-store.ts';

const outcome = (id: number): Settlement => ({
  webhook_id: 'hook',
  id: String(id),
  lease: '',
  kind: 'delivered',
  now_ms: 0,
});
const outcomes = (count: number) => Array.from({ length: count }, (_, id) => outcome(id));

it('takes one transaction at a time for the outcomes of all receivers, and stores at most 64 in it', async () => {
  const sizes: number[] = [];
  let running = 0;
  const settling = new Settling({
    settleMessages: async (some) => {
      running += 1;
      expect(running).toBe(1);
      sizes.push(some.length);
      await Promise.resolve();
      running -= 1;
      return some.map(({ id }) => ({ disabled: id === '70' }));
    },
  });
  const settled = await Promise.all(outcomes(100).map(async (each) => settling.settle(each)));
  expect(sizes).toEqual([1, 64, 35]);
  expect(settled.map(({ disabled }) => disabled).indexOf(true)).toBe(70);
});

it('stores the others when the database refuses one outcome for good, and none twice when it does not answer', async () => {
  let faults = 0;
  const stored: string[] = [];
  const settling = new Settling({
    settleMessages: async (some) => {
      if (faults > 0) {
        faults -= 1;
        throw new StorageUnavailable('no answer');
      }
      if (some.some(({ id }) => id === '2')) throw new InvariantBroken('refused');
      stored.push(...some.map(({ id }) => id));
      return some.map(() => ({ disabled: false }));
    },
  });
  const ends = async (count: number) =>
    (await Promise.allSettled(outcomes(count).map(async (each) => settling.settle(each)))).map(
      ({ status }) => status,
    );
  expect(await ends(4)).toEqual(['fulfilled', 'fulfilled', 'rejected', 'fulfilled']);
  expect(stored).toEqual(['0', '1', '3']);
  faults = 2;
  expect(await ends(3)).toEqual(['rejected', 'rejected', 'rejected']);
  expect(stored).toEqual(['0', '1', '3']);
});
