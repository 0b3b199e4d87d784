/**
 * Erases what was observed before a time, of an asset or of a whole kit: its history, figures, and alarms that wait for webhooks.
 * Newest values and tasks are the state of now, not history: they stay.
 */
import { clause, nothing, sql, type Database, type Queries } from '../sql/database.ts';
import { compactKit, cut, insertSegments, noteChanged } from './compactor.ts';
import { eraseLosses } from '../stored/losses.ts';
import { erasureOf, isErased, observedOn, readTombstones, type Tombstones } from './erasure.ts';
import { dayOf, history_classes } from './message.ts';
import { arrivedMessages, bodyOf, openSegment } from './segment.ts';
import type { Change, Erasure, StoredErasure } from '../stored/stored.ts';

/** Erases alarms that wait for webhooks, and files. Returns what changed. */
export type EraseMessages = (queries: Queries, erasure: Erasure) => Promise<readonly Change[]>;

/** Segments of one transaction. */
const portion = 8;
/** Portions of segments, and of what has landed, of one erasure. */
const rounds_max = 100_000;

export async function erase(
  database: Database,
  asked: Erasure,
  { now_ms, eraseMessages }: { readonly now_ms: number; readonly eraseMessages: EraseMessages },
): Promise<readonly Change[]> {
  // What is yet to come belongs to no erasure: a bound ahead would silence the kit until then.
  const erasure = { ...asked, before_ms: Math.min(asked.before_ms, now_ms) };
  const { kit_id } = erasure;
  const tombstones = await database.transaction(async (queries) => {
    await bury(queries, erasure, now_ms);
    await eraseLosses(queries, erasure);
    return readTombstones(queries, kit_id);
  });
  await divideLanded(database, kit_id, { tombstones, now_ms });
  await eraseSegments(database, erasure, { tombstones, now_ms });
  await eraseFigures(database, erasure);
  await eraseRemoved(database, erasure);
  const changes = await database.transaction(async (queries) => eraseMessages(queries, erasure));
  await database.forget();
  return changes;
}

/**
 * Bounds of earlier versions may lie ahead of their erasure, and withheld everything until then: they concern what was there when it
 * was asked for. Returns those that were cut.
 */
export async function mendErasures(queries: Queries): Promise<readonly StoredErasure[]> {
  const rows = await sql(queries)`UPDATE history_erased SET before_ms = erased_ms
    WHERE before_ms > erased_ms RETURNING *`;
  return rows.map(erasureOf);
}

/** With the row of the kit locked: commits and passes of the compactor either end before, or see the tombstone. */
async function bury(queries: Queries, { kit_id, asset_id = '', before_ms }: Erasure, now_ms: number) {
  await sql(queries)`UPDATE kits SET kit_id = kit_id WHERE kit_id = ${kit_id}`;
  await sql(queries)`INSERT INTO history_erased (kit_id, asset_id, before_ms, erased_ms)
    VALUES (${kit_id}, ${asset_id}, ${before_ms}, ${now_ms})
    ON CONFLICT (kit_id, asset_id) DO UPDATE SET
      erased_ms = CASE WHEN history_erased.erased_ms > excluded.erased_ms THEN history_erased.erased_ms ELSE
        excluded.erased_ms END,
      before_ms = CASE WHEN history_erased.before_ms > excluded.before_ms THEN history_erased.before_ms ELSE
        excluded.before_ms END`;
}

interface Round {
  readonly tombstones: Tombstones;
  readonly now_ms: number;
}

/** Divides what had landed when this began; others may divide it meanwhile. */
async function divideLanded(database: Database, kit_id: string, round: Round): Promise<void> {
  const [newest] = await sql(database)`SELECT MAX(id) AS id FROM history_in WHERE kit_id = ${kit_id}`;
  if (typeof newest?.['id'] !== 'string') return;
  for (let left = rounds_max; left > 0; left -= 1) {
    const rows = await sql(database)`SELECT 1 AS here FROM history_in
      WHERE kit_id = ${kit_id} AND id <= ${newest['id']} LIMIT 1`;
    if (rows.length === 0) return;
    await compactKit(database, kit_id, round);
  }
}

async function eraseSegments(
  database: Database,
  { kit_id, before_ms }: Erasure,
  { tombstones, now_ms }: Round,
): Promise<void> {
  let after = '';
  for (let round = 0; round < rounds_max; round += 1) {
    const rows = await sql(database)`SELECT * FROM history WHERE kit_id = ${kit_id}
      AND (lo_ms < ${before_ms} OR misdated = 1) AND id > ${after} ORDER BY id LIMIT ${portion}`;
    if (rows.length === 0) return;
    await database.transaction(async (queries) => {
      for (const row of rows) {
        const all = await arrivedMessages(await openSegment(bodyOf(row)));
        const place = { day: Number(row['day']), misdated: Number(row['misdated']) === 1 };
        // Whatever day it has, and whatever time it claims: all of it has arrived before now.
        const messages = all.filter(
          (message) => !isErased(tombstones, message, Math.min(observedOn(message, place), now_ms - 1)),
        );
        if (messages.length === all.length) continue;
        const gone = await sql(queries)`DELETE FROM history WHERE kit_id = ${kit_id}
          AND id = ${String(row['id'])} RETURNING id`;
        // The compactor has joined it with others, without what is erased.
        if (gone.length === 0) continue;
        const its = history_classes.find((each) => each === row['class']) ?? 'feed';
        const part = { class: its, ...place, epoch: Number(row['epoch']) };
        if (messages.length > 0)
          await insertSegments(queries, kit_id, await cut({ ...part, messages }, now_ms));
        await noteChanged(queries, kit_id, [{ ...place, lo_ms: Number(row['lo_ms']) }]);
      }
    });
    after = String(rows.at(-1)?.['id']);
  }
}

/** Figures of the days that are erased in part are made again from what is left. */
async function eraseFigures(queries: Queries, { kit_id, asset_id, before_ms }: Erasure): Promise<void> {
  const channels = asset_id === undefined ? '%' : `feed/${asset_id}/%`;
  await sql(queries)`DELETE FROM history_days WHERE kit_id = ${kit_id} AND day <= ${dayOf(before_ms)}
    AND channel LIKE ${channels}`;
}

/** The newest values of removed assets, which are shown nowhere: no erasure takes those of an asset that is there. */
async function eraseRemoved(queries: Queries, { kit_id, asset_id, before_ms }: Erasure): Promise<void> {
  const of_asset = asset_id === undefined ? nothing : clause`AND asset_id = ${asset_id}`;
  await sql(queries)`DELETE FROM feeds WHERE kit_id = ${kit_id} AND time_ms < ${before_ms} ${of_asset}
    AND asset_id IN (SELECT asset_id FROM assets WHERE kit_id = ${kit_id} AND gone = 1)`;
}
