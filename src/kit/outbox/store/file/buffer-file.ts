/**
 * The buffer file as something that can break: opens it, runs transactions on it, and when the disk or the file fails
 * makes room, opens it again, or begins a new file with what the damaged one, or the deleted one, still holds.
 */
import { existsSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';
import { StorageUnavailable, StorageUnsure } from '../../../../platform/errors.ts';
import type { StoreClock } from '../ages.ts';
import { type Commit, type How, Transactions, type Work } from './transactions.ts';
import type { Depth } from '../changes.ts';
import { diskFault, type DiskFault, troubleOf } from '../../disk-fault.ts';
import {
  closeTables,
  endHandle,
  foundIn,
  noteStored,
  openOwn,
  reopen,
  replaceFile,
  type Replacement,
} from './opening.ts';
import { Disk, emptiesLog, fileBytes, readHead, tidyPages } from './disk.ts';
import { EpochChoice, EpochMemory } from '../epochs.ts';
import type { InFlightRows } from '../in-flight-rows.ts';
import { type Row, rowId } from '../../row.ts';
import type { DiskHealth, Drop, Found, OpenOptions, Removal, Salvage, StoreOptions } from '../../protocol.ts';
import type { Salvaged } from './salvage.ts';
import {
  type Handle,
  isOtherKit,
  openFile,
  page_bytes,
  readMeta,
  readMetaText,
  writeMeta,
} from '../schema.ts';
import { Tables } from '../tables/tables.ts';
import { texts } from '../../texts.ts';
import { watchPlaces } from '../../../../platform/files/file-identity.ts';
import Database from 'better-sqlite3';
import { patchHeader } from './file-header.ts';
import { forgetUnwritten, readUnwritten, type Unwritten } from '../../unwritten.ts';

/** What was delivered is removed without waiting for the disk each time: a power cut sends so much of it once more. */
const sync_every_ms = 1_000;

export class BufferFile {
  readonly #options: OpenOptions;
  readonly #in_flight: InFlightRows;
  readonly #clock: StoreClock;
  readonly #disk: Disk;
  readonly #transactions = new Transactions((tables, epoch) => this.#enterEpoch(tables, epoch));
  /** Undefined while the file cannot be used. */
  #tables: Tables | undefined;
  /** Of the tables. */
  #place: Place | undefined;
  readonly #epoch_memory: EpochMemory;
  readonly #epoch_choice: EpochChoice;
  /** 0 until it is known. */
  #epoch = 0;
  #synced_ms = Number.NEGATIVE_INFINITY;
  #machine_changed = false;
  #salvage: Salvage | undefined;
  /** Of the first handle: later ones hold what this run has written, too. */
  #found: Found | undefined;
  #was_opened = false;
  /** What was wrong the last time; undefined while all is well. */
  #trouble: DiskHealth | undefined;
  #closed = false;

  /** Opens the file. A disk that fails is not an error: requests are refused until it does not. */
  constructor(options: OpenOptions, in_flight: InFlightRows, clock: StoreClock) {
    this.#options = options;
    this.#in_flight = in_flight;
    this.#clock = clock;
    this.#disk = new Disk(options.file, options.limits.free_bytes_min, clock.mono);
    this.#epoch_memory = new EpochMemory(options.file, options.runtime_dir);
    this.#epoch_choice = new EpochChoice(this.#epoch_memory, clock);
    if (!existsSync(dirname(options.file))) {
      throw new StorageUnavailable(texts.folder_missing(dirname(options.file)));
    }
    try {
      this.#guarded(() => this.#lookAfter());
    } catch (error) {
      if (!(error instanceof StorageUnavailable)) throw error;
      this.#epoch = this.#epoch_choice.unsure(peekEpoch(options.file));
      this.#epoch_memory.keep(this.#epoch);
    }
  }

  get epoch(): number {
    return this.#epoch;
  }

  /** See `Opened`. */
  get epoch_wait_ms(): number {
    return this.#tables ? 0 : this.#epoch_choice.wait_ms;
  }

  get machine_changed(): boolean {
    return this.#machine_changed;
  }

  /** Begins a higher epoch, at least `min` where that is reasonable; a disk that refuses learns of it later. */
  beginEpoch(min: number): number {
    this.#epoch = this.#epoch_choice.rollOver(this.#epoch, min);
    this.#epoch_memory.keep(this.#epoch);
    try {
      this.write(() => undefined);
    } catch (error) {
      if (!(error instanceof StorageUnavailable)) throw error;
    }
    return this.#epoch;
  }

  get depth(): Depth {
    return this.#transactions.accounts.depth;
  }

  get quarantined_rows(): number {
    return this.#transactions.accounts.quarantined(this.#tables?.quarantine.rows ?? 0);
  }

  takeUntold(): readonly Removal[] {
    return this.#transactions.accounts.takeUntold();
  }

  /** What happened to a damaged file since the last call. */
  takeSalvage(): Salvage | undefined {
    const happened = this.#salvage;
    this.#salvage = undefined;
    return happened;
  }

  /** What an earlier run left in the file, once it could be opened; answered once. */
  takeFound(): Found | undefined {
    const found = this.#found;
    this.#found = undefined;
    return found;
  }

  health(): DiskHealth {
    return this.#trouble ?? this.#disk.health();
  }

  /** The database and its log. */
  bytes(): number {
    return fileBytes(this.#options.file);
  }

  freeBytes(): number {
    return this.#disk.look();
  }

  /** Reads. Throws `StorageUnavailable`. */
  read<T>(work: (tables: Tables) => T): T {
    return this.#guarded(work);
  }

  /**
   * Runs one transaction and keeps the buffer within its limits; it is durable when this returns, or `soon`: within
   * `sync_every_ms` if others follow, and whole or not at all after a power cut. Throws `StorageUnavailable`.
   */
  write<T>(work: Work<T>, durable: 'now' | 'soon' = 'now'): T {
    return this.#guarded((tables) =>
      this.#write(durable, () => this.#transactions.run(tables, work, this.#how)),
    );
  }

  /**
   * The same for a commit of the main thread. Throws `StorageUnsure` when it may have been carried out: then the same commit
   * has to be the next.
   */
  commit(work: Work<readonly Row[]>, durable: 'now' | 'soon', commit: Commit): readonly Row[] {
    const { accounts } = this.#transactions;
    let isAgain = commit.again;
    try {
      return this.#guarded((tables) => {
        const found = isAgain ? accounts.takeFound() : undefined;
        isAgain = true;
        return (
          found ?? this.#write(durable, () => this.#transactions.commit(tables, work, this.#how, commit))
        );
      });
    } catch (error) {
      if (!(error instanceof StorageUnavailable) || !accounts.isUnsure) throw error;
      throw new StorageUnsure(error.message, { cause: error, fault: error.fault });
    }
  }

  close(): void {
    if (this.#closed) return;
    try {
      if (this.#tables) this.read(() => undefined);
    } catch (error) {
      if (!(error instanceof StorageUnavailable)) throw error;
    }
    const tables = this.#tables;
    const isInReach = tables !== undefined && this.#place?.look() !== 'lost';
    if (this.#was_opened && !isInReach) noteStored(this.#options, this.#epoch, this.depth);
    this.#closed = true;
    this.#tables = undefined;
    if (tables) closeTables(tables);
  }

  #write<T>(durable: 'now' | 'soon', transact: () => T): T {
    if (this.#disk.isTimeToLook()) this.#lookAfter();
    const now_ms = this.#clock.mono();
    const is_soon = durable === 'soon' && now_ms - this.#synced_ms < sync_every_ms;
    this.#opened().sync(is_soon ? 'NORMAL' : 'FULL');
    const value = transact();
    if (!is_soon) this.#synced_ms = now_ms;
    return value;
  }

  get #how(): How {
    return { epoch: this.#epoch, shortage: this.#disk.shortage };
  }

  // --- When something fails -------------------------------------------------------------------------------------

  /** Runs `work`; after a failure repairs what it can and retries once. */
  #guarded<T>(work: (tables: Tables) => T): T {
    if (this.#closed) throw new StorageUnavailable(texts.closed);
    try {
      this.#keepPlace();
      const value = this.#tryTwice(work);
      this.#trouble = undefined;
      return value;
    } catch (error) {
      const fault = diskFault(error);
      this.#afterRollback(fault);
      if (!fault) throw error;
      const trouble = troubleOf(fault, this.#options.file);
      this.#trouble = trouble;
      throw new StorageUnavailable(trouble.detail, { cause: error, fault: trouble.fault });
    }
  }

  #tryTwice<T>(work: (tables: Tables) => T): T {
    try {
      return work(this.#opened());
    } catch (error) {
      const fault = diskFault(error);
      if (!fault || fault.kind === 'busy') throw error;
      this.#mend(fault);
      return work(this.#opened());
    }
  }

  /** What the tables remember of a rolled back transaction is wrong; a handle that failed is useless, unless it alone has its file. */
  #afterRollback(fault: DiskFault | undefined): void {
    const { db } = this.#tables ?? {};
    if (!db) return;
    const isUseless = fault && fault.kind !== 'full' && fault.kind !== 'busy';
    if (isUseless && this.#place?.look() !== 'lost') return this.#letGo();
    this.#transactions.accounts.rolledBack();
    try {
      this.#tables = this.#tablesOf(db);
    } catch (error) {
      if (!diskFault(error)) throw error;
      this.#letGo();
    }
  }

  #mend(fault: DiskFault): void {
    if (fault.kind === 'full') this.#makeRoom();
    else if (fault.kind === 'damaged') this.#beginAgain(fault.sentence);
    else this.#letGo();
  }

  /** The reserve gives room to delete with. */
  #makeRoom(): void {
    this.#disk.releaseReserve();
    if (!this.#tables) return;
    this.#tables = this.#tablesOf(this.#tables.db);
    this.#transactions.makeRoom(this.#tables, this.#epoch);
  }

  /** Ends a handle that is of no use any more; the next request opens a new one. */
  #letGo(): void {
    const tables = this.#tables;
    this.#tables = undefined;
    if (tables) endHandle(tables.db);
  }

  /** A file that was deleted or replaced is still open: what it holds goes into a new one. */
  #keepPlace(): void {
    const tables = this.#tables;
    const where = this.#place?.look();
    if (!tables || where === 'kept') return;
    // A power cut would lose what stands in a deleted log alone.
    if (where === 'log_lost' && emptiesLog(tables.db)) this.#letGo();
    else this.#beginAgain(texts.file_gone, tables);
  }

  // --- Opening --------------------------------------------------------------------------------------------------

  #opened(): Tables {
    this.#tables ??= this.#open();
    return this.#tables;
  }

  #open(): Tables {
    const open = (): Tables => this.#openCurrent();
    const of_run = { file: this.#options.file, epochs: this.#epoch_memory.ofRun, depth: this.depth };
    const { tables, replacement } = this.#was_opened ? reopen(open, of_run) : { tables: open() };
    try {
      const epoch = this.#epoch || this.#chooseEpoch(tables);
      enterWithNotes(tables, this.#options, () => {
        this.#enterEpoch(tables, epoch);
        tables.drops.note(replacement?.lost ?? []);
      });
      if (replacement) this.#replaced(replacement);
      this.#epoch = epoch;
      this.#epoch_memory.keep(epoch);
      this.#in_flight.rewind();
      this.#transactions.opened(tables, epoch);
      if (!this.#was_opened) this.#found = foundIn(tables);
      this.#was_opened = true;
      this.#place = placeOf(this.#options.file);
      return tables;
    } catch (error) {
      tables.db.close();
      throw error;
    }
  }

  #chooseEpoch({ db, epochs }: Tables): number {
    const { machine } = this.#options;
    const last = epochs.last();
    const marked = readMetaText(db, 'machine');
    this.#machine_changed = machine !== undefined && marked !== undefined && marked !== machine;
    const isCopy = last !== undefined && this.#machine_changed;
    return isCopy ? this.#epoch_choice.apart(last) : this.#epoch_choice.next(last);
  }

  /** Notes an epoch in the file, and whose file it is. Needs a transaction. */
  #enterEpoch({ db, epochs }: Tables, epoch: number): void {
    const { boot_id, kit_id, machine } = this.#options;
    for (const each of [...this.#epoch_memory.ofRun, epoch]) epochs.begin(each, boot_id);
    if (kit_id !== undefined) writeMeta(db, 'kit_id', kit_id);
    if (machine !== undefined) writeMeta(db, 'machine', machine);
  }

  #openCurrent(): Tables {
    const { file } = this.#options;
    const lastEpoch = (): number => this.#epoch || this.#epoch_choice.unsure(peekEpoch(file));
    const { db, salvage } = openOwn(this.#options, lastEpoch);
    if (salvage) this.#salvage = salvage;
    return this.#tablesOf(db);
  }

  #tablesOf(db: Handle): Tables {
    return new Tables(db, this.#options.limits, this.#in_flight, this.#clock);
  }

  /** Replaces the file by a new one with what can be read of it: from the disk, or through the handle of a file that is gone. */
  #beginAgain(cause: string, displaced?: Tables): void {
    const depth = this.#tables && this.#transactions.accounts.depth;
    if (!displaced) this.#letGo();
    this.#disk.releaseReserve();
    const { limits } = this.#options;
    const letGo = (): void => {
      this.#place?.removeLog();
      this.#letGo();
    };
    const replacement = replaceFile({
      options: this.#options,
      cause,
      ...(displaced && { displaced: { db: displaced.db, letGo } }),
      depth,
      open: (path) => this.#tablesOf(openFile(path, limits.bytes_max)),
      epochAfter: (saved) => this.#epoch || this.#epochAfter(saved),
    });
    this.#replaced(replacement);
    this.#disk.look();
    this.#disk.keepReserve();
  }

  #replaced({ salvage, lost }: Replacement): void {
    this.#salvage = salvage;
    for (const removal of lost) this.#transactions.accounts.add(removal);
  }

  #epochAfter({ epoch, epoch_seen }: Salvaged): number {
    if (epoch === undefined) return this.#epoch_choice.unsure(epoch_seen);
    return Math.max(epoch, epoch_seen);
  }

  // --- Housekeeping ---------------------------------------------------------------------------------------------

  /** Every few seconds: how full the disk is, the reserve, and pages that have long been free. */
  #lookAfter(): void {
    const { db } = this.#opened();
    this.#disk.look();
    this.#disk.keepReserve();
    tidyPages(db, this.#disk.shortage);
  }
}

