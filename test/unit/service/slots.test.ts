/** Places that work shares, such as the connections of the database. */
import { expect, it } from 'vitest';
import { StorageBusy } from '../../../src/errors.ts';
import { turn } from '../../../src/platform/time.ts';
import { KeyedSlots, Slots } from '../../../src/service/slots.ts';

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

it('gives each key slots of its own, and no more of them after one was left twice', async () => {
  const refusal = (): Error => new StorageBusy('too long');
  const slots = new KeyedSlots({ count: 1, wait_max_ms: 1, waiting_max: 1, refusal });
  const leave = await slots.take('one');
  await slots.take('other');
  await expect(slots.take('one')).rejects.toBeInstanceOf(StorageBusy);
  leave();
  await slots.take('one');
  leave();
  await expect(slots.take('one')).rejects.toBeInstanceOf(StorageBusy);
});

it('lets no more wait than its limit, and gives those of one key a turn of the event loop each', async () => {
  const refusal = (): Error => new StorageBusy('too many');
  const slots = new KeyedSlots({ count: 1, wait_max_ms: 60_000, waiting_max: 2, refusal });
  const leave = await slots.take('one');
  const turns: number[] = [];
  let now = 0;
  const later = [1, 2].map(async () => {
    const done = await slots.take('one');
    turns.push(now);
    done();
  });
  await expect(slots.take('one')).rejects.toThrow('too many');
  leave();
  while (turns.length < 2) {
    await turn();
    now += 1;
  }
  await Promise.all(later);
  expect(turns[0]).toBeLessThan(turns[1] ?? 0);
});
