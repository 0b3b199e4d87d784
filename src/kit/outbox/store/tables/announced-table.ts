/**
 * The newest body of every retained channel, to announce everything again when the broker has forgotten it. A channel that was
 * cleared stays, with `null`, as long as an older value of it may be in the file.
 */
import type { Statement } from 'better-sqlite3';
import type { Changes } from '../changes.ts';
import type { LaneTable } from './lane-table.ts';
import type { Opened } from '../../protocol.ts';
import { rowBytes, type Row, type RowId } from '../../row.ts';
import { laneTable, type Handle } from '../schema.ts';

export class AnnouncedTable {
  readonly #idOf: Statement<[string], RowId>;
  readonly #put: Statement<[string, RowId, string]>;
  readonly #list: Statement<[], Opened['announced'][number]>;
  readonly #outdated: Statement<[], RowId>;
  readonly #forgetCleared: Statement<[]>;
  /** A channel may be cleared that nothing in the file is older than. */
  #has_cleared = true;

  constructor(db: Handle) {
    this.#idOf = db.prepare<[string], RowId>('SELECT id FROM announced WHERE channel = ?').pluck();
    this.#put = db.prepare('INSERT OR REPLACE INTO announced (channel, id, body) VALUES (?, ?, ?)');
    this.#list = db.prepare("SELECT channel, body FROM announced WHERE body <> 'null' ORDER BY channel");
    this.#outdated = db
      .prepare<[], RowId>(
        `SELECT waiting.id FROM ${laneTable('presence')} AS waiting JOIN topics ON topics.id = waiting.topic
          JOIN announced USING (channel) WHERE waiting.id < announced.id ORDER BY waiting.id`,
      )
      .pluck();
    this.#forgetCleared = db.prepare(
      "DELETE FROM announced WHERE body = 'null' AND channel NOT IN (SELECT channel FROM quarantine WHERE lane = 'presence')",
    );
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

  /** Stores the last value of a channel. */
  put({ channel, id, body }: Pick<Row, 'channel' | 'id' | 'body'>): void {
    if (body === 'null') this.#has_cleared = true;
    this.#put.run(channel, id, body);
  }

  /** Rows that a newer value of their channel has made worthless, whether it was delivered or waits as well. */
  outdated(): readonly RowId[] {
    return this.#outdated.all();
  }

  /** To be called, within a transaction, while the lanes are empty. */
  tidy(): void {
    if (!this.#has_cleared) return;
    this.#forgetCleared.run();
    this.#has_cleared = false;
  }

  /** Without the channels that were cleared. */
  list(): Opened['announced'] {
    return this.#list.all();
  }
}
