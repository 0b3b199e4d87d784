/** Runs transactions on an open buffer file, keeps it within its limits, and its accounts. */
import { Changes, type Depth, no_depth, perLane, Removals } from '../changes.ts';
import { emptyLog } from './disk.ts';
import { type Shortage } from '../tables/retention.ts';
import type { Row } from '../../row.ts';
import type { Tables } from '../tables/tables.ts';
import type { Removal } from '../../protocol.ts';

/** Given up at once when the disk is full, beside what the commit itself needs. */
const make_room_bytes = 512 * 1024;
const checkpoint_pages_when_full = 100;

export type Work<T> = (tables: Tables, changes: Changes) => T;

export interface How {
  readonly epoch: number;
  readonly shortage: Shortage;
}

export class Transactions {
  readonly accounts = new Accounts();
  /** Notes an epoch in the file. */
  readonly #enterEpoch: (tables: Tables, epoch: number) => void;
  /** The last epoch of the open file. */
  #epoch_in_file = 0;

  constructor(enterEpoch: (tables: Tables, epoch: number) => void) {
    this.#enterEpoch = enterEpoch;
  }

  opened(tables: Tables, epoch: number): void {
    this.#epoch_in_file = epoch;
    this.accounts.opened(tables.readDepth(), tables.readNumber());
    if (tables.announced.outdated().length === 0) return;
    this.run(tables, ({ retention }, changes) => retention.supersede(changes), { epoch, shortage: 'none' });
  }

  run<T>(tables: Tables, work: Work<T>, how: How): T {
    return this.#run(tables, work, how, () => undefined);
  }

  /** The same for a commit, whose outcome may have to be found out when the file is opened again. */
  commit(tables: Tables, work: Work<readonly Row[]>, how: How, { found }: Commit): readonly Row[] {
    return this.#run(tables, work, how, (rows) => ({ rows, found: () => found(rows) }));
  }

  /**
   * On a full disk. The log is not cut down: its blocks are ours, while free ones may be taken by other programs. From now on it is
   * emptied early, so that it never needs more than the reserve gave.
   */
  makeRoom(tables: Tables, epoch: number): void {
    tables.db.pragma(`wal_autocheckpoint = ${checkpoint_pages_when_full}`);
    emptyLog(tables.db);
    const { bytes } = tables.retention.sizeOf(this.accounts.begin().changes);
    const goal = { rows: Number.POSITIVE_INFINITY, bytes: Math.max(0, bytes - make_room_bytes) };
    const evict: Work<void> = ({ retention }, changes) => retention.evict(changes, goal);
    this.run(tables, evict, { epoch, shortage: 'none' });
    emptyLog(tables.db);
  }

  #run<T>(
    tables: Tables,
    work: Work<T>,
    { epoch, shortage }: How,
    commitOf: (value: T) => { readonly rows: readonly Row[]; readonly found: () => void } | undefined,
  ): T {
    const begun = this.accounts.begin();
    const { changes, number } = begun;
    const before = tables.retention.sizeOf(changes);
    const quarantined = tables.quarantine.rows;
    let note = (): void => undefined;
    // A transaction that begins by reading is refused at once while another program has the file, instead of waiting for it.
    const transaction = tables.db.transaction(() => {
      if (this.#epoch_in_file !== epoch) this.#enterEpoch(tables, epoch);
      const value = work(tables, changes);
      tables.retention.keep(changes, before, shortage);
      const removals = changes.removals();
      tables.drops.note(removals);
      for (const { why, rows } of removals) if (why === 'delivered') tables.totals.add(why, rows);
      tables.writeDepth(changes);
      tables.writeNumber(number);
      if (changes.rows === 0) {
        tables.channels.tidy();
        tables.announced.tidy();
      }
      const more = { quarantined: tables.quarantine.rows - quarantined, commit: commitOf(value) };
      note = () => this.accounts.failed({ ...begun, ...more });
      return value;
    });
    try {
      const value = transaction.immediate();
      this.#epoch_in_file = epoch;
      this.accounts.done(changes);
      return value;
    } catch (error) {
      // Only what came as far as COMMIT may be there after all.
      note();
      throw error;
    }
  }
}

/** A commit of the main thread, which makes it again when it may have been carried out. */
export interface Commit {
  readonly again: boolean;
  /** Called with the new rows when it turns out to have been carried out, before it is made again. */
  readonly found: (rows: readonly Row[]) => void;
}

/** What a transaction that ran to its COMMIT would bring. */
interface Attempt {
  readonly number: number;
  readonly before: Depth;
  readonly changes: Changes;
  /** Rows that came into the quarantine. */
  readonly quarantined: number;
  /** Undefined: it is not made again. */
  readonly commit: { readonly rows: readonly Row[]; readonly found: () => void } | undefined;
}

/**
 * What the buffer file holds and what left it, as reported to the main thread. An error of COMMIT may come after its work is in the
 * log, which is read when the file is opened again: a number in the file shows whether it was. A commit that was carried out in
 * this way does not count until it is made again: until then the main thread has its rows in memory.
 */
export class Accounts {
  /** Removals that were not told yet. */
  readonly #untold = new Removals();
  /** What the file holds. */
  #depth: Depth = no_depth;
  /** Of the last transaction. */
  #number = 0;
  /** Its COMMIT failed, and its handle was given up. */
  #unsure: Attempt | undefined;
  /** A commit that was carried out, and whose rows the main thread takes for unwritten. */
  #found: Attempt | undefined;

  get depth(): Depth {
    if (!this.#found) return this.#depth;
    const { before, changes } = this.#found;
    const after = changes.depth();
    return perLane((lane) => ({
      rows: this.#depth[lane].rows - after[lane].rows + before[lane].rows,
      bytes: this.#depth[lane].bytes - after[lane].bytes + before[lane].bytes,
    }));
  }

  /** `rows`: in the quarantine of the file. */
  quarantined(rows: number): number {
    return rows - (this.#found?.quarantined ?? 0);
  }

  /** Whether a commit may have been carried out without an answer. */
  get isUnsure(): boolean {
    return this.#found !== undefined || this.#unsure?.commit !== undefined;
  }

  takeUntold(): readonly Removal[] {
    return this.#untold.takeAll();
  }

  add(removal: Removal): void {
    this.#untold.add(removal);
  }

  begin(): Pick<Attempt, 'number' | 'before' | 'changes'> {
    this.rolledBack();
    this.#number += 1;
    return { number: this.#number, before: this.#depth, changes: new Changes(this.#depth) };
  }

  done(changes: Changes): void {
    this.#depth = changes.depth();
    this.#tell(changes);
  }

  /** COMMIT failed. */
  failed(attempt: Attempt): void {
    this.#unsure = attempt;
  }

  /** The handle of a failed transaction is still in use: it was rolled back. */
  rolledBack(): void {
    this.#unsure = undefined;
  }

  /** The file was opened. `number`: of the last transaction in it. */
  opened(depth: Depth, number: number): void {
    const attempt = this.#unsure;
    this.#unsure = undefined;
    this.#depth = depth;
    this.#number = Math.max(this.#number, number);
    if (attempt?.number !== number) return;
    if (attempt.commit) this.#found = attempt;
    else this.#tell(attempt.changes);
    attempt.commit?.found();
  }

  /** The commit is made again. Returns its new rows when it was carried out: from now on it counts. */
  takeFound(): readonly Row[] | undefined {
    const found = this.#found;
    this.#found = undefined;
    if (found) this.#tell(found.changes);
    return found?.commit?.rows;
  }

  #tell(changes: Changes): void {
    for (const removal of changes.removals()) this.#untold.add(removal);
  }
}
