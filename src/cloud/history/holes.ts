/** What kits reported as dropped: why a number is missing from the history. */
import { z } from 'zod';
import type { DropReport } from '../../contract/drops.ts';
import { number, text } from '../sql/columns.ts';
import type { Queries, Row } from '../sql/database.ts';
import { insertRows } from '../sql/many-rows.ts';

/** Reports of one kit that are read, those of the newest epochs. */
export const holes_max = 10_000;

const holeRow = z.object({
  epoch: number,
  /** The dropped numbers lie between these, both included. */
  lo: number,
  hi: number,
  lane: text,
  reason: text,
  /** How many. */
  messages: number,
  reported_ms: number,
});
export type Hole = Readonly<z.output<typeof holeRow>>;

interface Reported {
  readonly kit_id: string;
  readonly report: DropReport;
  readonly reported_ms: number;
}

/** Keeps a report. Each is applied once; a second one about the same numbers adds to it. */
export async function noteHoles(queries: Queries, { kit_id, report, reported_ms }: Reported): Promise<void> {
  const found = joined(report).map(({ epoch, lo, hi, lane, reason, rows: messages }) => {
    return { kit_id, epoch, lo, hi, lane, reason, messages, reported_ms };
  });
  const clauses = `ON CONFLICT (kit_id, epoch, lo, hi, lane, reason)
    DO UPDATE SET messages = history_holes.messages + excluded.messages, reported_ms = excluded.reported_ms`;
  await insertRows(queries, 'history_holes', found, clauses);
}

/** One statement must not name a key twice. */
function joined({ drops }: DropReport): DropReport['drops'] {
  const byKey = Map.groupBy(drops, ({ epoch, lo, hi, lane, reason }) =>
    [epoch, lo, hi, lane, reason].join(' '),
  );
  return [...byKey.values()].flatMap((some) => {
    const [first] = some;
    return first ? [{ ...first, rows: some.reduce((sum, { rows }) => sum + rows, 0) }] : [];
  });
}

export function holeOf(row: Row): Hole {
  return holeRow.parse(row);
}
