/**
 * Chooses the epoch of a start so that it is higher than every epoch before: `(epoch, seq)` orders the values of a kit,
 * and receivers drop what they have seen before by it.
 */
import type { StoreClock } from './ages.ts';
import { epochNumber, epochs_end } from '../row-shapes.ts';
import { fsyncSync, renameSync, rmSync, statSync, writeSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { unlessRefused } from '../disk-fault.ts';
import { withFile } from '../../../platform/files/private-file.ts';
import { readTextUpToSync, small_bytes_max } from '../../../platform/bounded-file.ts';
import type { Statement } from 'better-sqlite3';
import type { TimeQuality } from '../../../contract/envelope.ts';
import type { TakenRow } from '../protocol.ts';
import { hoursSince2026, positionOf, type Row, soundTime } from '../row.ts';
import { type Handle, readMeta, writeMeta } from './schema.ts';

/** A new file without a clock: below the hours since 2026 of any kit, so that the first epoch with a clock is above it. */
const clockless_max = 4_096;
/** More starts than a kit ever makes without leaving a row behind. */
const unsure_step = 1_000;
/** A daemon that ends at once is started again every few seconds. A day of these intervals uses 4 % of all epochs. */
const restart_interval_ms = 2_000;
const restarts_for_ms = 86_400_000;
/** After that day; the longest wait of a start. After three months without a disk a quarter of all epochs is used up; it grows no further. */
const unsure_interval_ms = 30_000;
const unsure_intervals_max = 2 ** 18;
/** How far one acknowledgement, or the clock, may push the epoch: beyond that it is an error or an attack. */
const leap_max = 2 ** 17;

export class EpochChoice {
  readonly #memory: EpochMemory;
  readonly #clock: StoreClock;
  #wait_ms = 0;

  constructor(memory: EpochMemory, clock: StoreClock) {
    this.#memory = memory;
    this.#clock = clock;
  }

  /** For a file that can be written and names its `last` epoch; undefined: it is new. */
  next(last: number | undefined): number {
    const seen = Math.max(last ?? 0, this.#memory.last);
    if (seen === 0) return this.#hours() || 1 + Math.floor(Math.random() * clockless_max);
    return Math.max(seen + 1, this.#hoursAfter(seen));
  }

  /**
   * Time during which nothing of the epoch that `unsure` chose last may be published. A start that chooses the same epoch comes
   * before the end of it, and finds that this process has ended without using it.
   */
  get wait_ms(): number {
    return this.#wait_ms;
  }

  /** For a file that cannot be read or written, of which `seen` is known, and for a copy of another machine's file. */
  unsure(seen: number): number {
    this.#wait_ms = 0;
    const { onDisk, ofBoot } = this.#memory;
    const above = Math.max(seen, onDisk, ofBoot, this.#hours());
    if (ofBoot > 0 || (onDisk > 0 && this.#memory.keep(above + 1))) return above + 1;
    const intervals = this.#intervals();
    if (intervals !== undefined) return above + unsure_step + intervals;
    return above + 1 + Math.floor(Math.random() * (unsure_step - 1));
  }

  /** For a file that was copied from another machine, which continues to begin epochs too. */
  apart(last: number): number {
    const above = Math.max(last, this.#memory.last, this.#hours());
    return above + Math.floor(unsure_step * (0.1 + Math.random() * 0.4));
  }

  /** In a running process: at least `min`, unless that exceeds `leap_max`. */
  rollOver(current: number, min: number): number {
    const above = Math.max(current, this.#memory.last);
    const wanted = Number.isSafeInteger(min) && min <= Math.min(above + leap_max, epochs_end - 1) ? min : 0;
    return Math.max(above + 1, wanted, this.#hoursAfter(above));
  }

  /**
   * The number of the next interval: it grows while nothing can be kept, so that a later start is above an earlier one. Undefined
   * without a clock.
   */
  #intervals(): number | undefined {
    const now_ms = this.#clock.wall();
    const passed_ms = now_ms - (this.#memory.writtenMs() ?? now_ms);
    if (passed_ms <= 0) return undefined;
    const of_first_day = restarts_for_ms / restart_interval_ms;
    if (passed_ms < restarts_for_ms) return this.#after(passed_ms, restart_interval_ms);
    const later_ms = passed_ms - restarts_for_ms;
    if (later_ms >= unsure_intervals_max * unsure_interval_ms) return of_first_day + unsure_intervals_max;
    return of_first_day + this.#after(later_ms, unsure_interval_ms);
  }

  /** The interval that begins next, which this start waits for. */
  #after(passed_ms: number, interval_ms: number): number {
    const next = Math.floor(passed_ms / interval_ms) + 1;
    this.#wait_ms = next * interval_ms - passed_ms;
    return next;
  }

  #hours(): number {
    return hoursSince2026(this.#clock.wall());
  }

  /** 0 when the clock is years ahead: it may be wrong, and no epoch below would be used any more. */
  #hoursAfter(seen: number): number {
    const hours = this.#hours();
    return hours <= seen + leap_max ? hours : 0;
  }
}

const epochs_of_run_max = 64;

/**
 * The last epoch of this kit in two small files: beside the buffer file, for when that cannot be read, and in the
 * runtime directory, which can be written while the disk cannot and lasts until the next boot.
 */
export class EpochMemory {
  readonly #file: string;
  readonly #beside: string;
  readonly #runtime: string | undefined;
  #of_run: readonly number[] = [];

  constructor(file: string, runtime_dir: string | undefined) {
    this.#file = file;
    this.#beside = `${file}.epoch`;
    this.#runtime = runtime_dir === undefined ? undefined : join(runtime_dir, 'epoch');
  }

  /** Of the file beside the buffer; 0 when there is none. */
  get onDisk(): number {
    return readEpoch(this.#beside);
  }

  /** Of this boot; 0 when none was kept. */
  get ofBoot(): number {
    return this.#runtime === undefined ? 0 : readEpoch(this.#runtime);
  }

  get last(): number {
    return Math.max(this.onDisk, this.ofBoot);
  }

  /** The newest epochs of this run: they are added to a file that could not be written meanwhile. */
  get ofRun(): readonly number[] {
    return this.#of_run;
  }

  /** Keeps an epoch wherever that is possible; answers whether it will be known after the next boot. */
  keep(epoch: number): boolean {
    if (!this.#of_run.includes(epoch)) this.#of_run = [...this.#of_run, epoch].slice(-epochs_of_run_max);
    if (this.#runtime !== undefined) replace(this.#runtime, epoch);
    return replace(this.#beside, epoch);
  }

  /** When the disk was last written to; undefined when that cannot be read. */
  writtenMs(): number | undefined {
    const times = [this.#file, `${this.#file}-wal`, this.#beside].flatMap((path) => mtimeOf(path) ?? []);
    return times.length > 0 ? Math.max(...times) : undefined;
  }
}

function readEpoch(path: string): number {
  const epoch = unlessRefused(() => Number(readTextUpToSync(path, small_bytes_max).trim()), 0);
  return epochNumber(epoch) ? epoch : 0;
}

function mtimeOf(path: string): number | undefined {
  return unlessRefused(() => statSync(path, { throwIfNoEntry: false })?.mtimeMs, undefined);
}

/** Whenever the power fails, the old number is there or the new one. False when the disk refuses. */
function replace(path: string, epoch: number): boolean {
  const fresh = `${path}.new`;
  const isReplaced = unlessRefused(() => {
    withFile(fresh, 'w', (fd) => {
      writeSync(fd, `${epoch}\n`);
      fsyncSync(fd);
    });
    renameSync(fresh, path);
    withFile(dirname(path), 'r', fsyncSync);
    return true;
  }, false);
  if (!isReplaced) unlessRefused(() => rmSync(fresh, { force: true }), undefined);
  return isReplaced;
}

/** Epochs whose clock is remembered; rows of older ones stay unsynced. */
const epochs_max = 10_000;
/** The epochs of this kit: a number that rises with every start, and the clock offset of unsynced epochs. */
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
