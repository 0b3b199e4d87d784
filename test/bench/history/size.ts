/** Bytes that a message takes: in PostgreSQL after the compactor, and on the flash of a gateway. */
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { dayOf } from '../../../src/cloud/history/message.ts';
import { gateway_round_ms } from '../../../src/cloud/history/keeper.ts';
import { gatewayRetention } from '../../../src/cloud/history/retention.ts';
import type { Database } from '../../../src/cloud/sql/database.ts';
import { openSqlite } from '../../../src/cloud/sql/sqlite.ts';
import { sqlStore } from '../../../src/cloud/store/sql-store.ts';
import { withMeteredDisk } from '../support/metered-disk.ts';
import { batchOf } from './ingest.ts';
import { KitMessages, message_every_ms } from './kit-messages.ts';
import { day_ms } from '../../../src/platform/time.ts';

/** Of a kit that drains. */
const batch_messages = 600;
const messages_of_hour = 3_600_000 / message_every_ms;
/** Messages of a gateway that are stored together. */
const group_messages = 5;

export interface Sizes {
  readonly segments: number;
  /** Processor time of the process that compacts, with the figures of the days, for a message. */
  readonly compaction_us: number;
}

/** A day of several kits, landed in batches and compacted meanwhile, with indexes and what VACUUM leaves free. */
export async function measureSizes(database: Database, kits: number): Promise<Sizes> {
  const now_ms = dayOf(Date.now()) * day_ms;
  const store = sqlStore(database);
  const all = Array.from({ length: kits }, (_, n) => new KitMessages(randomUUID(), now_ms - day_ms, n));
  const messages_of_day = day_ms / message_every_ms;
  let compaction_ms = 0;
  for (let stored = 0; stored < messages_of_day; stored += batch_messages) {
    for (const kit of all) await store.commit([batchOf(kit, batch_messages)], now_ms);
    const before = process.cpuUsage();
    while ((await store.compactHistory(now_ms)) > 0);
    compaction_ms += process.cpuUsage(before).user / 1_000;
    if (stored % messages_of_hour === 0) await vacuum(database);
  }
  const before = process.cpuUsage();
  while ((await store.compactHistory(now_ms, true)) > 0);
  while (await store.rollUpHistory(now_ms + day_ms));
  compaction_ms += process.cpuUsage(before).user / 1_000;
  await vacuum(database);
  const messages = kits * messages_of_day;
  return {
    segments: (await bytesOf(database, history_tables)) / messages,
    compaction_us: (compaction_ms * 1_000) / messages,
  };
}

const history_tables = ['history', 'history_days', 'history_changed'] as const;

/** As autovacuum does in a day of real time, which the bench leaves out: more seldom, and it begins at a share of the rows. */
async function vacuum(database: Database): Promise<void> {
  for (const table of history_tables) await database.all(`VACUUM ${table}`);
}

/** With indexes and TOAST. */
export async function bytesOf(database: Database, tables: readonly string[]): Promise<number> {
  let bytes = 0;
  for (const table of tables) {
    const [row] = await database.all(`SELECT pg_total_relation_size('${table}') AS bytes`);
    bytes += Number(row?.['bytes']);
  }
  return bytes;
}

/** Bytes that reach the device of a gateway in hours at a message a second, for a message. */
export async function measureGateway(hours: number): Promise<number> {
  return withMeteredDisk(async (dir, writtenBytes) => {
    const options = { keeping: 'memory', history_file: join(dir, 'history.db') } as const;
    const store = sqlStore(openSqlite(join(dir, 'service.db'), options));
    const start_ms = dayOf(Date.now()) * day_ms;
    const kit = new KitMessages(randomUUID(), start_ms);
    const retention = gatewayRetention({ days: 30, max_mb: 200 });
    const before = await writtenBytes();
    const messages = (hours * 3_600_000) / message_every_ms;
    const messages_of_round = gateway_round_ms / message_every_ms;
    for (let stored = group_messages; stored <= messages; stored += group_messages) {
      const now_ms = start_ms + stored * message_every_ms;
      await store.commit([{ ...batchOf(kit, group_messages), packed: undefined }], now_ms);
      if (stored % messages_of_round > 0) continue;
      while ((await store.compactHistory(now_ms, true)) > 0);
      while (await store.rollUpHistory(now_ms));
      while ((await store.trimHistory(retention, now_ms)) > 0);
    }
    const bytes = (await writtenBytes()) - before;
    await store.close();
    return bytes / messages;
  });
}
