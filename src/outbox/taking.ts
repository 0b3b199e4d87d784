/** Hands buffered rows out: one by one, or packed into a compressed batch of the contract. */
import { batch_items_max, packBatch, type BatchItem } from '../contract/batch-pack.ts';
import type { Lane } from '../contract/lanes.ts';
import { isJson } from './json-text.ts';
import type { Hands } from './hands.ts';
import type { StoredRow } from './lane-table.ts';
import type { Taken, TakenRow, TakeRequest } from './protocol.ts';
import { positionOf, type RowId } from './row.ts';
import type { Tables } from './tables.ts';

interface Found {
  readonly rows: readonly TakenRow[];
  /** Rows that can never be sent: their channel is lost, or their body is no JSON. */
  readonly unreadable: readonly RowId[];
  readonly drained: boolean;
}

/**
 * Takes the next rows of a lane and notes them as being in the main thread's hands; also the unreadable ones, which are
 * answered to be removed. Throws what SQLite throws; then nothing was noted.
 */
export function takeRows(
  request: TakeRequest,
  tables: Tables,
  hands: Hands,
): { readonly taken: Taken; readonly unreadable: readonly RowId[] } {
  const { lane, form } = request;
  const { stored, cursor, drained } = scan(request, tables, hands);
  const found = readable(stored, lane, drained, tables);
  const packed = form === 'batch' ? pack(found) : { ...found, payload: undefined };
  hands.advance(lane, cursor);
  const { rows, payload, unreadable } = packed;
  for (const id of unreadable) hands.hold(lane, id);
  if (!payload) {
    for (const { id } of rows) hands.hold(lane, id);
    return { unreadable, taken: { rows, batch: undefined, drained } };
  }
  const ids = rows.map(({ id }) => id);
  const [lo, hi] = [ids[0] ?? 0, ids.at(-1) ?? 0];
  const token = hands.addBatch({ lane, ids });
  const batch = { token, lane, rows: rows.length, payload, lo, hi };
  return { unreadable, taken: { rows: [], batch, drained } };
}

function scan(
  { lane, form, rows_max, bytes_max }: TakeRequest,
  tables: Tables,
  hands: Hands,
): { readonly stored: readonly StoredRow[]; readonly cursor: RowId; readonly drained: boolean } {
  const most = Math.max(1, form === 'batch' ? Math.min(rows_max, batch_items_max) : rows_max);
  const stored: StoredRow[] = [];
  let bytes = 0;
  let cursor = hands.cursor(lane);
  for (;;) {
    const page = tables.lane(lane).after(cursor, scan_rows);
    for (const row of page) {
      const [id, , , , body] = row;
      if (hands.isFree(lane, id)) {
        bytes += body.length;
        if (stored.length >= most || (stored.length > 0 && bytes > bytes_max))
          return { stored, cursor, drained: false };
        stored.push(row);
      }
      cursor = id;
    }
    if (page.length < scan_rows) return { stored, cursor, drained: true };
  }
}
/** Rows read at once: more are hardly faster, and a row may be large. */
const scan_rows = 64;

function readable(
  stored: readonly StoredRow[],
  lane: Lane,
  drained: boolean,
  { channels, epochs }: Tables,
): Found {
  const rows: TakenRow[] = [];
  const unreadable: RowId[] = [];
  for (const [id, topic, time_ms, mono_ms, body] of stored) {
    const channel = channels.channelOf(topic);
    if (channel === undefined) unreadable.push(id);
    else rows.push(epochs.correct({ id, lane, channel, time_ms, mono_ms, body }));
  }
  return { rows, unreadable, drained };
}

/** No payload when there is no row to pack. */
function pack(found: Found): Found & { readonly payload: Uint8Array | undefined } {
  if (found.rows.length === 0) return { ...found, payload: undefined };
  try {
    return { ...found, payload: alone(packBatch(found.rows.map(itemOf), { historical: true })) };
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    const rows = found.rows.filter(({ body }) => isJson(body));
    const broken = found.rows.filter((row) => !rows.includes(row)).map(({ id }) => id);
    if (broken.length === 0) throw error;
    return pack({ ...found, rows, unreadable: [...found.unreadable, ...broken] });
  }
}

/** Memory of its own, no part of a pool: it is moved to the other thread whole. */
function alone(payload: Uint8Array): Uint8Array {
  return new Uint8Array(payload);
}

function itemOf({ id, channel, time_ms, time_quality, body }: TakenRow): BatchItem {
  return { ...positionOf(id), channel, time_ms, time_quality, data: body };
}
