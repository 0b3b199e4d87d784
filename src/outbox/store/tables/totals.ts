/**
 * How many messages have left the buffer since its file was made: the books of `status` outlive a restart. They lie in the page
 * of the depths, which each transaction writes anyway, so they cost the flash nothing.
 */
import type { Statement } from 'better-sqlite3';
import type { StoreClock } from '../ages.ts';
import type { Left } from '../../protocol.ts';
import { readMeta, writeMeta, type Handle } from '../schema.ts';

/** No lane has such a name; releases before this one look for the names of lanes only. */
const prefix = '#left ';
const since_key = 'left_since_ms';

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
