/** The epochs of this kit: the number that rises with every start, and the time of day of those that began without it. */
import type { Statement } from 'better-sqlite3';
import type { TimeQuality } from '../contract/envelope.ts';
import type { TakenRow } from './protocol.ts';
import { positionOf, type Row } from './row.ts';
import { readMeta, writeMeta, type Handle } from './schema.ts';

/** Epochs whose clock is remembered; rows of older ones stay unsynced. */
const epochs_max = 10_000;
const first_hour_ms = Date.UTC(2026, 0, 1);
const hour_ms = 3_600_000;
/** More starts than a kit ever makes without leaving a row behind. */
const unsure_step = 1_000;

/**
 * Where the numbers of a new file begin: at the hours since 2026. A kit that starts less than once an hour on average
 * stays behind that, so a reinstalled kit does not use its old numbers again, and 2^20 epochs last for a century.
 */
export function firstEpoch(now_ms: number): number {
  return Math.max(1, Math.floor((now_ms - first_hour_ms) / hour_ms));
}

/**
 * An epoch for when the last one cannot be read or the new one cannot be written: above all that was seen, by a step
 * with a random part, so that two such starts in a row hardly ever use the same numbers.
 */
export function unsureEpoch(seen: number, now_ms: number): number {
  return Math.max(seen, firstEpoch(now_ms)) + unsure_step + Math.floor(Math.random() * unsure_step);
}

export class Epochs {
  readonly #db: Handle;
  readonly #begin: Statement<[number, string, string]>;
  readonly #trim: Statement<[number]>;
  readonly #offsetOf: Statement<[number], number | null>;
  readonly #setOffset: Statement<[number, string, number, string]>;
  readonly #known = new Map<number, number | null>();

  constructor(db: Handle) {
    this.#db = db;
    this.#begin = db.prepare(
      `INSERT OR IGNORE INTO epochs (epoch, boot_id, clock_offset_ms)
       VALUES (?, ?, (SELECT clock_offset_ms FROM epochs WHERE boot_id = ? AND boot_id <> 'unknown' AND clock_offset_ms IS NOT NULL))`,
    );
    this.#trim = db.prepare('DELETE FROM epochs WHERE epoch <= (SELECT max(epoch) FROM epochs) - ?');
    this.#offsetOf = db
      .prepare<[number], number | null>('SELECT clock_offset_ms FROM epochs WHERE epoch = ?')
      .pluck();
    this.#setOffset = db.prepare(
      `UPDATE epochs SET clock_offset_ms = ? WHERE (boot_id = ? AND boot_id <> 'unknown') OR (epoch = ? AND boot_id = ?)`,
    );
  }

  /** The last one of this file; undefined in a new file. */
  last(): number | undefined {
    return readMeta(this.#db, 'epoch');
  }

  /** Begins an epoch in this file, or goes on with it after a new handle. */
  begin(epoch: number, boot_id: string): void {
    writeMeta(this.#db, 'epoch', Math.max(epoch, this.last() ?? 0));
    this.#begin.run(epoch, boot_id, boot_id);
    this.#trim.run(epochs_max);
  }

  /** Takes over what a damaged file knew of an epoch. */
  put(epoch: number, boot_id: string, offset_ms: number | null): void {
    this.#db
      .prepare('INSERT OR IGNORE INTO epochs (epoch, boot_id, clock_offset_ms) VALUES (?, ?, ?)')
      .run(epoch, boot_id, offset_ms);
  }

  all(): readonly number[] {
    return this.#db.prepare<[], number>('SELECT epoch FROM epochs').pluck().all();
  }

  /** The clock is right now: corrects all epochs of this boot. */
  setOffset(offset_ms: number, epoch: number, boot_id: string): void {
    this.#setOffset.run(offset_ms, boot_id, epoch, boot_id);
    this.#known.clear();
  }

  /** The row with the best time there is for it by now. */
  correct(row: Row): TakenRow {
    const { time_ms, time_quality } = this.timeOf(row);
    return { ...row, time_ms, time_quality };
  }

  timeOf({ id, time_ms, mono_ms }: Pick<Row, 'id' | 'time_ms' | 'mono_ms'>): {
    readonly time_ms: number;
    readonly time_quality: TimeQuality | undefined;
  } {
    if (mono_ms === null) return { time_ms, time_quality: undefined };
    const offset_ms = this.#offset(positionOf(id).epoch);
    if (offset_ms === null) return { time_ms, time_quality: 'unsynced' };
    return { time_ms: Math.round(offset_ms + mono_ms), time_quality: 'corrected' };
  }

  #offset(epoch: number): number | null {
    const known = this.#known.get(epoch);
    if (known !== undefined) return known;
    const offset_ms = this.#offsetOf.get(epoch) ?? null;
    if (this.#known.size >= epochs_max) this.#known.clear();
    this.#known.set(epoch, offset_ms);
    return offset_ms;
  }
}
