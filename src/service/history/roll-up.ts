/** Makes the figures of a day from its segments: late messages only mark the day, and it is made again. */
import type { Database, SqlValue } from '../store/sql/database.ts';
import { places, portions } from '../store/sql/many-rows.ts';
import { turn } from '../../platform/time.ts';
import { readTombstones } from './erasure.ts';
import { day_ms, dayOf } from './message.ts';
import { addGroup, type DayFigures, packFigures } from './day-figures.ts';
import { bodyOf, openSegment } from './segment.ts';

/** The day of today is made again after this time at the earliest. */
const today_every_ms = 3 * 3_600_000;
/** Segments of one statement. */
const segments_at_once = 4;

/** Makes the figures of one day that changed. False: none has to be made now. */
export async function rollUpDay(database: Database, now_ms: number): Promise<boolean> {
  const [changed] = await database.all(
    `SELECT kit_id, day, mark FROM history_changed WHERE changed = 1 AND (day < ? OR rolled_ms <= ?)
     ORDER BY rolled_ms, day LIMIT 1`,
    dayOf(now_ms),
    now_ms - today_every_ms,
  );
  if (!changed) return false;
  const kit_id = String(changed['kit_id']);
  const day = Number(changed['day']);
  const { figures, to_ms } = await figuresOf(database, kit_id, day);
  const bodies: (readonly [channel: string, body: Uint8Array])[] = [];
  for (const [channel, fields] of figures) {
    await turn();
    bodies.push([channel, packFigures(fields)]);
  }
  // A day that is over is covered whole.
  const covered_ms = day < dayOf(now_ms) ? (day + 1) * day_ms : to_ms;
  await database
    .transaction(async (queries) => {
      // What changed meanwhile stays marked, and the day is made again.
      const [left] = await queries.all(
        `UPDATE history_changed SET rolled_ms = ?, changed = CASE WHEN mark = ? THEN 0 ELSE 1 END WHERE kit_id = ? AND day = ?
         RETURNING changed`,
        now_ms,
        Number(changed['mark']),
        kit_id,
        day,
      );
      // Figures of what was erased meanwhile must not be stored.
      if (Number(left?.['changed']) === 1 && (await readTombstones(queries, kit_id)).size > 0)
        throw new Superseded();
      await queries.all('DELETE FROM history_days WHERE kit_id = ? AND day = ?', kit_id, day);
      for (const some of portions(bodies)) {
        await turn();
        await queries.all(
          `INSERT INTO history_days (kit_id, channel, day, to_ms, body) VALUES ${places(some, '(?, ?, ?, ?, ?)')}`,
          ...some.flatMap(([channel, body]): SqlValue[] => [kit_id, channel, day, covered_ms, body]),
        );
      }
    })
    .catch((error: unknown) => {
      if (!(error instanceof Superseded)) throw error;
    });
  return true;
}

/** The day changed while its figures were made. */
class Superseded extends Error {}

async function figuresOf(database: Database, kit_id: string, day: number) {
  const figures: DayFigures = new Map();
  let to_ms = day * day_ms;
  for (let after: string | undefined; ;) {
    const rows = await database.all(
      `SELECT id, hi_ms, body FROM history WHERE kit_id = ? AND day = ? AND misdated = 0 AND class <> 'event'
         ${after === undefined ? '' : 'AND id > ?'} ORDER BY id LIMIT ?`,
      kit_id,
      day,
      ...(after === undefined ? [] : [after]),
      segments_at_once,
    );
    for (const row of rows) {
      to_ms = Math.max(to_ms, Number(row['hi_ms']) + 1);
      for (const group of await openSegment(bodyOf(row))) {
        await turn();
        addGroup(figures, group);
      }
    }
    after = rows.length === segments_at_once ? String(rows.at(-1)?.['id']) : undefined;
    if (after === undefined) return { figures, to_ms };
  }
}
