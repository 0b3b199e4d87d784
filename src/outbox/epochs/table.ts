/** The epochs of this kit: a number that rises with every start, and the clock offset of unsynced epochs. */
import type { Statement } from 'better-sqlite3';
import type { TimeQuality } from '../../contract/envelope.ts';
import type { TakenRow } from '../protocol.ts';
import { positionOf, soundTime, type Row } from '../row.ts';
import { readMeta, writeMeta, type Handle } from '../store/schema.ts';

/** Epochs whose clock is remembered; rows of older ones stay unsynced. */
const epochs_max = 10_000;
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
    this.#trim = db.prepare(
      'DELETE FROM epochs WHERE epoch <= (SELECT epoch FROM epochs ORDER BY epoch DESC LIMIT 1 OFFSET ?)',
    );
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

  /** Begins an epoch in this file, or continues it after the file was reopened. */
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

  /** Whether this file has begun the epoch. */
  knows(epoch: number): boolean {
    return this.#offsetOf.get(epoch) !== undefined;
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
    if (mono_ms === null) return { time_ms: soundTime(time_ms), time_quality: undefined };
    const offset_ms = this.#offset(positionOf(id).epoch);
    if (offset_ms === null) return { time_ms: soundTime(time_ms), time_quality: 'unsynced' };
    return { time_ms: soundTime(offset_ms + mono_ms), time_quality: 'corrected' };
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
