/** Messages that the broker will never take: out of the way, with the reason, until the technician decides. */
import type { Statement } from 'better-sqlite3';
import type { Lane } from '../contract/lanes.ts';
import type { Changes } from './changes.ts';
import type { QuarantinedRow, Work } from './protocol.ts';
import { rowBytes, type Row, type RowId } from './row.ts';
import type { Handle } from './schema.ts';

type Values = [RowId, Lane, string, number, number | null, number, string, string];
type Kept = QuarantinedRow & Pick<Row, 'mono_ms'>;

export class Quarantine {
  readonly #rows_max: number;
  readonly #put: Statement<Values>;
  readonly #list: Statement<[number], Kept>;
  readonly #show: Statement<[number], QuarantinedRow>;
  readonly #get: Statement<[RowId], Kept>;
  readonly #delete: Statement<[RowId]>;
  #count: number;

  constructor(db: Handle, rows_max: number) {
    const columns = 'id, lane, channel, time_ms, mono_ms, code, reason, body';
    this.#rows_max = rows_max;
    this.#put = db.prepare(`INSERT INTO quarantine (${columns}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`);
    this.#list = db.prepare(`SELECT ${columns} FROM quarantine ORDER BY id LIMIT ?`);
    this.#show = db.prepare(
      'SELECT id, lane, channel, time_ms, code, reason, body FROM quarantine ORDER BY id LIMIT ?',
    );
    this.#get = db.prepare(`SELECT ${columns} FROM quarantine WHERE id = ?`);
    this.#delete = db.prepare('DELETE FROM quarantine WHERE id = ?');
    this.#count = db.prepare<[], number>('SELECT count(*) FROM quarantine').pluck().get() ?? 0;
  }

  /** Takes rows in; the oldest beyond the limit are given up. */
  put(rows: Work['quarantined'], changes: Changes): void {
    if (rows.length === 0) return;
    for (const { row, code, reason } of rows) {
      this.#remove(row.id);
      this.#put.run(
        row.id,
        row.lane,
        row.channel,
        Math.round(row.time_ms),
        row.mono_ms,
        code,
        reason,
        row.body,
      );
      this.#count += 1;
    }
    const excess = this.#count - this.#rows_max;
    if (excess <= 0) return;
    for (const row of this.#list.all(excess)) {
      this.#remove(row.id);
      changes.gaveUp(row.lane, 'evicted', spanOf(row));
    }
  }

  list(): readonly QuarantinedRow[] {
    return this.#show.all(this.#rows_max);
  }

  /** Takes rows out, all of them when `ids` is undefined, and answers them in the order of their numbers. */
  takeOut(ids: readonly RowId[] | undefined): readonly Row[] {
    const rows = ids
      ? [...new Set(ids)].sort((a, b) => a - b).flatMap((id) => this.#get.get(id) ?? [])
      : this.#list.all(this.#rows_max);
    for (const { id } of rows) this.#remove(id);
    return rows.map(({ id, lane, channel, time_ms, mono_ms, body }) => ({
      id,
      lane,
      channel,
      time_ms,
      mono_ms,
      body,
    }));
  }

  discard(ids: readonly RowId[] | undefined, changes: Changes): void {
    for (const row of this.takeOut(ids)) changes.gaveUp(row.lane, 'discarded', spanOf(row));
  }

  get count(): number {
    return this.#count;
  }

  #remove(id: RowId): void {
    this.#count -= this.#delete.run(id).changes;
  }
}

function spanOf(row: Row | QuarantinedRow): { rows: 1; bytes: number; lo: RowId; hi: RowId } {
  return { rows: 1, bytes: rowBytes(row), lo: row.id, hi: row.id };
}
