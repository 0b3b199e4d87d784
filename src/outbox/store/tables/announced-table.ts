/** The newest body of every retained channel, to announce everything again when the broker has forgotten it. */
import type { Statement } from 'better-sqlite3';
import type { Changes } from '../changes.ts';
import type { LaneTable } from './lane-table.ts';
import type { Opened } from '../../protocol.ts';
import { rowBytes, type Row, type RowId } from '../../row.ts';
import type { Handle } from '../schema.ts';

export class AnnouncedTable {
  readonly #idOf: Statement<[string], RowId>;
  readonly #put: Statement<[string, RowId, string]>;
  readonly #delete: Statement<[string]>;
  readonly #list: Statement<[], Opened['announced'][number]>;

  constructor(db: Handle) {
    this.#idOf = db.prepare<[string], RowId>('SELECT id FROM announced WHERE channel = ?').pluck();
    this.#put = db.prepare('INSERT OR REPLACE INTO announced (channel, id, body) VALUES (?, ?, ?)');
    this.#delete = db.prepare('DELETE FROM announced WHERE channel = ?');
    this.#list = db.prepare('SELECT channel, body FROM announced ORDER BY channel');
  }

  /**
   * Puts a row into a lane that keeps the newest of each channel. False when it was there already or is not the newest. A
   * row that the main thread holds is not given up: it may be with the broker by now, and would be reported as lost.
   */
  insertNewest(row: Row, table: LaneTable, changes: Changes, isHeld: (id: RowId) => boolean): boolean {
    const waiting = table.rowsOf(row.channel);
    const newest = Math.max(waiting.at(-1) ?? 0, this.#idOf.get(row.channel) ?? 0);
    if (row.id < newest) {
      if (isHeld(row.id)) return table.insert(row, changes);
      const span = { rows: 1, bytes: rowBytes(row), lo: row.id, hi: row.id };
      changes.gaveUp(row.lane, 'superseded', span);
      return false;
    }
    for (const id of waiting) if (id < row.id && !isHeld(id)) table.removeSpan(id, id, 'superseded', changes);
    this.put(row);
    return table.insert(row, changes);
  }

  /** Stores the last value of a channel; removes it when the channel was cleared. */
  put({ channel, id, body }: Pick<Row, 'channel' | 'id' | 'body'>): void {
    if (body === 'null') this.#delete.run(channel);
    else this.#put.run(channel, id, body);
  }

  list(): Opened['announced'] {
    return this.#list.all();
  }
}
