/** Runs transactions on an open buffer file, keeps it within its limits, and its accounts. */
import { Accounts, type Commit } from './accounts.ts';
import type { Changes } from '../changes.ts';
import { emptyLog, type Shortage } from './disk.ts';
import type { Row } from '../../row.ts';
import type { Tables } from '../tables/tables.ts';

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

  /** The file was opened, and has entered this epoch. */
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
