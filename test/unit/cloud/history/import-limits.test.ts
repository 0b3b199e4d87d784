/** A file with large messages, as the service that imports it holds them. */
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { chars_at_once, importLines } from '../../../../src/cloud/history/transfer/import.ts';
import {
  writeKitLine,
  writeMessageLine,
  writeRecordLines,
} from '../../../../src/cloud/history/transfer/lines.ts';
import { openSqlite } from '../../../../src/cloud/sql/sqlite.ts';
import { sqlStore, type Store } from '../../../../src/cloud/store/sql-store.ts';
import { kit_id } from '../../../support/contract-samples.ts';
import { makeDirectory } from '../../../support/temporary.ts';

const now_ms = Date.now();

let store: Store;
/** How many characters each transaction of an import had. */
let transactions: number[];
beforeEach(async () => {
  const plain = sqlStore(openSqlite(join(await makeDirectory(), 'kits.db')));
  transactions = [];
  store = {
    ...plain,
    async importMessages(kit, messages, arrived_ms) {
      transactions.push(messages.reduce((sum, { data }) => sum + data.length, 0));
      await plain.importMessages(kit, messages, arrived_ms);
    },
  };
});
afterEach(async () => store.close());

async function imported(bodies: readonly string[]): Promise<unknown> {
  const messages = bodies.map((data, seq) => ({
    channel: 'telemetry',
    epoch: 1,
    seq,
    time_ms: now_ms,
    unsynced: false,
    data,
  }));
  const record = { since_ms: null, received: [], dropped: [], holes: [], erased: [] };
  const lines = [
    writeKitLine(kit_id, 0),
    ...messages.map((message) => writeMessageLine(message, undefined)),
    ...writeRecordLines(record, messages.length),
  ];
  return importLines(store, arriving(lines), () => now_ms);
}

async function* arriving(lines: readonly string[]): AsyncGenerator<string, void, undefined> {
  for (const line of lines) yield line.trimEnd();
}

describe('the import of a history', () => {
  it('holds no more of large messages than one transaction should have', { tags: 'long' }, async () => {
    const large = JSON.stringify({ text: 'x'.repeat(200_000) });
    const count = Math.ceil((3 * chars_at_once) / large.length);
    await imported(Array.from({ length: count }, () => large));
    expect(transactions.length).toBeGreaterThan(2);
    expect(Math.max(...transactions)).toBeLessThanOrEqual(chars_at_once + large.length);
  });
});