interface Place {
  /** `log_lost`: only the log, or its index, was deleted or replaced. */
  readonly look: () => 'kept' | 'log_lost' | 'lost';
  /** The next file must not find the log of this one. A log that came with another file is left. */
  readonly removeLog: () => void;
}

/**
 * Where an open buffer file is: somebody may have deleted or replaced it, its log, or their folder.
 * To be called when the file and its log exist.
 */
function placeOf(file: string): Place {
  const log = `${file}-wal`;
  const displaced = watchPlaces([file, log, `${file}-shm`]);
  return {
    look: () => {
      const paths = displaced();
      if (paths.includes(file)) return 'lost';
      return paths.length > 0 ? 'log_lost' : 'kept';
    },
    removeLog: () => {
      if (!displaced().includes(log)) rmSync(log, { force: true });
    },
  };
}

/** The roots of all tables stand at the beginning of the file, and `meta` fits its root. */
const head_bytes = 64 * page_bytes;

/**
 * Reads the epoch of a file that SQLite cannot open: one on a read-only disk, or of a later version.
 * 0 when it cannot be read. What stands in the log only is not seen, so the true epoch may be a little higher.
 */
function peekEpoch(file: string): number {
  try {
    const db = new Database(patchHeader(readHead(file, head_bytes), { journal: 'rollback' }));
    try {
      return readMeta(db, 'epoch') ?? 0;
    } finally {
      db.close();
    }
  } catch (error) {
    if (error instanceof Database.SqliteError || diskFault(error)) return 0;
    throw error;
  }
}

