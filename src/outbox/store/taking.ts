/** Takes buffered rows for sending: one by one, or packed into a compressed batch of the contract. */
import { batch_items_max, type BatchItem } from '../../contract/batch/pack.ts';
import { laneRules, type Lane } from '../../contract/lanes.ts';
import { isJson } from './json-text.ts';
import type { InFlightRows } from './in-flight-rows.ts';
import type { StoredRow } from './tables/lane-table.ts';
import type { Taken, TakenRow, TakeRequest } from '../protocol.ts';
import { seq_max, type RowId } from '../row.ts';
import type { Tables } from './tables/tables.ts';

/** Writes the payload of a batch. Throws a `SyntaxError` for data that is no JSON. */
export type PackRows = (items: readonly BatchItem[], about: { readonly historical: boolean }) => Uint8Array;

interface Scanned {
  readonly stored: readonly StoredRow[];
  readonly cursor: RowId;
  readonly drained: boolean;
}

interface Packed {
  readonly ids: readonly RowId[];
  /** Rows that can never be sent: their channel is lost, or their body is no JSON. */
  readonly unreadable: readonly RowId[];
  /** Undefined when there is no row to pack. */
  readonly payload: Uint8Array | undefined;
}

/**
 * Takes the next rows of a lane and marks them as held by the main thread; also the unreadable ones, which are
 * answered to be removed. Throws what SQLite throws; then nothing was noted.
 */
export function takeRows(
  request: TakeRequest,
  tables: Tables,
  in_flight: InFlightRows,
  packRows: PackRows,
): { readonly taken: Taken; readonly unreadable: readonly RowId[] } {
  const scanned = scan(request, tables, in_flight);
  return request.form === 'batch'
    ? takeBatch(request.lane, scanned, pack(scanned.stored, tables, packRows), in_flight)
    : takeSingly(request.lane, scanned, tables, in_flight);
}

function takeSingly(
  lane: Lane,
  { stored, cursor, drained }: Scanned,
  { channels, epochs }: Tables,
  in_flight: InFlightRows,
): ReturnType<typeof takeRows> {
  const rows: TakenRow[] = [];
  const unreadable: RowId[] = [];
  for (const [id, topic, time_ms, mono_ms, body] of stored) {
    const channel = channels.channelOf(topic);
    if (channel === undefined) unreadable.push(id);
    else rows.push(epochs.correct({ id, lane, channel, time_ms, mono_ms, body }));
  }
  in_flight.advance(lane, cursor);
  for (const [id] of stored) in_flight.hold(lane, id);
  return { unreadable, taken: { rows, batch: undefined, drained } };
}

function takeBatch(
  lane: Lane,
  { cursor, drained }: Scanned,
  { ids, unreadable, payload }: Packed,
  in_flight: InFlightRows,
): ReturnType<typeof takeRows> {
  in_flight.advance(lane, cursor);
  for (const id of unreadable) in_flight.hold(lane, id);
  if (!payload) return { unreadable, taken: { rows: [], batch: undefined, drained } };
  const [lo, hi] = [ids[0] ?? 0, ids.at(-1) ?? 0];
  const token = in_flight.addBatch({ lane, ids });
  const batch = { token, lane, rows: ids.length, payload, lo, hi };
  return { unreadable, taken: { rows: [], batch, drained } };
}

function scan(
  { lane, form, rows_max, bytes_max }: TakeRequest,
  tables: Tables,
  in_flight: InFlightRows,
): Scanned {
  const most = Math.max(1, form === 'batch' ? Math.min(rows_max, batch_items_max) : rows_max);
  const table = tables.lane(lane);
  const isFree = in_flight.freeIn(lane);
  // After a restart the lane may hold older values of a retained topic whose newest one was published and not acknowledged.
  // They are skipped; the delivery of the newest removes them.
  const { retain } = laneRules[lane];
  const stored: StoredRow[] = [];
  let bytes = 0;
  let cursor = in_flight.cursor(lane);
  for (;;) {
    // Reads one row beyond the limit, to see whether the lane is drained.
    const page_rows = Math.min(scan_rows, most - stored.length + 1);
    const page = table.after(cursor, page_rows);
    for (const row of page) {
      const [id, topic] = row;
      if (isFree(id) && !(retain && table.isOutdated(topic, id))) {
        bytes += row[4].length;
        if (stored.length >= most || (stored.length > 0 && bytes > bytes_max))
          return { stored, cursor, drained: false };
        stored.push(row);
      }
      cursor = id;
    }
    if (page.length < page_rows) return { stored, cursor, drained: true };
  }
}
/** Rows read at once: more are hardly faster, and a row may be large. */
const scan_rows = 64;

function pack(stored: readonly StoredRow[], { channels, epochs }: Tables, packRows: PackRows): Packed {
  const ids: RowId[] = [];
  const unreadable: RowId[] = [];
  const items: BatchItem[] = [];
  for (const [id, topic, time_ms, mono_ms, data] of stored) {
    const channel = channels.channelOf(topic);
    if (channel === undefined) {
      unreadable.push(id);
      continue;
    }
    ids.push(id);
    const epoch = Math.floor(id / seq_max);
    const seq = id - epoch * seq_max;
    const known = epochs.timeOf({ id, time_ms, mono_ms });
    items.push({ channel, epoch, seq, time_ms: known.time_ms, time_quality: known.time_quality, data });
  }
  return packReadable(items, ids, unreadable, packRows);
}

/** Leaves out what is no JSON, in a damaged file, instead of spoiling the batch. */
function packReadable(
  items: readonly BatchItem[],
  ids: readonly RowId[],
  unreadable: readonly RowId[],
  packRows: PackRows,
): Packed {
  if (items.length === 0) return { ids, unreadable, payload: undefined };
  try {
    return { ids, unreadable, payload: packRows(items, { historical: true }) };
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    const good = items.map(({ data }) => isJson(data));
    const broken = ids.filter((_, index) => !good[index]);
    if (broken.length === 0) throw error;
    return packReadable(
      items.filter((_, index) => good[index]),
      ids.filter((_, index) => good[index]),
      [...unreadable, ...broken],
      packRows,
    );
  }
}
