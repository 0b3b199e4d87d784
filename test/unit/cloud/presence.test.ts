/** When a kit was heard, since when it is online or offline, and tasks of which nobody hears: what the store makes of the kit's words. */
import { afterEach, beforeEach, expect, it } from 'vitest';
import { writeEnvelope } from '../../../src/contract/envelope.ts';
import type { JsonObject } from '../../../src/contract/json.ts';
import { connection_lost } from '../../../src/contract/presence.ts';
import { channels, upTopic } from '../../../src/contract/topics.ts';
import { readMessage } from '../../../src/cloud/read-message.ts';
import { openSqlite } from '../../../src/cloud/sql/sqlite.ts';
import { sqlStore, type Store } from '../../../src/cloud/store/sql-store.ts';
import { isOnline, kitResource, queueResource, silent_after_ms } from '../../../src/cloud/api/views.ts';
import { asset_id, kit_id, samples, task_id } from '../../support/contract-samples.ts';

const start_ms = Date.UTC(2026, 10, 21, 10);
const minute_ms = 60_000;
let store: Store;
beforeEach(() => {
  store = sqlStore(openSqlite(':memory:'));
});
afterEach(async () => store.close());

interface Said {
  readonly channel: string;
  readonly seq: number;
  readonly data: JsonObject;
  /** When the kit said it. */
  readonly said_ms: number;
  /** When it arrived. */
  readonly now_ms: number;
  readonly retained?: boolean;
}

async function hear({ channel, seq, data, said_ms, now_ms, retained = false }: Said) {
  const text = writeEnvelope({ epoch: 1, seq, time_ms: said_ms }, JSON.stringify(data));
  const reception = readMessage(upTopic(kit_id, channel), Buffer.from(text), retained);
  if (!reception) throw new Error(`no channel of the contract: ${channel}`);
  return store.commit([reception], now_ms);
}

const state = (online: boolean, reason: string | null): JsonObject => ({
  ...samples['kitState'],
  online,
  reason,
});
const birth = { channel: channels.state, seq: 1, data: state(true, null), said_ms: start_ms };
const will = { channel: channels.state, seq: 2, data: state(false, connection_lost), said_ms: start_ms };

async function kitAt(now_ms: number) {
  const kit = await store.kit(kit_id);
  if (!kit) throw new Error('the kit is not known');
  const { online, last_seen } = kitResource(kit, now_ms);
  return { online, last_seen, since: queueResource(kit, now_ms).since };
}
const at = (minutes: number): string => new Date(start_ms + minutes * minute_ms).toISOString();

it('a kit is online since its birth, and was seen when it last spoke', async () => {
  await hear({ ...birth, now_ms: start_ms });
  const now_ms = start_ms + 5 * minute_ms;
  await hear({ channel: channels.telemetry, seq: 3, data: { battery: 5 }, said_ms: now_ms, now_ms });
  expect(await kitAt(now_ms)).toEqual({ online: true, last_seen: at(5), since: at(0) });
});

it('a will is not a word of the kit: it is offline from then on, and was seen before', async () => {
  await hear({ ...birth, now_ms: start_ms });
  await hear({ ...will, now_ms: start_ms + 9 * minute_ms });
  expect(await kitAt(start_ms + 10 * minute_ms)).toEqual({ online: false, last_seen: at(0), since: at(9) });
});

it('what a kit said of its queue has the time at which it said so; of a will, when it was written', async () => {
  const asOf = async (): Promise<string | null> => {
    const kit = await store.kit(kit_id);
    if (!kit) throw new Error('the kit is not known');
    return queueResource(kit, start_ms).as_of;
  };
  await hear({
    channel: channels.telemetry,
    seq: 9,
    data: { battery: 5 },
    said_ms: start_ms,
    now_ms: start_ms,
  });
  expect(await asOf()).toBeNull();
  await hear({ ...birth, now_ms: start_ms + minute_ms });
  expect(await asOf()).toBe(at(0));
  await hear({ ...will, now_ms: start_ms + 9 * minute_ms });
  expect(await asOf()).toBe(at(0));
  await hear({ ...birth, seq: 3, said_ms: start_ms + 12 * minute_ms, now_ms: start_ms + 12 * minute_ms });
  expect(await asOf()).toBe(at(12));
});

it('a reconnect within the delay of the will does not begin its time online again', async () => {
  await hear({ ...birth, now_ms: start_ms });
  const again_ms = start_ms + 3 * minute_ms;
  await hear({ ...birth, seq: 3, said_ms: again_ms, now_ms: again_ms });
  expect(await kitAt(again_ms)).toEqual({ online: true, last_seen: at(3), since: at(0) });
});

