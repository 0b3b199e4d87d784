/** Places that work shares, such as the connections of the database. */
import { expect, it } from 'vitest';
import { StorageBusy } from '../../../src/errors.ts';
import { Slots } from '../../../src/service/slots.ts';

it('gives slots in the order in which they were asked for, and refuses work that would wait for longer than its limit', async () => {
  const refusal = (): Error => new StorageBusy('too long');
  const patient = new Slots({ count: 1, wait_max_ms: 60_000, refusal });
  const leave = await patient.take();
  const order: number[] = [];
  const later = [1, 2].map(async (n) => {
    const done = await patient.take();
    order.push(n);
    done();
  });
  leave();
  await Promise.all(later);
  expect(order).toEqual([1, 2]);

  const hasty = new Slots({ count: 1, wait_max_ms: 1, refusal });
  const free = await hasty.take();
  await expect(hasty.take()).rejects.toBeInstanceOf(StorageBusy);
  free();
  (await hasty.take())();
});
