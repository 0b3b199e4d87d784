/**
 * The buffer file as something that can break: opens it, runs transactions on it, and when the disk or the file fails
 * makes room, opens it again, or begins a new file with what the damaged one still holds.
 */
import { existsSync } from 'node:fs';
import { dirname } from 'node:path';
import { StorageUnavailable, StorageUnsure } from '../../../errors.ts';
import type { StoreClock } from '../ages.ts';
import type { Commit } from './accounts.ts';
import type { Depth } from '../changes.ts';
import { diskFault, troubleOf, type DiskFault } from './disk-fault.ts';
import { Disk, emptyLog, fileBytes } from './disk.ts';
import { EpochChoice } from '../../epochs/choice.ts';
import { EpochMemory } from '../../epochs/memory.ts';
import { enterWithNotes } from '../found-notes.ts';
import type { InFlightRows } from '../in-flight-rows.ts';
import type { Row } from '../../row.ts';
import type { DiskHealth, Found, Removal, Salvage, OpenOptions } from '../../protocol.ts';
import { foundIn, openOwn } from './opening.ts';
import { peekEpoch } from './peek.ts';
import { replaceDamaged } from './replacement.ts';
import type { Salvaged } from './salvage.ts';
import { type How, Transactions, type Work } from './transactions.ts';
import { checkpoint_pages, openFile, readMetaText, writeMeta, type Handle } from '../schema.ts';
import { openTables, type Tables } from '../tables/tables.ts';
import { texts } from '../../texts.ts';

/** What was delivered is removed without waiting for the disk each time: a power cut sends so much of it once more. */
const sync_every_ms = 1_000;
/** Given up at once when the disk is full, beside what the commit itself needs. */
const make_room_bytes = 512 * 1024;
/** Free pages beyond this are returned to the file system, a few at a time. */
const free_pages_max = 16_384;
const vacuum_pages = 256;
const checkpoint_pages_when_full = 100;

export class BufferFile {
  readonly #options: OpenOptions;
  readonly #in_flight: InFlightRows;
  readonly #clock: StoreClock;
  readonly #disk: Disk;
  readonly #transactions = new Transactions((tables, epoch) => this.#enterEpoch(tables, epoch));
  /** Undefined while the file cannot be used. */
  #tables: Tables | undefined;
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
    const tables = this.#tables;
    this.#closed = true;
    this.#tables = undefined;
    if (!tables) return;
    try {
      tables.db.transaction(() => tables.ages.save())();
      tables.db.pragma('optimize');
      tables.db.pragma('wal_checkpoint(TRUNCATE)');
    } catch (error) {
      // Everything is in the file or its log by now: a disk that fails at the very end costs nothing.
      if (!diskFault(error)) throw error;
    } finally {
      tables.db.close();
    }
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

  /** What the tables remember of a transaction that was rolled back is wrong; a handle that failed is of no use. */
  #afterRollback(fault: DiskFault | undefined): void {
    const { db } = this.#tables ?? {};
    if (!db) return;
    if (fault && fault.kind !== 'full' && fault.kind !== 'busy') return this.#letGo();
    this.#transactions.accounts.rolledBack();
    try {
      this.#tables = this.#tablesOf(db);
    } catch (error) {
      if (!diskFault(error)) throw error;
      this.#letGo();
    }
  }

  #mend(fault: DiskFault): void {
    switch (fault.kind) {
      case 'full':
        return this.#makeRoom();
      case 'damaged':
        return this.#beginAgain(fault.sentence);
      case 'read_only':
      case 'failing':
      case 'busy':
        return this.#letGo();
    }
  }

  /**
   * The reserve gives room to delete with. The log is not cut down: its blocks are ours, while free ones may be taken by
   * other programs. From now on it is emptied early, so that it never needs more than the reserve gave.
   */
  #makeRoom(): void {
    this.#disk.giveUpReserve();
    if (!this.#tables) return;
    const tables = this.#tablesOf(this.#tables.db);
    this.#tables = tables;
    tables.db.pragma(`wal_autocheckpoint = ${checkpoint_pages_when_full}`);
    emptyLog(tables.db);
    const { bytes } = tables.retention.sizeOf(this.#transactions.accounts.begin().changes);
    const goal = { rows: Number.POSITIVE_INFINITY, bytes: Math.max(0, bytes - make_room_bytes) };
    const makeRoom: Work<void> = ({ retention }, changes) => retention.evict(changes, goal);
    this.#transactions.run(tables, makeRoom, { epoch: this.#epoch, shortage: 'none' });
    emptyLog(tables.db);
  }

  /** Ends a handle that is of no use any more; the next request opens a new one. */
  #letGo(): void {
    const tables = this.#tables;
    this.#tables = undefined;
    try {
      tables?.db.close();
    } catch (error) {
      if (!diskFault(error)) throw error;
    }
  }

  // --- Opening --------------------------------------------------------------------------------------------------

  #opened(): Tables {
    this.#tables ??= this.#open();
    return this.#tables;
  }

  #open(): Tables {
    const tables = this.#openCurrent();
    try {
      const epoch = this.#epoch || this.#chooseEpoch(tables);
      enterWithNotes(tables, this.#options, () => this.#enterEpoch(tables, epoch));
      this.#epoch = epoch;
      this.#epoch_memory.keep(epoch);
      this.#in_flight.rewind();
      this.#transactions.opened(tables, epoch);
      if (!this.#was_opened) this.#found = foundIn(tables);
      this.#was_opened = true;
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
    const { db, salvage } = openOwn(
      this.#options,
      () => this.#epoch || this.#epoch_choice.unsure(peekEpoch(file)),
    );
    if (salvage) this.#salvage = salvage;
    return this.#tablesOf(db);
  }

  #tablesOf(db: Handle): Tables {
    return openTables(db, this.#options.limits, this.#in_flight, this.#clock);
  }

  /** Replaces the damaged file by a new one with what can be read of it. */
  #beginAgain(cause: string): void {
    const depth = this.#tables && this.#transactions.accounts.depth;
    this.#letGo();
    this.#disk.giveUpReserve();
    const { limits } = this.#options;
    const { salvage, lost } = replaceDamaged({
      options: this.#options,
      cause,
      depth,
      open: (path) => this.#tablesOf(openFile(path, limits.bytes_max)),
      epochAfter: (saved) => this.#epoch || this.#epochAfter(saved),
    });
    this.#disk.look();
    this.#disk.keepReserve();
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
    if (this.#disk.shortage !== 'full') db.pragma(`wal_autocheckpoint = ${checkpoint_pages}`);
    const free_pages = Number(db.pragma('freelist_count', { simple: true }));
    if (free_pages > free_pages_max) db.pragma(`incremental_vacuum(${vacuum_pages})`);
  }
}
