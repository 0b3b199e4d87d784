/**
 * The buffer file as something that can break: opens it, runs transactions on it, and when the disk or the file fails
 * makes room, opens it again, or begins a new file with what the damaged one still holds.
 */
import { existsSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { lanes } from '../contract/lanes.ts';
import { StorageUnavailable } from '../errors.ts';
import type { StoreClock } from './ages.ts';
import { Changes, no_depth, Removals, type Depth } from './changes.ts';
import { moveAside } from './damaged-file.ts';
import { diskFault, type DiskFault } from './disk-fault.ts';
import { Disk, type Shortage } from './disk.ts';
import { firstEpoch, unsureEpoch } from './epochs.ts';
import type { Hands } from './hands.ts';
import type { DiskHealth, Removal, Salvage, StoreOptions } from './protocol.ts';
import { peekEpoch } from './peek.ts';
import { finishReplacement, replaceDamaged } from './replacement.ts';
import type { Salvaged } from './salvage.ts';
import { checkpoint_pages, FileTooNew, openFile, type Handle } from './schema.ts';
import { openTables, type Tables } from './tables.ts';

/** Given up at once when the disk is full, beside what the commit itself needs. */
const make_room_bytes = 512 * 1024;
/** Free pages are given back to the file system beyond this, a few at a time. */
const free_pages_max = 16_384;
const vacuum_pages = 256;
const checkpoint_pages_when_full = 100;

export class BufferFile {
  readonly #options: StoreOptions;
  readonly #hands: Hands;
  readonly #clock: StoreClock;
  readonly #disk: Disk;
  /** Removals that nobody was told of yet. */
  readonly #untold = new Removals();
  /** Undefined while the file cannot be used. */
  #tables: Tables | undefined;
  #depth: Depth = no_depth;
  /** 0 until it is known. */
  #epoch = 0;
  #salvage: Salvage | undefined;
  /** What was wrong the last time; undefined while all is well. */
  #trouble: DiskHealth | undefined;
  #closed = false;

  /** Opens the file. A disk that fails is not an error: requests are refused until it does not. */
  constructor(options: StoreOptions, hands: Hands, clock: StoreClock) {
    this.#options = options;
    this.#hands = hands;
    this.#clock = clock;
    this.#disk = new Disk(options.file, options.limits.free_bytes_min, clock.mono);
    if (!existsSync(dirname(options.file))) {
      throw new StorageUnavailable(
        `${dirname(options.file)} does not exist: create the folder of the buffer file`,
      );
    }
    try {
      this.#guarded(() => this.#lookAfter());
    } catch (error) {
      if (!(error instanceof StorageUnavailable)) throw error;
      this.#epoch = unsureEpoch(peekEpoch(options.file), clock.wall());
    }
  }

  get epoch(): number {
    return this.#epoch;
  }

  get depth(): Depth {
    return this.#depth;
  }

  /** Undefined while the file cannot be used. */
  get tables(): Tables | undefined {
    return this.#tables;
  }

  takeUntold(): readonly Removal[] {
    return this.#untold.takeAll();
  }

  /** What happened to a damaged file since the last call. */
  takeSalvage(): Salvage | undefined {
    const happened = this.#salvage;
    this.#salvage = undefined;
    return happened;
  }

  health(): DiskHealth {
    return this.#trouble ?? this.#disk.health();
  }

  /** The database and its log. */
  bytes(): number {
    const { file } = this.#options;
    return [file, `${file}-wal`].reduce(
      (sum, path) => sum + (statSync(path, { throwIfNoEntry: false })?.size ?? 0),
      0,
    );
  }

  freeBytes(): number {
    return this.#disk.look();
  }

  /** Reads. Throws `StorageUnavailable`. */
  read<T>(work: (tables: Tables) => T): T {
    return this.#guarded(work);
  }

  /** Runs one durable transaction and keeps the buffer within its limits. Throws `StorageUnavailable`. */
  write<T>(work: (tables: Tables, changes: Changes) => T): T {
    return this.#guarded((tables) => {
      if (this.#disk.isTimeToLook()) this.#lookAfter();
      return this.#transact(tables, work, this.#disk.shortage);
    });
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

  #transact<T>(tables: Tables, work: (tables: Tables, changes: Changes) => T, shortage: Shortage): T {
    const changes = new Changes(this.#depth);
    const before = { rows: changes.rows, bytes: changes.bytes };
    const value = tables.db.transaction(() => {
      const worked = work(tables, changes);
      tables.retention.keep(changes, before, shortage);
      tables.drops.note(changes.removals());
      tables.writeDepth(changes);
      if (changes.rows === 0) tables.channels.tidy();
      return worked;
    })();
    this.#depth = changes.depth();
    for (const removal of changes.removals()) this.#untold.add(removal);
    return value;
  }

  // --- When something fails -------------------------------------------------------------------------------------

  /** Runs `work`; after a failure mends what can be mended and runs it once more. */
  #guarded<T>(work: (tables: Tables) => T): T {
    if (this.#closed) throw new StorageUnavailable('the buffer is closed');
    try {
      const value = this.#tryTwice(work);
      this.#trouble = undefined;
      return value;
    } catch (error) {
      const fault = diskFault(error);
      this.#afterRollback(fault);
      if (!fault) throw error;
      const detail = `${fault.sentence}: ${this.#options.file}`;
      this.#trouble = { state: fault.kind === 'full' ? 'full' : 'failing', detail };
      throw new StorageUnavailable(detail, { cause: error });
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
    if (fault?.kind === 'failing' || fault?.kind === 'damaged') return this.#letGo();
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
      case 'failing':
      case 'busy':
        return this.#letGo();
    }
  }

  /**
   * The reserve gives room to delete with. The log is not cut down: its blocks are ours, while free ones may be taken by
   * whoever filled the disk. From now on it is emptied early, so that it never needs more than the reserve gave.
   */
  #makeRoom(): void {
    this.#disk.giveUpReserve();
    if (!this.#tables) return;
    const tables = this.#tablesOf(this.#tables.db);
    this.#tables = tables;
    tables.db.pragma(`wal_autocheckpoint = ${checkpoint_pages_when_full}`);
    emptyLog(tables.db);
    const goal_bytes = lanes.reduce((sum, lane) => sum + this.#depth[lane].bytes, -make_room_bytes);
    const goal = { rows: Number.POSITIVE_INFINITY, bytes: Math.max(0, goal_bytes) };
    this.#transact(tables, ({ retention }, changes) => retention.evict(changes, goal), 'none');
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
      const epoch = this.#epoch || (tables.epochs.last() ?? firstEpoch(this.#clock.wall()) - 1) + 1;
      tables.db.transaction(() => tables.epochs.begin(epoch, this.#options.boot_id))();
      this.#epoch = epoch;
      this.#depth = tables.readDepth();
      this.#hands.rewind();
      return tables;
    } catch (error) {
      tables.db.close();
      throw error;
    }
  }

  #openCurrent(): Tables {
    const { file, limits } = this.#options;
    finishReplacement(file);
    try {
      return this.#tablesOf(openFile(file, limits.bytes_max));
    } catch (error) {
      if (!(error instanceof FileTooNew)) throw error;
      const seen = this.#epoch || unsureEpoch(peekEpoch(file), this.#clock.wall());
      const moved_to = moveAside(file, 'too-new');
      this.#salvage = { cause: error.message, moved_to, rows_saved: 0, rows_lost: null };
      const tables = this.#tablesOf(openFile(file, limits.bytes_max));
      tables.db.transaction(() => tables.epochs.begin(seen, this.#options.boot_id))();
      return tables;
    }
  }

  #tablesOf(db: Handle): Tables {
    return openTables(db, this.#options.limits, this.#hands, this.#clock);
  }

  /** Replaces the damaged file by a new one with what can be read of it. */
  #beginAgain(cause: string): void {
    const depth = this.#tables && this.#depth;
    this.#letGo();
    this.#disk.giveUpReserve();
    const { file, limits, boot_id } = this.#options;
    const { salvage, lost } = replaceDamaged({
      file,
      cause,
      depth,
      boot_id,
      open: (path) => this.#tablesOf(openFile(path, limits.bytes_max)),
      epochAfter: (saved) => this.#epoch || this.#epochAfter(saved),
    });
    this.#disk.look();
    this.#disk.keepReserve();
    this.#salvage = salvage;
    for (const removal of lost) this.#untold.add(removal);
  }

  #epochAfter({ epoch, epoch_seen }: Salvaged): number {
    if (epoch === undefined) return unsureEpoch(epoch_seen, this.#clock.wall());
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

/** Writes the log back so that its blocks are used again. On a full disk that may fail, and the log still have room. */
function emptyLog(db: Handle): void {
  try {
    db.pragma('wal_checkpoint(RESTART)');
  } catch (error) {
    if (diskFault(error)?.kind !== 'full') throw error;
  }
}
