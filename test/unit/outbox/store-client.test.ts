import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { unpackBatch } from '../../../src/contract/batch.ts';
import { StorageUnavailable } from '../../../src/errors.ts';
import { rowId, type Row } from '../../../src/outbox/row.ts';
import { prepareStore, startStore } from '../../../src/outbox/store-client.ts';
import { storeOptions, work } from '../../support/store-lab.ts';

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'kit-connector-store-'));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

function rowsOf(epoch: number, count: number): Row[] {
  return Array.from({ length: count }, (_, seq) => ({
    id: rowId({ epoch, seq }),
    lane: 'feed',
    channel: 'feed/asset/gps',
    time_ms: seq,
    mono_ms: null,
    body: `{"n":${seq}}`,
  }));
}

/** Starts a store and finds the thread it runs in. */
async function startWithThread() {
  const begun: Promise<unknown[]> = once(process, 'worker');
  const started = await startStore(storeOptions(dir));
  const [worker] = await begun;
  if (!(worker instanceof Worker)) throw new Error('no thread was started');
  return { ...started, worker };
}

test('requests that are sent together are answered in order, each with its own answer', async () => {
  const { client, opened } = await startStore(storeOptions(dir));
  const rows = rowsOf(opened.epoch, 30);
  const [first, second, taken, task] = await Promise.all([
    client.commit(work({ rows: rows.slice(0, 10) })),
    client.commit(work({ rows: rows.slice(10) })),
    client.take({ lane: 'feed', form: 'batch', rows_max: 99, bytes_max: 1e6 }),
    client.findTask('nobody'),
  ]);
  expect([first.depth.feed.rows, second.depth.feed.rows]).toEqual([10, 30]);
  expect(unpackBatch(taken.batch?.payload ?? new Uint8Array()).map(({ data }) => data)).toEqual(
    rows.map(({ body }) => body),
  );
  expect(task).toBeUndefined();
  await client.close();
});

test('after close the thread ends, and later requests are refused', async () => {
  const { client } = await startStore(storeOptions(dir));
  await client.close();
  await client.closed;
  await expect(client.inspect()).rejects.toThrow(StorageUnavailable);
});

test('a thread that was prepared is used once, and no other is started for it', async () => {
  let threads = 0;
  const count = (): void => void (threads += 1);
  process.on('worker', count);
  try {
    prepareStore();
    prepareStore();
    const first = await startStore(storeOptions(dir));
    expect(threads).toBe(1);
    await first.client.close();
    const second = await startStore(storeOptions(dir));
    expect(threads).toBe(2);
    expect(second.opened.epoch).toBe(first.opened.epoch + 1);
    await second.client.close();
  } finally {
    process.off('worker', count);
  }
});

test('closes the file when its signal aborts', async () => {
  const end = new AbortController();
  const { client } = await startStore(storeOptions(dir), end.signal);
  end.abort();
  await expect(client.closed).resolves.toBeUndefined();
});

test('a thread that dies refuses what was asked and what will be asked, and tells whoever listens', async () => {
  const { client, opened, worker } = await startWithThread();
  const rows = rowsOf(opened.epoch, 10);
  await client.commit(work({ rows }));
  await worker.terminate();
  await expect(client.closed).rejects.toThrow(StorageUnavailable);
  await expect(client.commit(work({}))).rejects.toThrow(/thread of the buffer ended/u);
  const again = await startStore(storeOptions(dir));
  expect(again.opened.depth.feed.rows).toBe(rows.length);
  await again.client.close();
});

test('requests under way when the thread dies are refused, not forgotten', async () => {
  const { client, opened, worker } = await startWithThread();
  const pending = Array.from({ length: 50 }, async () =>
    client.commit(work({ rows: rowsOf(opened.epoch, 500) })),
  );
  const settled = Promise.allSettled(pending);
  await worker.terminate();
  const refused = (await settled).filter(({ status }) => status === 'rejected');
  expect(refused.length).toBeGreaterThan(0);
  for (const one of refused) expect(one).toMatchObject({ reason: { name: 'StorageUnavailable' } });
});

test('a missing folder is refused with a sentence that names it', async () => {
  const options = { ...storeOptions(dir), file: join(dir, 'nowhere', 'buffer.db') };
  await expect(startStore(options)).rejects.toThrow(/nowhere does not exist: create the folder/u);
});
