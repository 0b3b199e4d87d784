/**
 * The sequence numbers that were stored of each kit and epoch, in blocks of 4,096: a commit reads and writes the blocks
 * that its numbers lie in and nothing else, however many holes there are. A block without a hole leaves the table and
 * joins the ranges of its epoch. What is beyond the limits is forgotten, never assumed: see decision 0011.
 */
import type { CloudAck } from '../../../contract/tasks.ts';
import { blockOf, NumberBlock, spanOf } from './number-block.ts';
import { cutFromRanges, joinRanges, type Range, rangeAt, sizeOf } from './ranges.ts';
import { rangesOf } from '../rows.ts';
import { type Clause, clause, listed, sql, type Queries, type Row } from '../../sql/database.ts';
import { inPortions, insertRows } from '../../sql/many-rows.ts';

/** Epochs of one kit whose numbers are kept, those first that were touched last. */
export const epochs_max = 64;
/** Blocks with holes of one epoch: 175 kB at most, for at least a million numbers. */
const blocks_max = 256;
/** Ranges of whole blocks of one epoch. */
const ranges_max = 1_000;
/** Of these, what each acknowledgement names beside what has just come. */
const lowest_named = 100;
/** Stands in the place of the blocks of an epoch that were forgotten. */
const forgotten = -2;

export interface Numbers {
  readonly kit_id: string;
  readonly epoch: number;
  readonly seqs: readonly number[];
}

/** Messages of an epoch that the kit reported as dropped. */
export interface Dropped {
  readonly kit_id: string;
  readonly epoch: number;
  readonly rows: number;
}

export interface Noted {
  /** The numbers that were not known before. */
  readonly unseen: ReadonlySet<number>;
  /** Stored once this transaction is committed: at least the ranges of these numbers. Sorted and separate. */
  readonly ranges: readonly Range[];
}

interface Epoch {
  readonly kit_id: string;
  readonly epoch: number;
  /** Whole blocks; beside them whatever an earlier version has stored. */
  ranges: readonly Range[];
  readonly isNew: boolean;
  isChanged: boolean;
  readonly blocks: Map<number, Block>;
  /** Ranges that are over the limit and are not kept. */
  readonly forgotten: Range[];
}

interface Block {
  readonly numbers: NumberBlock;
  readonly isNew: boolean;
  isChanged: boolean;
}

/** Inside a transaction that has locked the kits. */
export class ReceivedNumbers {
  readonly #epochs: ReadonlyMap<string, Epoch>;
  readonly #dropped = new Map<string, Dropped>();

  private constructor(epochs: ReadonlyMap<string, Epoch>) {
    this.#epochs = epochs;
  }

  /** Reads what is known of the places where these numbers lie. */
  static async read(queries: Queries, wanted: readonly Numbers[]): Promise<ReceivedNumbers> {
    const epochs = new Map<string, Epoch>();
    const blocks = wanted.flatMap(({ kit_id, epoch, seqs }) =>
      [...new Set(seqs.map(blockOf))].map((block) => ({ kit_id, epoch, block })),
    );
    const rows = await inPortions(
      blocks,
      async (some) => sql(queries)`SELECT wanted.column1 AS kit_id, wanted.column2 AS epoch,
          wanted.column3 AS block, ranges, seen FROM (VALUES ${listed(some.map(keyRow))}) AS wanted
        LEFT JOIN received ON received.kit_id = wanted.column1 AND received.epoch = wanted.column2
        LEFT JOIN received_blocks AS stored ON stored.kit_id = wanted.column1 AND stored.epoch = wanted.column2
          AND stored.block = wanted.column3`,
    );
    for (const row of rows) {
      const [kit_id, epoch, block] = [String(row['kit_id']), Number(row['epoch']), Number(row['block'])];
      const { ranges, seen } = row;
      const isNew = typeof ranges !== 'string';
      const empty = { isChanged: false, blocks: new Map<number, Block>(), forgotten: [] };
      const known = isNew ? [] : rangesOf.parse(ranges);
      const entry = epochs.get(keyOf(row)) ?? { kit_id, epoch, ranges: known, isNew, ...empty };
      epochs.set(keyOf(row), entry);
      if (typeof seen !== 'string') continue;
      const numbers = new NumberBlock(block, seen);
      entry.blocks.set(block, { numbers, isNew: false, isChanged: false });
    }
    return new ReceivedNumbers(epochs);
  }

