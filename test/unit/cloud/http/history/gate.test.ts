/** Two requests about the history run at once for a key; the others wait in line, and not without end. */
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import type { Principal } from '../../../../../src/cloud/principal.ts';
import { exports_max, HistoryGate } from '../../../../../src/cloud/http/history/gate.ts';

const principal = (key_id: string): Principal => ({
  key_id,
  user_id: 'u',
  label: key_id,
  scopes: ['read'],
  kits: '*',
});

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

it('gives a place to who has waited longest, and other keys have places of their own', async () => {
  const gate = new HistoryGate();
  const places = [await gate.enter(principal('a')), await gate.enter(principal('a'))];
  const entered: string[] = [];
  const enter = async (name: string): Promise<() => void> => {
    const leave = await gate.enter(principal('a'));
    entered.push(name);
    return leave;
  };
  const [first, second] = [enter('first'), enter('second')];
  await gate.enter(principal('b'));
  await vi.advanceTimersByTimeAsync(0);
  expect(entered).toEqual([]);
  places[0]?.();
  places[0]?.();
  await Promise.resolve();
  // Not in the same turn of the event loop, in which all others would follow.
  expect(entered).toEqual([]);
  await vi.advanceTimersByTimeAsync(0);
  const leaveFirst = await first;
  expect(entered).toEqual(['first']);
  leaveFirst();
  await vi.advanceTimersByTimeAsync(0);
  await second;
  expect(entered).toEqual(['first', 'second']);
});

it('refuses a request when 32 others wait, and one that has waited ten seconds', async () => {
  const gate = new HistoryGate();
  await gate.enter(principal('a'));
  await gate.enter(principal('a'));
  const waiting = Array.from({ length: 32 }, async () =>
    gate.enter(principal('a')).catch((error: unknown) => error),
  );
  await expect(gate.enter(principal('a'))).rejects.toMatchObject({ kind: 'too-many-requests' });
  await vi.advanceTimersByTimeAsync(10_000);
  const ends = await Promise.all(waiting);
  for (const end of ends) expect(end).toMatchObject({ kind: 'too-many-requests' });
});

it('has places for 24 exports of all keys together, and gives each back once', async () => {
  const gate = new HistoryGate();
  const places = await Promise.all(
    Array.from({ length: exports_max }, async (_, n) => gate.enterExport(principal(`key ${n >> 1}`))),
  );
  const refusal = { kind: 'unavailable', more: { retry_after_s: 30 } };
  await expect(gate.enterExport(principal('another'))).rejects.toMatchObject(refusal);
  places[0]?.leave();
  places[0]?.leave();
  await gate.enterExport(principal('another'));
  await expect(gate.enterExport(principal('another'))).rejects.toMatchObject(refusal);
});

it('reads for four requests at a time over all keys, and refuses a request after ten seconds of waiting', async () => {
  const gate = new HistoryGate();
  const done = Promise.withResolvers<undefined>();
  let reading = 0;
  const read = async (n: number): Promise<void> =>
    gate.run(principal(`key ${n}`), async () => {
      reading += 1;
      await done.promise;
    });
  const running = [1, 2, 3, 4].map(read);
  const refused = read(5).catch((error: unknown) => error);
  await vi.advanceTimersByTimeAsync(10_000);
  expect(await refused).toMatchObject({ kind: 'unavailable', more: { retry_after_s: 2 } });
  expect(reading).toBe(4);
  // Exports have places of their own.
  const place = await gate.enterExport(principal('key 6'));
  expect(await place.read(async () => 'a page')).toBe('a page');
  done.resolve(undefined);
  await Promise.all(running);
  await read(7);
});

it('lets requests of other keys read between the parts of a long one', async () => {
  const gate = new HistoryGate();
  const order: string[] = [];
  const parts = async (key: string): Promise<void> =>
    gate.runParts(principal(key), async (inTurn) => {
      for (let n = 0; n < 3; n += 1) {
        await inTurn(async () => {
          order.push(key);
          await Promise.resolve();
        });
      }
    });
  const long = ['a', 'a', 'b', 'b'].map(async (key) => parts(key));
  const other = gate.run(principal('c'), async () => void order.push('c'));
  await vi.advanceTimersByTimeAsync(1_000);
  await Promise.all([...long, other]);
  expect(order).toHaveLength(13);
  // It waited for none of their later parts.
  expect(order.indexOf('c')).toBe(4);
});
