/** When a broker may forget what it delivered: its PUBACK, or its ack of AMQP, follows the promise of `receive`. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { packBatch } from '../../../../src/contract/batch/pack.ts';
import { channels, upTopic } from '../../../../src/contract/topics.ts';
import { Receiver } from '../../../../src/cloud/ingest/receiver.ts';
import { asset_id, kit_id } from '../../../support/contract-samples.ts';
import { eventually } from '../../../support/eventually.ts';

const channel = channels.feed(asset_id, 'gps');
const data = JSON.stringify({ lat: 47, lon: 8 });
const single = Buffer.from(`{"time":"2026-11-26T08:00:00.000Z","epoch":1,"seq":1,"data":${data}}`);
const item = { channel, epoch: 1, seq: 2, time_ms: Date.UTC(2026, 10, 26), data };
const batch = packBatch([item], { historical: true });

describe.each([
  ['a single message', channel, single],
  ['a batch', channels.batch, batch],
])('the receiver of %s', (_, place, payload) => {
  const delivered = { topic: upTopic(kit_id, place), payload, retained: false };

  it('resolves only when it is stored', async () => {
    const stored = Promise.withResolvers<void>();
    const receiver = new Receiver({ take: async () => stored.promise });
    let isResolved = false;
    const received = receiver.receive(delivered).then(() => (isResolved = true));
    await nextTurn();
    expect(isResolved).toBe(false);
    stored.resolve();
    await received;
    expect(isResolved).toBe(true);
  });

  it('rejects when it is not stored, so that the broker keeps it', async () => {
    const receiver = new Receiver({ take: async () => Promise.reject(new Error('the database is full')) });
    await expect(receiver.receive(delivered)).rejects.toThrow('the database is full');
  });
});

it('reads large messages while there is room for them, and small ones at once', async () => {
  const taken: number[] = [];
  const rooms: (() => void)[] = [];
  const receiver = new Receiver({
    take: async ({ messages }) => void taken.push(...messages.map(({ seq }) => seq)),
    room: async () => new Promise((resolve) => rooms.push(resolve)),
  });
  const topic = upTopic(kit_id, channel);
  const receive = async (seq: number, chars: number): Promise<void> => {
    const text = `{"time":"2026-11-26T08:00:00.000Z","epoch":1,"seq":${seq},"data":{"text":"${'x'.repeat(chars)}"}}`;
    await receiver.receive({ topic, payload: Buffer.from(text), retained: false });
  };
  const large = [1, 2].map(async (seq) => receive(seq, 200_000));
  await receive(3, 100);
  await eventually('a large one waits', () => rooms.length > 0);
  expect(taken).toEqual([3]);
  rooms.shift()?.();
  await large[0];
  expect(taken).toEqual([3, 1]);
  await eventually('the other one waits', () => rooms.length > 0);
  rooms.shift()?.();
  await large[1];
  expect(taken).toEqual([3, 1, 2]);
});

it.each([
  ['a message', channel],
  ['a batch', channels.batch],
])('weighs %s of empty values as the memory that they take, since its text is short', async (_, place) => {
  const text = JSON.stringify({ v: Array.from({ length: 5_000 }, () => ({})) });
  const payload =
    place === channel
      ? Buffer.from(`{"time":"2026-11-26T08:00:00.000Z","epoch":1,"seq":1,"data":${text}}`)
      : packBatch([{ ...item, data: text }], { historical: true });
  let weight = 0;
  const receiver = new Receiver({ take: async (reception) => void (weight = reception.weight ?? 0) });
  await receiver.receive({ topic: upTopic(kit_id, place), payload, retained: false });
  expect(weight).toBeGreaterThan(10 * text.length);
});

it('reads each of many batches in a separate turn of the event loop', async () => {
  let [of_turn, of_turn_max, read] = [0, 0, 0];
  const take = async (): Promise<void> => {
    of_turn += 1;
    of_turn_max = Math.max(of_turn_max, of_turn);
    read += 1;
    setImmediate(() => (of_turn = 0));
  };
  const receiver = new Receiver({ take });
  const delivered = { topic: upTopic(kit_id, channels.batch), payload: batch, retained: false };
  await Promise.all(Array.from({ length: 20 }, async () => receiver.receive(delivered)));
  expect({ read, of_turn_max }).toEqual({ read: 20, of_turn_max: 1 });
});

it('lets other work run while it reads one large batch, and keeps the order of the batches', async () => {
  const items = Array.from({ length: 4_000 }, (_, seq) => ({
    ...item,
    seq: seq + 10,
    data: `{"v":"${'x'.repeat(900)}"}`,
  }));
  const large = packBatch(items, { historical: true });
  const counts: number[] = [];
  let [turns, isRead] = [0, false];
  const receiver = new Receiver({
    take: async ({ messages }) => {
      counts.push(messages.length);
      isRead = true;
    },
  });
  const count = (): void => {
    turns += 1;
    if (!isRead) setImmediate(count);
  };
  setImmediate(count);
  const topic = upTopic(kit_id, channels.batch);
  const receive = async (payload: Uint8Array): Promise<void> =>
    receiver.receive({ topic, payload, retained: false });
  await Promise.all([receive(large), receive(batch)]);
  expect(counts).toEqual([4_000, 1]);
  expect(turns).toBeGreaterThan(5);
});
