/** No message of a hostile kit takes more memory while it is read than a process has: it would end each start, since the broker delivers it again. */
import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { deflateSync } from 'node:zlib';
import { expect, it } from 'vitest';
import { channels, upTopic } from '../../../../src/contract/topics.ts';
import { asset_id, kit_id } from '../../../support/contract-samples.ts';

/** Far less than the service may take. */
const heap_mb = 64;

const rowsOf = <T>(count: number, value: T): readonly T[] => Array.from({ length: count }, () => value);
const head = (rows: number): object => ({
  e: 1,
  ch: channels.feed(asset_id, 'gps'),
  seq: rowsOf(rows, 1),
  t: rowsOf(rows, 1),
});
const packed = (...groups: readonly object[]): Uint8Array =>
  deflateSync(JSON.stringify({ v: 1, historical: false, groups }));
const nested = (depth: number): unknown => (depth === 0 ? {} : [nested(depth - 1)]);

it.each([
  ['long texts', packed({ ...head(30), v: rowsOf(30, 'x'.repeat(250_000)) })],
  ['empty objects', packed({ ...head(6), v: rowsOf(6, rowsOf(48_000, {})) })],
  ['a long constant', packed({ ...head(9_000), k: ['a'], c: [{ c: 'x'.repeat(250_000) }] })],
  ['deep lists', packed({ ...head(1_000), v: rowsOf(1_000, nested(30)) })],
  ['many epochs', packed(...Array.from({ length: 9_000 }, (_, at) => ({ ...head(1), e: at + 1, v: [{}] })))],
  ['half a gigabyte', deflateSync(Buffer.alloc(500_000_000, '['))],
])(`a batch of %s is read with ${heap_mb} MB of heap`, { timeout: 60_000 }, async (_, payload) => {
  const worker = new Worker(new URL('./read-message-process.ts', import.meta.url), {
    workerData: { topic: upTopic(kit_id, channels.batch), payload },
    resourceLimits: { maxOldGenerationSizeMb: heap_mb, maxYoungGenerationSizeMb: 16 },
  });
  expect(await once(worker, 'exit')).toEqual([0]);
});