it('what the broker had kept is as old as it says: a new service does not take a lost kit for a fresh one', async () => {
  const now_ms = start_ms + 1_000 * minute_ms;
  await hear({ ...will, now_ms, retained: true });
  await hear({
    channel: channels.asset(asset_id),
    seq: 4,
    data: samples['announcement'] ?? {},
    said_ms: start_ms + minute_ms,
    now_ms,
    retained: true,
  });
  expect(await kitAt(now_ms)).toEqual({ online: false, last_seen: at(1), since: null });
});

it('a birth that the broker still keeps reports that the kit is connected now, not that it was seen now', async () => {
  const now_ms = start_ms + 1_000 * minute_ms;
  await hear({ ...birth, now_ms, retained: true });
  expect(await kitAt(now_ms)).toEqual({ online: true, last_seen: at(0), since: at(0) });
  expect(await kitAt(now_ms + silent_after_ms)).toMatchObject({ online: false });
});

it('a kit with the longest pause between its reports is online all the time, and one that falls silent is offline since its last word', async () => {
  await hear({ ...birth, now_ms: start_ms });
  expect(await kitAt(start_ms + 61 * minute_ms)).toMatchObject({ online: true });
  const now_ms = start_ms + silent_after_ms;
  expect(await kitAt(now_ms)).toEqual({ online: false, last_seen: at(0), since: at(0) });
  const kit = await store.kit(kit_id);
  expect(kit && isOnline(kit, now_ms - 1)).toBe(true);
});

it('a kit is new once', async () => {
  const { new_kits } = await hear({ ...birth, now_ms: start_ms });
  expect(new_kits).toEqual([kit_id]);
  expect((await hear({ ...will, now_ms: start_ms })).new_kits).toEqual([]);
});

it('a kit that publishes without being known as online is without presence, until its birth comes', async () => {
  const telemetry = (seq: number, retained = false) => ({
    channel: channels.telemetry,
    seq,
    data: { battery: 5 },
    said_ms: start_ms,
    now_ms: start_ms,
    retained,
  });
  expect((await hear(telemetry(1, true))).without_presence).toEqual([]);
  expect((await hear(telemetry(2))).without_presence).toEqual([kit_id]);
  expect((await hear({ ...birth, now_ms: start_ms })).without_presence).toEqual([]);
  expect((await hear(telemetry(3))).without_presence).toEqual([]);
  await hear({ ...will, now_ms: start_ms });
  // It was not heard of a reconnect, and yet it speaks.
  expect((await hear(telemetry(4))).without_presence).toEqual([kit_id]);
  const degraded = ['the disk says "online":false'];
  await hear({ ...birth, seq: 3, data: { ...birth.data, degraded }, now_ms: start_ms });
  expect((await hear(telemetry(5))).without_presence).toEqual([]);
});

const order = {
  kit_id,
  task_id,
  asset_id,
  command_name: 'arm',
  payload: {},
  requested_by: kit_id,
  requested_by_name: 'test',
  created_ms: start_ms,
  due_ms: start_ms + minute_ms,
};
const report = (revision: number, status: string): JsonObject => ({
  task_id,
  asset_id,
  command_name: 'arm',
  status,
  revision,
  result: {},
});

it('a task that no kit answers fails, and the word of the kit counts when it comes after all', async () => {
  await store.addTask(order);
  expect(await store.failSilent(start_ms + minute_ms)).toEqual([]);
  const [failed] = await store.failSilent(start_ms + minute_ms + 1);
  expect(failed?.status).toBe('failed');
  expect(failed?.result['error']).toMatch(/unknown/u);
  const late = { channel: channels.task(task_id), said_ms: start_ms, now_ms: start_ms + 2 * minute_ms };
  await hear({ ...late, seq: 7, data: report(2, 'completed') });
  expect(await store.task(kit_id, task_id)).toMatchObject({ status: 'completed', result: {} });
  await hear({ ...late, seq: 8, data: report(3, 'failed') });
  expect(await store.task(kit_id, task_id)).toMatchObject({ status: 'completed', revision: 2 });
});

it('a task that the kit has begun is left to the kit', async () => {
  await store.addTask(order);
  await hear({
    channel: channels.task(task_id),
    seq: 7,
    data: report(1, 'running'),
    said_ms: start_ms,
    now_ms: start_ms,
  });
  expect(await store.failSilent(start_ms + 2 * minute_ms)).toEqual([]);
});