/** Epoch of the last note that was taken over. */
const noted_epoch = 'unwritten_epoch';
/** More than memory holds: a longer run was not written by this kit. */
const run_rows_max = 100_000;

/**
 * Takes over what the stop of an earlier run could not write: from then on it is among the drops of the buffer file.
 * Runs `enter` in a transaction that also takes over the notes. Those of another kit, and those taken over before, change nothing.
 */
function enterWithNotes(
  tables: Tables,
  { runtime_dir, kit_id, clock_synced }: StoreOptions,
  enter: () => void,
): void {
  const notes = readUnwritten(runtime_dir).filter((note) => !isOtherKit(note.kit_id, kit_id));
  tables.db.transaction(() => {
    enter();
    tables.totals.begin(clock_synced !== false);
    takeOver(notes, tables);
  })();
  if (notes.length > 0) forgetUnwritten(runtime_dir);
}

function takeOver(notes: readonly Unwritten[], tables: Tables): void {
  const known = readMeta(tables.db, noted_epoch) ?? 0;
  const fresh = notes.filter(({ epoch }) => epoch > known);
  if (fresh.length === 0) return;
  for (const { epoch, rows, drops, stored } of fresh) {
    for (const drop of drops) tables.drops.add(drop);
    if (!tables.epochs.knows(epoch)) for (const drop of stored) tables.drops.add(drop);
    for (const run of rows) for (const drop of lostOf(run, tables)) tables.drops.add(drop);
  }
  writeMeta(tables.db, noted_epoch, Math.max(...fresh.map(({ epoch }) => epoch)));
}

/** Those of a run that are not in the file: the disk may have finished a commit that nothing waited for any more. */
function* lostOf(run: Drop, tables: Tables): Generator<Drop> {
  if (run.hi - run.lo + 1 !== run.rows || run.rows > run_rows_max) return;
  const table = tables.lane(run.lane);
  for (let seq = run.lo; seq <= run.hi; seq += 1) {
    const id = rowId({ epoch: run.epoch, seq });
    if (!table.has(id) && !tables.quarantine.find(id)) yield { ...run, rows: 1, lo: seq, hi: seq };
  }
}
