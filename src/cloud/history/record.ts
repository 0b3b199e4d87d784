/** What the database keeps about the history of a kit beside its messages: it goes with an export. */
import type { CloudAck } from '../../contract/tasks.ts';
import { lockKits } from '../stored/commit-rows.ts';
import { sql, type Database, type Queries } from '../sql/database.ts';
import { insertRows } from '../sql/many-rows.ts';
import { block_size, blockOf, spanOf } from '../stored/received/number-block.ts';
import { cutFromRanges, type Range } from '../stored/received/ranges.ts';
import { readStored, ReceivedNumbers } from '../stored/received/received-numbers.ts';
import { holeOf, type Hole } from './holes.ts';

export interface KitRecord {
  /** Since when the history of the kit is kept, milliseconds since 1970; null: not known. */
  readonly since_ms: number | null;
  /** Numbers that were received, also of messages that are not kept any more. */
  readonly received: readonly CloudAck[];
  /** Messages that the kit reported as dropped, by epoch. */
  readonly dropped: readonly { readonly epoch: number; readonly rows: number }[];
  readonly holes: readonly Hole[];
  /** What was erased; `asset_id` is empty for the whole kit. */
  readonly erased: readonly { readonly asset_id: string; readonly before_ms: number }[];
}

/** Blocks of numbers of one transaction. */
const blocks_at_once = 8;

/** Since when the history is kept: of this kit, where it was imported, else of the database. */
export async function readSince(queries: Queries, kit_id: string): Promise<number | undefined> {
  const rows = await sql(queries)`SELECT name, value FROM service
    WHERE name IN (${since_name}, ${sinceName(kit_id)})`;
  const of = rows.find(({ name }) => name === sinceName(kit_id)) ?? rows[0];
  return of && Number(of['value']);
}

export const since_name = 'history_since_ms';

export function sinceName(kit_id: string): string {
  return `${since_name}/${kit_id}`;
}

export async function readRecord(queries: Queries, kit_id: string): Promise<KitRecord> {
  const holes = await queries.all('SELECT * FROM history_holes WHERE kit_id = ? ORDER BY epoch, lo', kit_id);
  const dropped = await sql(queries)`SELECT epoch, dropped FROM received
    WHERE kit_id = ${kit_id} AND dropped > 0 ORDER BY epoch`;
  const erased = await queries.all('SELECT asset_id, before_ms FROM history_erased WHERE kit_id = ?', kit_id);
  return {
    since_ms: (await readSince(queries, kit_id)) ?? null,
    received: await readStored(queries, kit_id),
    dropped: dropped.map((row) => ({ epoch: Number(row['epoch']), rows: Number(row['dropped']) })),
    holes: holes.map(holeOf),
    erased: erased.map((row) => ({ asset_id: String(row['asset_id']), before_ms: Number(row['before_ms']) })),
  };
}

/**
 * Adds what a record has beyond what is stored. Call it after its messages are imported: a number that counts as received keeps
 * its message out. Repeating it changes nothing.
 */
export async function writeRecord(
  database: Database,
  kit_id: string,
  record: KitRecord,
  now_ms: number,
): Promise<void> {
  await addReceived(database, kit_id, record.received, now_ms);
  await database.transaction(async (queries) => {
    await lockKits(queries, [kit_id]);
    if (record.since_ms !== null) await writeSince(queries, kit_id, record.since_ms);
    const dropped = record.dropped.map(({ epoch, rows }) => ({ kit_id, epoch, ranges: '[]', dropped: rows }));
    await insertRows(
      queries,
      'received',
      dropped,
      `ON CONFLICT (kit_id, epoch) DO UPDATE SET dropped =
        CASE WHEN received.dropped > excluded.dropped THEN received.dropped ELSE excluded.dropped END`,
    );
    await insertRows(
      queries,
      'history_holes',
      record.holes.map((hole) => ({ kit_id, ...hole })),
      `ON CONFLICT (kit_id, epoch, lo, hi, lane, reason) DO UPDATE SET messages = CASE
        WHEN history_holes.messages > excluded.messages THEN history_holes.messages ELSE excluded.messages END`,
    );
    const erased = record.erased.map(({ asset_id, before_ms }) => {
      // An export of an earlier version may hold a bound that lies ahead.
      return { kit_id, asset_id, before_ms: Math.min(before_ms, now_ms), erased_ms: now_ms };
    });
    await insertRows(
      queries,
      'history_erased',
      erased,
      `ON CONFLICT (kit_id, asset_id) DO UPDATE SET before_ms = CASE
        WHEN history_erased.before_ms > excluded.before_ms THEN history_erased.before_ms ELSE excluded.before_ms END`,
    );
  });
}

async function writeSince(queries: Queries, kit_id: string, since_ms: number): Promise<void> {
  const known_ms = await readSince(queries, kit_id);
  if (known_ms !== undefined && known_ms <= since_ms) return;
  await sql(queries)`INSERT INTO service (name, value) VALUES (${sinceName(kit_id)}, ${String(since_ms)})
    ON CONFLICT (name) DO UPDATE SET value = excluded.value`;
}

/** Notes numbers as received, block by block. */
async function addReceived(
  database: Database,
  kit_id: string,
  received: readonly CloudAck[],
  now_ms: number,
): Promise<void> {
  const stored = new Map((await readStored(database, kit_id)).map(({ epoch, ranges }) => [epoch, ranges]));
  for (const { epoch, ranges } of received) {
    let missing: readonly Range[] = ranges;
    for (const range of stored.get(epoch) ?? []) missing = cutFromRanges(missing, range);
    for (const part of partsOf(missing)) {
      const numbers = { kit_id, epoch, seqs: seqsOf(part) };
      await database.transaction(async (queries) => {
        await lockKits(queries, [kit_id]);
        const known = await ReceivedNumbers.read(queries, [numbers]);
        known.add(numbers);
        await known.write(queries, now_ms);
      });
    }
  }
}

/** Parts of the ranges that lie in few blocks each. */
function* partsOf(ranges: readonly Range[]): Iterable<readonly Range[]> {
  let part: Range[] = [];
  let until = 0;
  for (const [first, last] of ranges) {
    for (let from = first; from <= last;) {
      if (from > until) {
        if (part.length > 0) yield part;
        part = [];
        until = spanOf(blockOf(from))[1] + (blocks_at_once - 1) * block_size;
      }
      const to = Math.min(last, until);
      part.push([from, to]);
      from = to + 1;
    }
  }
  if (part.length > 0) yield part;
}

function seqsOf(ranges: readonly Range[]): readonly number[] {
  return ranges.flatMap(([first, last]) => Array.from({ length: last - first + 1 }, (_, at) => first + at));
}
