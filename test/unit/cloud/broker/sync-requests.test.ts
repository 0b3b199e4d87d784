/** Whom the service asks to publish everything again: kits it knows nothing of, a few a second and ever more rarely. */
import { randomUUID } from 'node:crypto';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { SyncRequests } from '../../../../src/cloud/broker/sync-requests.ts';
import { kit_id } from '../../../support/contract-samples.ts';
import { useFakeTime } from '../../../support/fake-time.ts';

useFakeTime();

const minute_ms = 60_000;
let asked: { readonly kit: string; readonly at_ms: number }[];
let online: Set<string>;
let ends: AbortController;
let requests: SyncRequests;
beforeEach(() => {
  asked = [];
  online = new Set();
  ends = new AbortController();
  requests = new SyncRequests({
    isOnline: async (kit) => online.has(kit),
    request: async (kit) => void asked.push({ kit, at_ms: performance.now() }),
    signal: ends.signal,
  });
});
afterEach(() => ends.abort());

const pass = async (ms: number): Promise<void> => void (await vi.advanceTimersByTimeAsync(ms));
const absent = (...kits: readonly string[]) => ({ new_kits: [], without_presence: kits });

it('asks a kit that this database has never received anything of within a second', async () => {
  requests.note({ new_kits: [kit_id], without_presence: [kit_id] });
  await pass(1_000);
  expect(asked.map(({ kit }) => kit)).toEqual([kit_id]);
});

it('asks a kit that publishes and is not known to be online, once its birth has had time to come', async () => {
  requests.note(absent(kit_id));
  await pass(4_000);
  expect(asked).toEqual([]);
  await pass(3_000);
  expect(asked).toHaveLength(1);
});

it('does not ask a kit whose birth came meanwhile', async () => {
  requests.note(absent(kit_id));
  online.add(kit_id);
  await pass(minute_ms);
  expect(asked).toEqual([]);
});

it('asks a kit that never answers ever more rarely, at last once an hour', async () => {
  for (let second = 0; second < 8 * 3_600; second += 1) {
    requests.note(absent(kit_id));
    await pass(1_000);
  }
  const pauses = asked
    .slice(1)
    .map(({ at_ms }, n) => Math.round((at_ms - (asked[n]?.at_ms ?? 0)) / minute_ms));
  expect(pauses.slice(0, 4)).toEqual([1, 4, 16, 60]);
  expect(new Set(pauses.slice(3))).toEqual(new Set([60]));
});

it('begins with short pauses again when the kit was online in between', async () => {
  for (let second = 0; second < 400; second += 1) {
    requests.note(absent(kit_id));
    await pass(1_000);
  }
  online.add(kit_id);
  requests.note(absent(kit_id));
  await pass(20 * minute_ms);
  online.clear();
  asked.length = 0;
  requests.note(absent(kit_id));
  await pass(7_000);
  expect(asked).toHaveLength(1);
});

it('asks at most 50 kits a second, so that a fleet does not answer all at once', async () => {
  const kits = Array.from({ length: 1_000 }, () => randomUUID());
  requests.note({ new_kits: kits, without_presence: [] });
  for (let second = 1; second <= 20; second += 1) {
    await pass(1_000);
    expect(asked.length).toBeLessThanOrEqual(second * 50);
  }
  await pass(2_000);
  expect(new Set(asked.map(({ kit }) => kit)).size).toBe(1_000);
});
