/** Deletes what is older than it is kept, or more than a kit may have. Each call deletes a portion, so that nothing waits for it. */
import { raw, sql, type Queries } from '../sql/database.ts';
import { turn } from '../../platform/time.ts';
import { dayOf, history_classes, type HistoryClass } from './message.ts';
import type { Retention } from './retention.ts';

/** Rows of one statement: about 2 MB of segments, which SQLite overwrites while others wait. */
const portion = 64;
/** Over the size of a kit, these go first; events never do. */
const by_size: readonly HistoryClass[] = ['feed', 'position', 'kit'];

/** Deletes a portion. Returns how many rows; 0: nothing is left to delete. */
export async function trim(queries: Queries, retention: Retention, now_ms: number): Promise<number> {
  const today = dayOf(now_ms);
  let deleted = 0;
  for (const each of history_classes) {
    await turn();
    const rows = await sql(queries)`DELETE FROM history WHERE (kit_id, id) IN (SELECT kit_id, id
      FROM history WHERE class = ${each} AND day < ${today - retention.days[each]} LIMIT ${portion})
      RETURNING id`;
    deleted += rows.length;
  }
  const before = today - retention.figures_days;
  for (const table of ['history_days', 'history_changed']) {
    await turn();
    const [from, key] = [raw(table), raw(table === 'history_days' ? 'kit_id, channel, day' : 'kit_id, day')];
    const rows = await sql(queries)`DELETE FROM ${from} WHERE (${key}) IN (SELECT ${key} FROM ${from}
      WHERE day < ${before} LIMIT ${portion}) RETURNING day`;
    deleted += rows.length;
  }
  return retention.kit_bytes_max === undefined
    ? deleted
    : deleted + (await trimSize(queries, retention.kit_bytes_max));
}

async function trimSize(queries: Queries, bytes_max: number): Promise<number> {
  const full = await sql(queries)`SELECT kit_id, SUM(bytes) AS bytes FROM history
    GROUP BY kit_id HAVING SUM(bytes) > ${bytes_max} LIMIT ${portion}`;
  let deleted = 0;
  for (const row of full)
    deleted += await trimKit(queries, String(row['kit_id']), Number(row['bytes']) - bytes_max);
  return deleted;
}

/** Deletes the oldest segments of a kit until `excess` bytes are gone. */
async function trimKit(queries: Queries, kit_id: string, excess: number): Promise<number> {
  let left = excess;
  let deleted = 0;
  for (const each of by_size) {
    const rows = await sql(queries)`SELECT id, bytes FROM history WHERE kit_id = ${kit_id}
      AND class = ${each} ORDER BY lo_ms LIMIT ${portion}`;
    for (const row of rows) {
      if (left <= 0) return deleted;
      await sql(queries)`DELETE FROM history WHERE kit_id = ${kit_id} AND id = ${String(row['id'])}`;
      left -= Number(row['bytes']);
      deleted += 1;
    }
  }
  return deleted;
}

/** Deletes the rows that landed first until at most so many messages wait. Returns how many messages were deleted. */
export async function limitLanded(queries: Queries, messages_max: number): Promise<number> {
  const [sum] = await sql(queries)`SELECT SUM(messages) AS messages FROM history_in`;
  let left = Number(sum?.['messages'] ?? 0) - messages_max;
  let deleted = 0;
  while (left > 0) {
    const [row] = await sql(queries)`DELETE FROM history_in WHERE (kit_id, id) IN
      (SELECT kit_id, id FROM history_in ORDER BY id LIMIT 1) RETURNING kit_id, messages`;
    if (!row) break;
    const messages = Number(row['messages']);
    await sql(queries)`UPDATE kits SET landed = landed - ${messages} WHERE kit_id = ${String(row['kit_id'])}`;
    left -= messages;
    deleted += messages;
  }
  return deleted;
}
