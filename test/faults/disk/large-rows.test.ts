/** Rows of many kilobytes in the thread of the buffer, whose memory is small. */
import { closeSync, mkdtempSync, openSync, rmSync, statSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { startStore } from '../../../src/kit/outbox/live/store-client.ts';
import { rowsOf, storeOptions, work } from '../../support/disk/store-lab.ts';

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'kit-connector-large-'));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

const text = (chars: number): string => JSON.stringify({ r: 'x'.repeat(chars) });

test('a damaged file of 80 MB in rows of 8 kB is salvaged', { tags: 'long' }, async () => {
  const options = storeOptions(dir);
  const { client, opened } = await startStore(options);
  const count = 10_000;
  for (let from = 0; from < count; from += 200)
    await client.commit(
      work({ rows: rowsOf(opened.epoch, from, from + 199, { lane: 'kit', body: text(8_000) }) }),
    );
  await client.close();
  const fd = openSync(options.file, 'r+');
  for (const page of [0, Math.floor(statSync(options.file).size / 4096 / 2)])
    writeSync(fd, Buffer.alloc(4096, 0xa5), 0, 4096, page * 4096);
  closeSync(fd);
  const again = await startStore(options);
  expect(again.opened.salvage?.rows_saved).toBeGreaterThan(count * 0.9);
  expect((again.opened.salvage?.rows_saved ?? 0) + (again.opened.salvage?.rows_lost ?? 0)).toBe(count);
  await again.client.close();
});

test('a thousand quarantined rows of 64 kB are listed, tried again and taken', { tags: 'long' }, async () => {
  const { client, opened } = await startStore(storeOptions(dir));
  for (let from = 0; from < 1_000; from += 20) {
    const rows = rowsOf(opened.epoch, from, from + 19, { lane: 'task', body: text(64_000) });
    await client.commit(
      work({ rows, quarantined: rows.map((row) => ({ row, code: 149, reason: 'packet too large' })) }),
    );
  }
  await client.inspect();
  expect(await client.listQuarantined(0)).toHaveLength(1_000);
  expect(await client.retryQuarantined(undefined)).toMatchObject({
    quarantined_rows: 0,
    depth: { task: { rows: 1_000 } },
  });
  const { rows } = await client.take({ lane: 'task', form: 'rows', rows_max: 256, bytes_max: 131_072 });
  expect(rows).toHaveLength(2);
  await client.close();
});
