/**
 * How old the rows are. The time of day is no measure: it may jump by a year when a gateway finds the network, and that
 * must not empty the buffer. So the file has a separate clock, which advances evenly while the connector runs and takes
 * at most a day for the time in which it did not; now and then it is noted which rows were there by then. A kit that lay
 * switched off for a month therefore keeps its rows longer than configured, within the limits of size.
 */
import type { Statement } from 'better-sqlite3';
import type { RowId } from '../row.ts';
import { readMeta, writeMeta, type Handle } from './schema.ts';

const off_ms_max = 86_400_000;
/** Marks within the configured age: a row may stay this part of it longer. */
const marks_for_age = 64;

/** The clocks that the store reads; tests have their own. */
export interface StoreClock {
  /** UTC, milliseconds since 1970. */
  readonly wall: () => number;
  /** Milliseconds, evenly rising. */
  readonly mono: () => number;
}

export const store_clock: StoreClock = { wall: () => Date.now(), mono: () => performance.now() };

export class Ages {
  readonly #db: Handle;
  readonly #age_max_ms: number;
  readonly #clock: StoreClock;
  readonly #started_ms: number;
  readonly #age_at_start_ms: number;
  readonly #put: Statement<[RowId, number]>;
  readonly #passed: Statement<[number], RowId | null>;
  readonly #forget: Statement<[RowId]>;
  #marked_ms: number;

  constructor(db: Handle, age_max_ms: number, clock: StoreClock) {
    this.#db = db;
    this.#age_max_ms = age_max_ms;
    this.#clock = clock;
    const [age_ms, wall_ms] = [readMeta(db, 'age_ms') ?? 0, readMeta(db, 'age_wall_ms') ?? clock.wall()];
    this.#age_at_start_ms = age_ms + Math.min(Math.max(clock.wall() - wall_ms, 0), off_ms_max);
    this.#started_ms = clock.mono();
    this.#marked_ms = this.#age_at_start_ms;
    this.#put = db.prepare('INSERT OR IGNORE INTO ages (id, age_ms) VALUES (?, ?)');
    this.#passed = db.prepare<[number], RowId | null>('SELECT max(id) FROM ages WHERE age_ms < ?').pluck();
    this.#forget = db.prepare('DELETE FROM ages WHERE id <= ?');
  }

  /** Notes, when it is time, that all rows up to the newest are there by now. Needs a transaction. */
  mark(newest: () => RowId): void {
    const now_ms = this.#now();
    if (now_ms - this.#marked_ms < this.#age_max_ms / marks_for_age) return;
    this.#marked_ms = now_ms;
    this.#put.run(newest(), now_ms);
    this.save();
  }

  /** Rows up to this number are older than the configured age. */
  expiredTo(): RowId | undefined {
    const id = this.#passed.get(this.#now() - this.#age_max_ms);
    return id ?? undefined;
  }

  /** No row up to this number is left. */
  forget(to: RowId): void {
    this.#forget.run(to);
  }

  /** Keeps the time for the next start. */
  save(): void {
    writeMeta(this.#db, 'age_ms', this.#now());
    writeMeta(this.#db, 'age_wall_ms', Math.round(this.#clock.wall()));
  }

  #now(): number {
    return Math.round(this.#age_at_start_ms + this.#clock.mono() - this.#started_ms);
  }
}
