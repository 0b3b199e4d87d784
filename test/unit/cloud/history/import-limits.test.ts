/** A file that was written to fill the memory or the database of the service that imports it. */
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { message_limits } from '../../../../src/contract/bounded-json.ts';
import {
  chars_at_once,
  importLines,
  record_chars_max,
} from '../../../../src/cloud/history/transfer/import.ts';
import {
  writeKitLine,
  writeMessageLine,
  writeRecordLines,
} from '../../../../src/cloud/history/transfer/lines.ts';
import { texts } from '../../../../src/cloud/history/transfer/texts.ts';
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
  it('refuses a message that no kit could have sent', async () => {
    const large = JSON.stringify({ text: 'x'.repeat(message_limits.bytes_max) });
    await expect(imported([large])).rejects.toThrow(texts.line_unreadable(2));
    const deep = `{"a":${'['.repeat(200)}${']'.repeat(200)}}`;
    await expect(imported(['{}', deep])).rejects.toThrow(texts.line_unreadable(3));
    expect(transactions).toEqual([]);
  });

  it('ends at records without end, and stores none of them', async () => {
    const hole = {
      epoch: 1,
      lo: 0,
      hi: 9,
      lane: 'sync',
      reason: 'x'.repeat(1_900),
      messages: 10,
      reported_ms: 0,
    };
    const record = JSON.stringify({ hole });
    let read = 0;
    async function* endless(): AsyncGenerator<string, void, undefined> {
      yield writeKitLine(kit_id, 0).trimEnd();
      for (;;) {
        read += 1;
        yield record;
      }
    }
    const most = Math.floor(record_chars_max / record.length);
    await expect(importLines(store, endless(), () => now_ms)).rejects.toThrow(
      texts.records_too_large(most + 2, record_chars_max),
    );
    expect(read).toBe(most + 1);
  });

  it('holds no more of large messages than one transaction should have', async () => {
    const large = JSON.stringify({ text: 'x'.repeat(200_000) });
    const count = Math.ceil((3 * chars_at_once) / large.length);
    await imported(Array.from({ length: count }, () => large));
    expect(transactions.length).toBeGreaterThan(2);
    expect(Math.max(...transactions)).toBeLessThanOrEqual(chars_at_once + large.length);
  });
});
