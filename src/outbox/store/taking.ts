/** Takes buffered rows for sending: one by one, or packed into a compressed batch of the contract. */
import { batch_items_max } from '../../contract/batch/pack.ts';
import { BatchWriter } from '../../contract/batch/writer.ts';
import { laneRules } from '../../contract/lanes.ts';
import type { InFlightRows } from './in-flight-rows.ts';
import type { StoredRow } from './tables/lane-table.ts';
import type { Taken, TakenRow, TakeRequest } from '../protocol.ts';
import { seq_max, type RowId } from '../row.ts';
import type { Tables } from './tables/tables.ts';

/** Gives the payload of a batch. */
export type PackRows = (rows: BatchWriter) => Uint8Array;

interface TakenRows {
  readonly taken: Taken;
  /** Rows that can never be sent: their channel is lost, or their body is no JSON. */
  readonly unreadable: readonly RowId[];
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
): TakenRows {
  return request.form === 'batch'
    ? takeBatch(request, tables, in_flight, packRows)
    : takeSingly(request, tables, in_flight);
}

function takeSingly(request: TakeRequest, tables: Tables, in_flight: InFlightRows): TakenRows {
  const { lane } = request;
  const rows: TakenRow[] = [];
  const unreadable: RowId[] = [];
  const { cursor, drained } = scan(request, tables, in_flight, ([id, topic, time_ms, mono_ms, body]) => {
    const channel = tables.channels.channelOf(topic);
    if (channel === undefined) unreadable.push(id);
    else rows.push(tables.epochs.correct({ id, lane, channel, time_ms, mono_ms, body }));
  });
  in_flight.advance(lane, cursor);
  for (const { id } of rows) in_flight.hold(lane, id);
  for (const id of unreadable) in_flight.hold(lane, id);
  return { unreadable, taken: { rows, batch: undefined, drained } };
}

/** Leaves out what is no JSON, in a damaged file, instead of spoiling the batch. */
function takeBatch(
  request: TakeRequest,
  tables: Tables,
  in_flight: InFlightRows,
  packRows: PackRows,
): TakenRows {
  const { lane } = request;
  const writer = new BatchWriter();
  const ids: RowId[] = [];
  const unreadable: RowId[] = [];
  const { cursor, drained } = scan(request, tables, in_flight, (row) => {
    (isPacked(row, tables, writer) ? ids : unreadable).push(row[0]);
  });
  const payload = ids.length > 0 ? packRows(writer) : undefined;
  in_flight.advance(lane, cursor);
  for (const id of unreadable) in_flight.hold(lane, id);
  if (!payload) return { unreadable, taken: { rows: [], batch: undefined, drained } };
  const [lo, hi] = [ids[0] ?? 0, ids.at(-1) ?? 0];
  const token = in_flight.addBatch({ lane, ids });
  const batch = { token, lane, rows: ids.length, payload, lo, hi };
  return { unreadable, taken: { rows: [], batch, drained } };
}

/** Adds a row to the batch; false: it is unreadable. */
function isPacked(
  [id, topic, stored_ms, mono_ms, data]: StoredRow,
  { channels, epochs }: Tables,
  writer: BatchWriter,
): boolean {
  const channel = channels.channelOf(topic);
  if (channel === undefined) return false;
  const epoch = Math.floor(id / seq_max);
  const { time_ms, time_quality } = epochs.timeOf({ id, time_ms: stored_ms, mono_ms });
  try {
    writer.add({ channel, epoch, seq: id - epoch * seq_max, time_ms, time_quality, data });
    return true;
  } catch (error) {
    if (error instanceof SyntaxError) return false;
    throw error;
  }
}

/** Calls `take` for the next rows that may be sent, within the limits of the request. */
function scan(
  { lane, form, rows_max, bytes_max }: TakeRequest,
  tables: Tables,
  in_flight: InFlightRows,
  take: (row: StoredRow) => void,
): { readonly cursor: RowId; readonly drained: boolean } {
  const most = Math.max(1, form === 'batch' ? Math.min(rows_max, batch_items_max) : rows_max);
  const table = tables.lane(lane);
  const isFree = in_flight.freeIn(lane);
  // After a restart the lane may hold older values of a retained topic whose newest one was published and not acknowledged.
  // They are skipped; the delivery of the newest removes them.
  const { retain } = laneRules[lane];
  let [rows, bytes] = [0, 0];
  let cursor = in_flight.cursor(lane);
  for (;;) {
    // Reads one row beyond the limit, to see whether the lane is drained.
    const page_rows = Math.min(scan_rows, most - rows + 1);
    const page = table.after(cursor, page_rows);
    for (const row of page) {
      const [id, topic] = row;
      if (isFree(id) && !(retain && table.isOutdated(topic, id))) {
        bytes += row[4].length;
        if (rows >= most || (rows > 0 && bytes > bytes_max)) return { cursor, drained: false };
        take(row);
        rows += 1;
      }
      cursor = id;
    }
    if (page.length < page_rows) return { cursor, drained: true };
  }
}
/** Rows read at once: more are hardly faster, and a row may be large. */
const scan_rows = 64;