  /** Notes numbers of an epoch that was read. */
  add({ kit_id, epoch, seqs }: Numbers): Noted {
    const unseen = new Set<number>();
    const entry = this.#epochs.get(keyOf({ kit_id, epoch }));
    if (!entry) return { unseen, ranges: [] };
    const named: Range[] = [];
    for (const [block, ofBlock] of Map.groupBy(new Set(seqs), blockOf)) {
      const whole = rangesWith(entry.ranges, ofBlock);
      named.push(...new Set(whole));
      if (whole.length === ofBlock.length) continue;
      const { numbers, fresh } = addToBlock(entry, block, ofBlock);
      for (const seq of fresh) unseen.add(seq);
      named.push(...new Set(rangesWith(numbers.ranges(), ofBlock)));
    }
    return { unseen, ranges: joinRanges(entry.ranges.slice(0, lowest_named), named) };
  }

  /** Notes a report, also of an epoch of which nothing was received yet: its numbers are not missing. */
  drop({ kit_id, epoch, rows }: Dropped): void {
    const key = keyOf({ kit_id, epoch });
    this.#dropped.set(key, { kit_id, epoch, rows: rows + (this.#dropped.get(key)?.rows ?? 0) });
  }

  /** Writes what `add` and `drop` have changed. */
  async write(queries: Queries, now_ms: number): Promise<void> {
    const changed = [...this.#epochs.values()].filter(isChanged);
    for (const entry of changed) boundRanges(entry);
    const rows = changed
      .filter((entry) => entry.isChanged || entry.isNew)
      .map(({ kit_id, epoch, ranges }) => ({ kit_id, epoch, ranges: JSON.stringify(ranges), dropped: 0 }));
    const clauses = 'ON CONFLICT (kit_id, epoch) DO UPDATE SET ranges = excluded.ranges';
    await insertRows(queries, 'received', rows, clauses);
    await writeBlocks(queries, changed, now_ms);
    for (const entry of changed) await forget(queries, entry, now_ms);
    const dropped = [...this.#dropped.values()];
    await writeDropped(queries, dropped);
    const started = new Set(
      [...changed.filter(({ isNew }) => isNew), ...dropped].map(({ kit_id }) => kit_id),
    );
    for (const kit_id of started) await forgetEpochs(queries, kit_id);
  }
}

function keyOf(row: Readonly<Record<string, unknown>>): string {
  return `${String(row['kit_id'])} ${Number(row['epoch'])}`;
}

/** Where a row of numbers stands for itself, PostgreSQL takes them for texts. */
function keyRow({ kit_id, epoch, block }: { kit_id: string; epoch: number; block: number }): Clause {
  return clause`(${kit_id}, CAST(${epoch} AS BIGINT), CAST(${block} AS BIGINT))`;
}

/** The range of each number that is in one. */
function rangesWith(ranges: readonly Range[], seqs: readonly number[]): readonly Range[] {
  return seqs.map((seq) => rangeAt(ranges, seq)).filter((range) => range !== undefined);
}

function isChanged({ isChanged, blocks }: Epoch): boolean {
  return isChanged || [...blocks.values()].some((block) => block.isChanged);
}

function addToBlock(entry: Epoch, block: number, seqs: readonly number[]) {
  const known = entry.blocks.get(block);
  const held: Block = known ?? { numbers: new NumberBlock(block), isNew: true, isChanged: false };
  entry.blocks.set(block, held);
  const { numbers } = held;
  const span = spanOf(block);
  // What an earlier version has stored of this block moves into it, so that no number is in both.
  const cut = cutFromRanges(entry.ranges, span);
  if (sizeOf(cut) < sizeOf(entry.ranges)) {
    const [from, to] = span;
    for (const [first, last] of entry.ranges) {
      for (let seq = Math.max(first, from); seq <= Math.min(last, to); seq += 1) numbers.add(seq);
    }
    entry.ranges = cut;
    entry.isChanged = true;
    held.isChanged = true;
  }
  const fresh = seqs.filter((seq) => numbers.add(seq));
  if (fresh.length > 0) held.isChanged = true;
  if (numbers.isFull) {
    entry.ranges = joinRanges(entry.ranges, [span]);
    entry.isChanged = true;
  }
  return { numbers, fresh };
}

/** The lowest ranges go first: a kit drains from the oldest, so that these were complete first and come again last. */
function boundRanges(entry: Epoch): void {
  const excess = entry.ranges.length - ranges_max;
  if (excess <= 0) return;
  entry.forgotten.push(...entry.ranges.slice(0, excess));
  entry.ranges = entry.ranges.slice(excess);
  entry.isChanged = true;
}

async function writeBlocks(queries: Queries, epochs: readonly Epoch[], now_ms: number): Promise<void> {
  const blocks = epochs.flatMap(({ kit_id, epoch, blocks }) =>
    [...blocks.values()]
      .filter((each) => each.isChanged)
      .map(({ numbers, isNew }) => ({ kit_id, epoch, numbers, isNew })),
  );
  const full = blocks.filter(({ numbers, isNew }) => numbers.isFull && !isNew);
  await inPortions(full, async (some) => {
    const keys = some.map(({ kit_id, epoch, numbers: { block } }) => keyRow({ kit_id, epoch, block }));
    return sql(queries)`DELETE FROM received_blocks WHERE (kit_id, epoch, block) IN (VALUES ${listed(keys)})`;
  });
  const open = blocks
    .filter(({ numbers }) => !numbers.isFull)
    .map(({ kit_id, epoch, numbers }) => {
      const ranges = numbers.ranges();
      const [lowest = 0, highest = 0] = [ranges[0]?.[0], ranges.at(-1)?.[1]];
      const [block, seen, count] = [numbers.block, numbers.text(), numbers.count];
      return { kit_id, epoch, block, seen, numbers: count, lowest, highest, touched_ms: now_ms };
    });
  const clauses = `ON CONFLICT (kit_id, epoch, block) DO UPDATE SET seen = excluded.seen, numbers = excluded.numbers,
    lowest = excluded.lowest, highest = excluded.highest, touched_ms = excluded.touched_ms`;
  await insertRows(queries, 'received_blocks', open, clauses);
}

/** Adds to what is known to be dropped; null of an earlier version stays null. */
async function writeDropped(queries: Queries, dropped: readonly Dropped[]): Promise<void> {
  const rows = dropped.map(({ kit_id, epoch, rows }) => ({ kit_id, epoch, ranges: '[]', dropped: rows }));
  const clauses = 'ON CONFLICT (kit_id, epoch) DO UPDATE SET dropped = received.dropped + excluded.dropped';
  await insertRows(queries, 'received', rows, clauses);
}

/** Keeps an epoch within its limits. How many numbers were forgotten stays known: they are not missing. */
async function forget(queries: Queries, { kit_id, epoch, blocks, forgotten: ranges }: Epoch, now_ms: number) {
  const isMore = [...blocks.values()].some((block) => block.isNew && !block.numbers.isFull);
  const rows = !isMore
    ? []
    : await sql(queries)`DELETE FROM received_blocks WHERE kit_id = ${kit_id}
      AND epoch = ${epoch} AND block >= 0 AND block NOT IN
        (SELECT block FROM received_blocks WHERE kit_id = ${kit_id} AND epoch = ${epoch} AND block >= 0
         ORDER BY touched_ms DESC, block DESC LIMIT ${blocks_max})
      RETURNING numbers, lowest, highest`;
  if (rows.length + ranges.length === 0) return;
  const count = rows.reduce((sum, row) => sum + Number(row['numbers']), sizeOf(ranges));
  const lowest = Math.min(...rows.map((row) => Number(row['lowest'])), ...ranges.map(([first]) => first));
  const highest = Math.max(...rows.map((row) => Number(row['highest'])), ...ranges.map(([, last]) => last));
  await sql(queries)`INSERT INTO received_blocks
      (kit_id, epoch, block, seen, numbers, lowest, highest, touched_ms)
    VALUES (${kit_id}, ${epoch}, ${forgotten}, '', ${count}, ${lowest}, ${highest}, ${now_ms})
    ON CONFLICT (kit_id, epoch, block) DO UPDATE SET numbers = received_blocks.numbers + excluded.numbers,
      lowest = CASE WHEN excluded.lowest < received_blocks.lowest THEN excluded.lowest ELSE
        received_blocks.lowest END,
      highest = CASE WHEN excluded.highest > received_blocks.highest THEN excluded.highest
        ELSE received_blocks.highest END`;
}

async function forgetEpochs(queries: Queries, kit_id: string): Promise<void> {
  await sql(queries)`DELETE FROM received WHERE kit_id = ${kit_id} AND epoch NOT IN
    (SELECT received.epoch FROM received LEFT JOIN received_blocks AS blocks
       ON blocks.kit_id = received.kit_id AND blocks.epoch = received.epoch
     WHERE received.kit_id = ${kit_id} GROUP BY received.epoch
     ORDER BY COALESCE(MAX(blocks.touched_ms), 0) DESC, received.epoch DESC LIMIT ${epochs_max})`;
  await sql(queries)`DELETE FROM received_blocks WHERE kit_id = ${kit_id}
    AND epoch NOT IN (SELECT epoch FROM received WHERE kit_id = ${kit_id})`;
}

/** The numbers of a kit that did not come. */
export interface Holes {
  /** They lie between the lowest and the highest of their epoch, and the kit has not reported them as dropped. */
  readonly missing: number;
  /** The same of the epochs for which an earlier version did not keep the reports apart: these are not subtracted. */
  readonly unsorted: number;
  /** All reported messages that are kept by epoch. */
  readonly dropped: number;
}

const no_holes: Holes = { missing: 0, unsorted: 0, dropped: 0 };

/** By kit. `where` is about `kit_id`. */
export async function readHoles(queries: Queries, where: Clause): Promise<(kit_id: string) => Holes> {
  const blocks = await sql(queries)`SELECT kit_id, epoch, SUM(numbers) AS numbers, MIN(lowest) AS lowest,
    MAX(highest) AS highest FROM received_blocks ${where} GROUP BY kit_id, epoch`;
  const received = await sql(queries)`SELECT kit_id, epoch, ranges, dropped FROM received ${where}`;
  const byEpoch = new Map(blocks.map((row) => [keyOf(row), row]));
  const holes = new Map<string, Holes>();
  for (const row of received) {
    const kit_id = String(row['kit_id']);
    const ofEpoch = holesOf(rangesOf.parse(row['ranges']), byEpoch.get(keyOf(row)));
    const { missing, unsorted, dropped } = holes.get(kit_id) ?? no_holes;
    if (row['dropped'] === null) {
      holes.set(kit_id, { missing, unsorted: unsorted + ofEpoch, dropped });
      continue;
    }
    const of_epoch = Number(row['dropped']);
    // More may be dropped than lies between the numbers that came: that explains no hole of another epoch.
    const unexplained = Math.max(0, ofEpoch - of_epoch);
    holes.set(kit_id, { missing: missing + unexplained, unsorted, dropped: dropped + of_epoch });
  }
  return (kit_id) => holes.get(kit_id) ?? no_holes;
}

/** A number that was forgotten and came again is counted twice, which must not make others look less than none. */
function holesOf(ranges: readonly Range[], blocks: Row | undefined): number {
  const bounds = blocks ? [Number(blocks['lowest']), Number(blocks['highest'])] : [];
  const first = Math.min(...bounds, ...ranges.slice(0, 1).map(([lowest]) => lowest));
  const last = Math.max(...bounds, ...ranges.slice(-1).map(([, highest]) => highest));
  if (last < first) return 0;
  return Math.max(0, last - first + 1 - sizeOf(ranges) - Number(blocks?.['numbers'] ?? 0));
}

/** Everything that is stored of a kit, newest epoch first; of any number of ranges. */
export async function readStored(queries: Queries, kit_id: string): Promise<readonly CloudAck[]> {
  const epochs = await sql(queries)`SELECT epoch, ranges FROM received WHERE kit_id = ${kit_id}
    ORDER BY epoch DESC`;
  const blocks = await sql(queries)`SELECT epoch, block, seen FROM received_blocks
    WHERE kit_id = ${kit_id} AND block >= 0`;
  const byEpoch = Map.groupBy(blocks, (row) => Number(row['epoch']));
  const stored = epochs.map((row) => {
    const epoch = Number(row['epoch']);
    const inBlocks = (byEpoch.get(epoch) ?? []).flatMap((each) =>
      new NumberBlock(Number(each['block']), String(each['seen'])).ranges(),
    );
    const ranges = joinRanges(rangesOf.parse(row['ranges']), inBlocks);
    return { epoch, ranges: ranges.map(([first, last]): [number, number] => [first, last]) };
  });
  // Of some epochs it is only known what was dropped.
  return stored.filter(({ ranges }) => ranges.length > 0);
}
