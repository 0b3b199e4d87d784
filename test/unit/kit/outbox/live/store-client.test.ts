import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { unpackBatch } from '../../../../../src/contract/batch/batch.ts';
import { StorageUnavailable } from '../../../../../src/platform/errors.ts';
import { startStore } from '../../../../../src/kit/outbox/live/store-client.ts';
import { rowsOf, storeOptions, work } from '../../../../support/disk/store-lab.ts';

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'kit-connector-store-'));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

/** Starts a store and finds the thread it runs in. */
async function startWithThread() {
  const begun: Promise<unknown[]> = once(process, 'worker');
  const started = await startStore(storeOptions(dir));
  const [worker] = await begun;
  if (!(worker instanceof Worker)) throw new Error('no thread was started');
  return { ...started, worker };
}

test('StoreClient resolves concurrent requests in order, each with its answer', async () => {
  const { client, opened } = await startStore(storeOptions(dir));
  const rows = rowsOf(opened.epoch, 0, 29);
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

test('StoreClient transfers rows and row references unchanged', async () => {
  const { client, opened } = await startStore(storeOptions(dir));
  const rows = rowsOf(opened.epoch, 0, 3).map((row, index) => ({ ...row, channel: `feed/x/${index % 2}` }));
  await client.commit(work({ rows }));
  const taken = await client.take({ lane: 'feed', form: 'rows', rows_max: 9, bytes_max: 1e6 });
  expect(taken.rows).toEqual(rows.map((row) => ({ ...row, time_quality: undefined })));
  const [first, second, third] = rows.map(({ id, lane }) => ({ id, lane }));
  if (!first || !second || !third) throw new Error('rows were not made');
  const done = await client.commit(work({ delivered: [first, third], unconfirmed: [second] }));
  expect(done.depth.feed.rows).toBe(2);
  expect(await client.resendUnconfirmed({ older_than_ms: 0, lazy: true })).toBe(1);
  await client.close();
});

test('StoreClient ends its thread on close and rejects later requests', async () => {
  const { client } = await startStore(storeOptions(dir));
  await client.close();
  await client.closed;
  await expect(client.inspect()).rejects.toThrow(StorageUnavailable);
});

test('StoreClient closes the file when its signal aborts', async () => {
  const end = new AbortController();
  const { client } = await startStore(storeOptions(dir), undefined, end.signal);
  end.abort();
  await expect(client.closed).resolves.toBeUndefined();
});

test('StoreClient rejects pending and later requests and closed when its thread exits', async () => {
  const { client, opened, worker } = await startWithThread();
  const rows = rowsOf(opened.epoch, 0, 9);
  await client.commit(work({ rows }));
  await worker.terminate();
  await expect(client.closed).rejects.toThrow(StorageUnavailable);
  await expect(client.commit(work({}))).rejects.toThrow(/^buffer thread ended/u);
  const again = await startStore(storeOptions(dir));
  expect(again.opened.depth.feed.rows).toBe(rows.length);
  await again.client.close();
});

test('StoreClient rejects all pending requests when its thread exits', async () => {
  const { client, opened, worker } = await startWithThread();
  const pending = Array.from({ length: 50 }, async () =>
    client.commit(work({ rows: rowsOf(opened.epoch, 0, 499) })),
  );
  const settled = Promise.allSettled(pending);
  await worker.terminate();
  const refused = (await settled).filter(({ status }) => status === 'rejected');
  expect(refused.length).toBeGreaterThan(0);
  for (const one of refused) expect(one).toMatchObject({ reason: { name: 'StorageUnavailable' } });
});

test('startStore rejects a missing folder and names it', async () => {
  const options = { ...storeOptions(dir), file: join(dir, 'nowhere', 'buffer.db') };
  await expect(startStore(options)).rejects.toThrow(/nowhere does not exist; create the folder/u);
});
