/** Finds rows that the broker acknowledged and that are too many to be tracked one by one. */
import { lanes, type Lane } from '../../contract/lanes.ts';
import type { AckRanges } from '../ack-ranges.ts';
import type { RowRef } from '../protocol.ts';
import type { RowId } from '../row.ts';
import type { InFlightRows } from './in-flight-rows.ts';
import type { Tables } from './tables/tables.ts';

/** Released by one acknowledgement at most, so that no commit takes long; the next one continues. */
const rows_max = 20_000;
const page_rows = 1_000;

/** Those among them that the cloud has acknowledged. */
export function untrackedAmong(acked: AckRanges, tables: Tables, in_flight: InFlightRows): readonly RowRef[] {
  const refs: RowRef[] = [];
  for (const lane of lanes) {
    const span = in_flight.untracked(lane);
    for (const named of span ? acked.within(...span) : []) {
      for (const id of freeRows(lane, named, tables, in_flight)) {
        if (refs.length >= rows_max) return refs;
        refs.push({ lane, id });
      }
    }
  }
  return refs;
}

/** Forgets the spans of which nothing is left on disk. */
export function trimUntracked(tables: Tables, in_flight: InFlightRows): void {
  for (const lane of lanes) {
    const span = in_flight.untracked(lane);
    if (!span) continue;
    const [first] = freeRows(lane, span, tables, in_flight);
    in_flight.untrackedLeft(lane, first);
  }
}

function* freeRows(
  lane: Lane,
  [from, to]: readonly [from: RowId, to: RowId],
  tables: Tables,
  in_flight: InFlightRows,
): Generator<RowId> {
  let after = from - 1;
  for (;;) {
    const page = tables.lane(lane).outline(after, to, page_rows);
    for (const [id] of page) if (in_flight.isFree(lane, id)) yield id;
    if (page.length < page_rows) return;
    after = page.at(-1)?.[0] ?? to;
  }
}
