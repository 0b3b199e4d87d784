/**
 * Messages that the broker refused, with the reason, until the technician decides. They count against the limits of the
 * buffer: `Retention` evicts those of evictable lanes, and nothing evicts the others.
 */
import type { Statement } from 'better-sqlite3';
import { laneRules, type Lane } from '../../../../contract/lanes.ts';
import type { Changes } from '../changes.ts';
import type { DropReason, LaneDepth, QuarantinedMessage, QuarantinedRow, Work } from '../../protocol.ts';
import { soundTime, type Row, type RowId } from '../../row.ts';
import type { Handle } from '../schema.ts';

type Values = [RowId, Lane, string, number, number | null, number, string, string];

/** What has to be known of a row to remove it. SQLite answers the bytes without reading the body. */
export interface QuarantineOutline {
  readonly id: RowId;
  readonly lane: Lane;
  readonly channel: string;
  readonly bytes: number;
}

const bytes_of_row = '(octet_length(body) + octet_length(channel) + 40)';
const outline_columns = `id, lane, channel, ${bytes_of_row} AS bytes`;
const view_columns = 'id, lane, channel, time_ms, code, reason, octet_length(body) AS body_bytes';

export class Quarantine {
  readonly #put: Statement<Values>;
  readonly #list: Statement<[RowId, number], QuarantinedRow>;
  readonly #find: Statement<[RowId], QuarantinedMessage>;
  readonly #get: Statement<[RowId], Row>;
  readonly #outlineOf: Statement<[RowId], QuarantineOutline>;
  readonly #next: Statement<[RowId, number], QuarantineOutline>;
  readonly #oldestOf: Statement<[Lane, RowId, number], QuarantineOutline>;
  readonly #delete: Statement<[RowId]>;
  /** Of each retained channel. */
  readonly #newest = new Map<string, RowId>();
  readonly #depth = new Map<Lane, { rows: number; bytes: number }>();

  constructor(db: Handle) {
    this.#put = db.prepare(
      'INSERT INTO quarantine (id, lane, channel, time_ms, mono_ms, code, reason, body) VALUES (?, ?, ?, ?, ?, ?, ?, ?)',
    );
    this.#list = db.prepare(`SELECT ${view_columns} FROM quarantine WHERE id > ? ORDER BY id LIMIT ?`);
    this.#find = db.prepare(`SELECT ${view_columns}, body FROM quarantine WHERE id = ?`);
    this.#get = db.prepare('SELECT id, lane, channel, time_ms, mono_ms, body FROM quarantine WHERE id = ?');
    this.#outlineOf = db.prepare(`SELECT ${outline_columns} FROM quarantine WHERE id = ?`);
    this.#next = db.prepare(`SELECT ${outline_columns} FROM quarantine WHERE id > ? ORDER BY id LIMIT ?`);
    this.#oldestOf = db.prepare(
      `SELECT ${outline_columns} FROM quarantine WHERE lane = ? AND id <= ? ORDER BY id LIMIT ?`,
    );
    this.#delete = db.prepare('DELETE FROM quarantine WHERE id = ?');
    const retained = db.prepare<[], Pick<Row, 'channel' | 'id'>>(
      "SELECT channel, max(id) AS id FROM quarantine WHERE lane = 'presence' GROUP BY channel",
    );
    for (const { channel, id } of retained.all()) this.#newest.set(channel, id);
    const depths = db.prepare<[], LaneDepth & { readonly lane: Lane }>(
      `SELECT lane, count(*) AS rows, sum(${bytes_of_row}) AS bytes FROM quarantine GROUP BY lane`,
    );
    for (const { lane, rows, bytes } of depths.all()) this.#depth.set(lane, { rows, bytes });
  }

  /** Takes rows in. Of a retained channel only the newest is kept. */
  put(rows: Work['quarantined'], changes: Changes): void {
    for (const { row, code, reason } of rows) {
      const { id, lane, channel, time_ms, mono_ms, body } = row;
      this.#removeById(id);
      this.#put.run(id, lane, channel, soundTime(time_ms), mono_ms, code, reason, body);
      const outline = this.#outlineOf.get(id);
      if (outline) this.#count(outline, 1);
      if (laneRules[lane].retain) this.#keepNewest(channel, id, changes);
    }
  }

  /** The next rows after a number, without their bodies. */
  list(after: RowId, rows_max: number): readonly QuarantinedRow[] {
    return this.#list.all(after, rows_max);
  }

  find(id: RowId): QuarantinedMessage | undefined {
    return this.#find.get(id);
  }

  /** Rows of `ids`, or all rows, after a number: at most as many as one transaction should handle. */
  next(after: RowId, ids: readonly RowId[] | undefined): readonly QuarantineOutline[] {
    const found = ids ? this.#among(ids, after) : this.#next.all(after, part_rows);
    let bytes = 0;
    const over = found.findIndex((row, index) => (bytes += row.bytes) > part_bytes && index > 0);
    return over < 0 ? found : found.slice(0, over);
  }

  /** The oldest rows of a lane up to a number. */
  oldestOf(lane: Lane, to: RowId, rows_max: number): readonly QuarantineOutline[] {
    return this.#depth.has(lane) ? this.#oldestOf.all(lane, to, rows_max) : [];
  }

  withdraw({ id }: QuarantineOutline): Row | undefined {
    const row = this.#get.get(id);
    this.#removeById(id);
    return row;
  }

  discard(outline: QuarantineOutline, why: DropReason, changes: Changes): void {
    const { id, lane, bytes } = outline;
    this.#remove(outline);
    changes.gaveUp(lane, why, { rows: 1, bytes, lo: id, hi: id });
  }

  get rows(): number {
    return this.#sum('rows');
  }

  get bytes(): number {
    return this.#sum('bytes');
  }

  #among(ids: readonly RowId[], after: RowId): readonly QuarantineOutline[] {
    const found: QuarantineOutline[] = [];
    for (const id of ids) {
      const outline = id > after ? this.#outlineOf.get(id) : undefined;
      if (outline) found.push(outline);
      if (found.length >= part_rows) break;
    }
    return found;
  }

  #keepNewest(channel: string, id: RowId, changes: Changes): void {
    const other = this.#newest.get(channel) ?? id;
    const older = this.#outlineOf.get(Math.min(other, id));
    if (other !== id && older) this.discard(older, 'superseded', changes);
    this.#newest.set(channel, Math.max(other, id));
  }

  #sum(of: 'rows' | 'bytes'): number {
    let sum = 0;
    for (const depth of this.#depth.values()) sum += depth[of];
    return sum;
  }

  #removeById(id: RowId): void {
    const known = this.#outlineOf.get(id);
    if (known) this.#remove(known);
  }

  #remove(outline: QuarantineOutline): void {
    if (this.#delete.run(outline.id).changes === 0) return;
    this.#count(outline, -1);
    if (this.#newest.get(outline.channel) === outline.id) this.#newest.delete(outline.channel);
  }

  #count({ lane, bytes }: QuarantineOutline, sign: 1 | -1): void {
    const depth = this.#depth.get(lane) ?? { rows: 0, bytes: 0 };
    const next = { rows: depth.rows + sign, bytes: depth.bytes + sign * bytes };
    if (next.rows > 0) this.#depth.set(lane, next);
    else this.#depth.delete(lane);
  }
}
const part_rows = 1_000;
const part_bytes = 4 * 1024 * 1024;
