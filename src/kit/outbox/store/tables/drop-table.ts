/** Drops that were not reported to the cloud yet, durable, so that a restart leaves no unexplained gaps. */
import type { Statement } from 'better-sqlite3';
import { isDrop } from '../changes.ts';
import type { Drop, Left, Removal } from '../../protocol.ts';
import { positionOf } from '../../row.ts';
import { type Handle, readMeta, writeMeta } from '../schema.ts';
import type { StoreClock } from '../ages.ts';

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

/** No lane has such a name; releases before this one look for the names of lanes only. */
const prefix = '#left ';
const since_key = 'left_since_ms';

/**
 * How many messages have left the buffer since its file was made: the books of `status` outlive a restart. They lie in the page
 * of the depths, which each transaction writes anyway, so they cost the flash nothing.
 */
export class TotalsTable {
  readonly #db: Handle;
  readonly #clock: StoreClock;
  readonly #add: Statement<[string, number]>;
  readonly #list: Statement<[string], { readonly lane: string; readonly rows: number }>;

  constructor(db: Handle, clock: StoreClock) {
    this.#db = db;
    this.#clock = clock;
    this.#add = db.prepare(
      'INSERT INTO depth (lane, rows, bytes) VALUES (?, ?, 0) ON CONFLICT (lane) DO UPDATE SET rows = rows + excluded.rows',
    );
    this.#list = db.prepare('SELECT lane, rows FROM depth WHERE substr(lane, 1, 6) = ?');
  }

  /** Begins to count, unless the file has begun before. `clock_synced`: the time of day is right. Needs a transaction. */
  begin(clock_synced: boolean): void {
    if (readMeta(this.#db, since_key) !== undefined) return;
    writeMeta(this.#db, since_key, clock_synced ? this.#clock.wall() : 0);
  }

  add(why: string, rows: number): void {
    if (rows > 0) this.#add.run(prefix + why, rows);
  }

  read(): Left {
    const rows = this.#list.all(prefix).map((each) => [each.lane.slice(prefix.length), each.rows] as const);
    const { delivered = 0, ...dropped } = Object.fromEntries(rows);
    const since_ms = readMeta(this.#db, since_key) ?? 0;
    return { since_ms: since_ms === 0 ? null : since_ms, delivered, dropped };
  }

  /** Takes over what could be read of a damaged file: rows of `depth`, and `meta`. Needs a transaction. */
  restore(
    depth: readonly (readonly [lane: string, rows: number, bytes: number])[],
    meta: ReadonlyMap<string, number>,
  ): void {
    const known = depth.filter(([lane]) => lane.startsWith(prefix));
    if (known.length === 0) return;
    this.#db.prepare('DELETE FROM depth WHERE substr(lane, 1, 6) = ?').run(prefix);
    for (const [lane, rows] of known) this.#add.run(lane, rows);
    writeMeta(this.#db, since_key, meta.get(since_key) ?? 0);
  }
}
