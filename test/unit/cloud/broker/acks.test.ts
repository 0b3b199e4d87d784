/** What is said on `down/ack`: all that was newly stored, in messages of a size that a kit takes, once a second. */
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { cloudAck, type CloudAck } from '../../../../src/contract/tasks.ts';
import { Acks } from '../../../../src/cloud/broker/acks.ts';
import { MessageRefused } from '../../../../src/cloud/broker/cloud-link.ts';
import { kit_id, task_id } from '../../../support/contract-samples.ts';
import { useFakeTime } from '../../../support/fake-time.ts';

useFakeTime();

interface Sent {
  readonly kit_id: string;
  readonly ack: CloudAck;
  readonly retained: boolean;
}

let sent: Sent[];
let newest: Record<string, number>;
let ends: AbortController;
let warned: string[];
let acks: Acks;
beforeEach(() => {
  sent = [];
  warned = [];
  newest = {};
  ends = new AbortController();
  acks = new Acks({
    store: { newestEpoch: async (kit) => newest[kit] ?? 0 },
    send: async (kit, ack, retained) => void sent.push({ kit_id: kit, ack: cloudAck.parse(ack), retained }),
    log,
    reportsRefusals: () => true,
    signal: ends.signal,
  });
});
afterEach(() => ends.abort());

const log = { warn: (_: object, sentence: string): void => void warned.push(sentence) };
const second = async (): Promise<void> => void (await vi.advanceTimersByTimeAsync(1_000));
const even = (count: number, from = 0): [number, number][] =>
  Array.from({ length: count }, (_, n) => [from + 2 * n, from + 2 * n]);

it('names everything of a second in messages of at most 1,000 ranges, of which the lowest is retained', async () => {
  acks.note([{ kit_id, ack: { epoch: 17, ranges: even(1_500) } }]);
  acks.note([{ kit_id, ack: { epoch: 17, ranges: [...even(1_000, 2_000), [9_000_000, 9_000_001]] } }]);
  expect(sent).toEqual([]);
  await second();
  expect(sent.map(({ ack, retained }) => [ack.ranges.length, retained])).toEqual([
    [1_000, true],
    [1_000, false],
    [1, false],
  ]);
  expect(sent.flatMap(({ ack }) => ack.ranges)).toEqual([...even(2_000), [9_000_000, 9_000_001]]);
  sent.length = 0;
  await second();
  expect(sent).toEqual([]);
});

it('reports once what came twice within a second', async () => {
  acks.note([{ kit_id, ack: { epoch: 17, ranges: [[1, 5]] } }]);
  acks.note([{ kit_id, ack: { epoch: 17, ranges: [[3, 9]] } }]);
  await second();
  expect(sent).toEqual([{ kit_id, ack: { epoch: 17, ranges: [[1, 9]] }, retained: true }]);
});

it('retains the newest epoch only, also when another replica has stored a newer one', async () => {
  newest[task_id] = 20;
  acks.note([
    { kit_id, ack: { epoch: 16, ranges: [[1, 1]] } },
    { kit_id, ack: { epoch: 17, ranges: [[1, 1]] } },
    { kit_id: task_id, ack: { epoch: 19, ranges: [[1, 1]] } },
  ]);
  await second();
  const retained = sent.filter((each) => each.retained).map(({ kit_id, ack }) => [kit_id, ack.epoch]);
  expect(sent).toHaveLength(3);
  expect(retained).toEqual([[kit_id, 17]]);
});

it('holds a bounded number of ranges and epochs of a kit: the kit sends again what was not named', async () => {
  for (let n = 0; n < 60; n += 1) acks.note([{ kit_id, ack: { epoch: 17, ranges: even(1_000, n * 2_000) } }]);
  await second();
  const named = sent.flatMap(({ ack }) => ack.ranges);
  expect(named).toHaveLength(20_000);
  expect(named.at(-1)).toEqual([119_998, 119_998]);
  sent.length = 0;
  for (let epoch = 1; epoch <= 100; epoch += 1) acks.note([{ kit_id, ack: { epoch, ranges: [[1, 1]] } }]);
  await second();
  expect(sent.map(({ ack }) => ack.epoch)).toEqual(Array.from({ length: 64 }, (_, n) => n + 37));
});

it('continues after a message that could not be sent', async () => {
  let isDown = true;
  const failing = new Acks({
    store: { newestEpoch: async () => Promise.reject(new Error('away')) },
    send: async (kit, ack, retained) => {
      if (isDown) throw new Error('not connected');
      sent.push({ kit_id: kit, ack, retained });
    },
    log,
    reportsRefusals: () => true,
    signal: ends.signal,
  });
  failing.note([{ kit_id, ack: { epoch: 17, ranges: [[1, 1]] } }]);
  await second();
  isDown = false;
  failing.note([{ kit_id, ack: { epoch: 17, ranges: [[2, 2]] } }]);
  await second();
  expect(sent.map(({ ack }) => ack.ranges)).toEqual([[[2, 2]]]);
});

/** Sends to a broker that accepts so many ranges in one message and refuses more with `code`. */
function limited(ranges_max: number, code: number): { readonly acks: Acks; readonly refused: CloudAck[] } {
  const refused: CloudAck[] = [];
  const link = {
    store: { newestEpoch: async () => 0 },
    send: async (kit: string, ack: CloudAck, retained: boolean): Promise<void> => {
      if (ack.ranges.length > ranges_max) {
        refused.push(ack);
        throw new MessageRefused(code, 'packet too large');
      }
      sent.push({ kit_id: kit, ack, retained });
    },
    log,
    reportsRefusals: () => true,
    signal: ends.signal,
  };
  return { acks: new Acks(link), refused };
}

it('names all ranges in smaller messages when the broker refuses large ones, and retains the lowest alone', async () => {
  const { acks: small, refused } = limited(150, 0x95);
  small.note([{ kit_id, ack: { epoch: 17, ranges: even(1_500) } }]);
  await second();
  expect(sent.flatMap(({ ack }) => ack.ranges).sort(([a], [b]) => a - b)).toEqual(even(1_500));
  expect(sent.filter(({ retained }) => retained).map(({ ack }) => ack.ranges[0])).toEqual([[0, 0]]);
  const tried = refused.length;
  sent.length = 0;
  // The size that was accepted is remembered for a minute.
  small.note([{ kit_id, ack: { epoch: 17, ranges: even(1_500) } }]);
  await second();
  expect(sent).toHaveLength(12);
  expect(refused).toHaveLength(tried);
  expect(warned).toEqual([]);
});

it('logs once a minute that the broker refuses acknowledgements', async () => {
  const { acks: none } = limited(0, 0x87);
  for (let n = 0; n < 3; n += 1) {
    none.note([{ kit_id, ack: { epoch: 17, ranges: even(2) } }]);
    await second();
  }
  expect(warned).toHaveLength(1);
  await vi.advanceTimersByTimeAsync(60_000);
  none.note([{ kit_id, ack: { epoch: 17, ranges: even(2) } }]);
  await second();
  expect(warned).toHaveLength(2);
});
