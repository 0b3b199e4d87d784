/** Places that work shares, such as the connections of the database. */
import { describe, expect, it } from 'vitest';
import { StorageBusy } from '../../../src/platform/errors.ts';
import { KeyedSemaphore, Semaphore } from '../../../src/platform/semaphore.ts';
import { turn } from '../../../src/platform/time.ts';

const refusal = (): Error => new StorageBusy('too much');

describe('a semaphore', () => {
  it('gives places in the order in which they were asked for, and refuses work that would wait for longer than its limit', async () => {
    const patient = new Semaphore(1, { wait_max_ms: 60_000, refusal });
    const leave = await patient.take();
    expect(patient.tryTake()).toBeUndefined();
    const order: number[] = [];
    const later = [1, 2].map(async (n) => {
      const done = await patient.take();
      order.push(n);
      done();
    });
    leave();
    await Promise.all(later);
    expect(order).toEqual([1, 2]);

    const hasty = new Semaphore(1, { wait_max_ms: 1, refusal });
    const free = await hasty.take();
    await expect(hasty.take()).rejects.toBeInstanceOf(StorageBusy);
    free();
    (await hasty.take())();
  });

  it('gives the place back when the work fails', async () => {
    const semaphore = new Semaphore(1);
    await expect(semaphore.run(async () => Promise.reject(new Error('failed')))).rejects.toThrow('failed');
    expect(await semaphore.run(async () => 'done')).toBe('done');
  });
});

describe('a semaphore for each key', () => {
  it('gives each key places of its own, and no more of them after one was left twice', async () => {
    const places = new KeyedSemaphore(1, { wait_max_ms: 1, waiting_max: 1, refusal });
    const leave = await places.take('one');
    await places.take('other');
    expect(places.tryTake('one')).toBeUndefined();
    await expect(places.take('one')).rejects.toBeInstanceOf(StorageBusy);
    leave();
    await places.take('one');
    leave();
    await expect(places.take('one')).rejects.toBeInstanceOf(StorageBusy);
  });

  it('lets no more wait than its limit, and gives those of one key a turn of the event loop each', async () => {
    const places = new KeyedSemaphore(1, { wait_max_ms: 60_000, waiting_max: 2, refusal });
    const leave = await places.take('one');
    const turns: number[] = [];
    let now = 0;
    const later = [1, 2].map(async () => {
      await places.run('one', async () => void turns.push(now));
    });
    await expect(places.take('one')).rejects.toThrow('too much');
    leave();
    while (turns.length < 2) {
      await turn();
      now += 1;
    }
    await Promise.all(later);
    expect(turns[0]).toBeLessThan(turns[1] ?? 0);
  });
});
