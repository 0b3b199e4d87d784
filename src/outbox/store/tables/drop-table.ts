/** Drops that were not reported to the cloud yet, durable, so that a restart leaves no unexplained gaps. */
import type { Statement } from 'better-sqlite3';
import { isDrop } from '../changes.ts';
import type { Drop, Removal } from '../../protocol.ts';
import { positionOf } from '../../row.ts';
import type { Handle } from '../schema.ts';
import type { TotalsTable } from './totals.ts';

export class DropTable {
  readonly #add: Statement<[number, string, string, number, number, number]>;
  readonly #subtract: Statement<[number, number, string, string]>;
  readonly #clean: Statement<[number, string, string]>;
  readonly #list: Statement<[], Drop>;
  readonly #totals: TotalsTable;

  constructor(db: Handle, totals: TotalsTable) {
    this.#totals = totals;
    this.#add = db.prepare(
      `INSERT INTO drops (epoch, lane, reason, rows, lo, hi) VALUES (?, ?, ?, ?, ?, ?)
       ON CONFLICT (epoch, lane, reason) DO UPDATE
       SET rows = rows + excluded.rows, lo = min(lo, excluded.lo), hi = max(hi, excluded.hi)`,
    );
    this.#subtract = db.prepare(
      'UPDATE drops SET rows = rows - ? WHERE epoch = ? AND lane = ? AND reason = ?',
    );
    this.#clean = db.prepare('DELETE FROM drops WHERE epoch = ? AND lane = ? AND reason = ? AND rows <= 0');
    this.#list = db.prepare(
      'SELECT epoch, lane, reason, rows, lo, hi FROM drops ORDER BY epoch, lane, reason',
    );
  }

  add({ epoch, lane, reason, rows, lo, hi }: Drop): void {
    this.#add.run(epoch, lane, reason, rows, lo, hi);
    this.#totals.add(reason, rows);
  }

  /** Stores the removals that must be reported to the cloud. */
  note(removals: readonly Removal[]): void {
    for (const { lane, why, rows, lo, hi } of removals) {
      if (!isDrop(why)) continue;
      const { epoch, seq } = positionOf(lo);
      this.add({ epoch, lane, reason: why, rows, lo: seq, hi: positionOf(hi).seq });
    }
  }

  /** Removes drops that a message in flight reports. */
  reported(drops: readonly Drop[]): void {
    for (const { epoch, lane, reason, rows } of drops) {
      this.#subtract.run(rows, epoch, lane, reason);
      this.#clean.run(epoch, lane, reason);
    }
  }

  list(): readonly Drop[] {
    return this.#list.all();
  }
}
