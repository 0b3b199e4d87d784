/** The store: what the main thread may ask of the buffer file. Runs in the worker thread, and in tests without one. */
import { lanes, type Lane } from '../contract/lanes.ts';
import { StorageUnavailable } from '../errors.ts';
import { store_clock, type StoreClock } from './ages.ts';
import { BufferFile } from './buffer-file.ts';
import { perLane, type Changes } from './changes.ts';
import { Hands } from './hands.ts';
import type {
  Done,
  Inspection,
  JournalEntry,
  Opened,
  RowRef,
  StoreOptions,
  StoreRequests,
  Taken,
  TakeRequest,
  Work,
} from './protocol.ts';
import { rowId, seq_max, type Row, type RowId } from './row.ts';
import { readMeta, writeMeta } from './schema.ts';
import type { Tables } from './tables.ts';
import { takeRows } from './taking.ts';

/**
 * Opens the buffer file. A disk that fails makes a store that refuses requests until the disk is well again; only a
 * missing folder throws `StorageUnavailable`.
 */
export function openStore(
  options: StoreOptions,
  clock: StoreClock = store_clock,
): { readonly store: Store; readonly opened: Opened } {
  const hands = new Hands();
  const file = new BufferFile(options, hands, clock);
  return { store: new Store(options, file, hands, clock), opened: describeOpened(file) };
}

function describeOpened(file: BufferFile): Opened {
  const records = readRecords(file);
  // A damaged file was perhaps replaced just now: what was lost is among the drops, and not to be told twice.
  file.takeUntold();
  return {
    ...records,
    epoch: file.epoch,
    depth: file.depth,
    salvage: file.takeSalvage(),
    health: file.health(),
  };
}

function readRecords(file: BufferFile): Omit<Opened, 'epoch' | 'depth' | 'salvage' | 'health'> {
  try {
    return file.read(({ db, drops, journal, announced, quarantine }) => ({
      drops: drops.list(),
      open_tasks: journal.open(),
      announced: announced.list(),
      quarantined_rows: quarantine.count,
      cloud_acks: readMeta(db, 'cloud_acks') === 1,
    }));
  } catch (error) {
    if (!(error instanceof StorageUnavailable)) throw error;
    return { drops: [], open_tasks: [], announced: [], quarantined_rows: 0, cloud_acks: false };
  }
}

/** Every method may throw `StorageUnavailable`; then nothing of the request has happened. */
export class Store implements StoreRequests {
  readonly #options: StoreOptions;
  readonly #file: BufferFile;
  readonly #hands: Hands;
  readonly #clock: StoreClock;
  /** Rows that turned out to be unreadable: the next commit removes them. */
  readonly #unreadable: RowRef[] = [];

  constructor(options: StoreOptions, file: BufferFile, hands: Hands, clock: StoreClock) {
    this.#options = options;
    this.#file = file;
    this.#hands = hands;
    this.#clock = clock;
  }

  commit(work: Work): Done {
    const inserted = this.#file.write((tables, changes) => this.#apply(work, tables, changes));
    const held = new Set(work.held);
    for (const { lane, id } of inserted) if (!held.has(id)) this.#hands.free(lane, id);
    for (const { lane, id } of work.rows) if (held.has(id)) this.#hands.hold(lane, id);
    const now_ms = this.#clock.mono();
    for (const ref of work.unconfirmed) this.#hands.waitForCloud(ref, now_ms);
    for (const token of work.unconfirmed_batches)
      this.#endBatch(token, (lane, id) => this.#hands.waitForCloud({ lane, id }, now_ms));
    for (const { lane, id } of work.delivered) this.#hands.gone(lane, id);
    for (const { row } of work.quarantined) this.#hands.gone(row.lane, row.id);
    for (const token of work.delivered_batches)
      this.#endBatch(token, (lane, id) => this.#hands.gone(lane, id));
    for (const { lane, id } of this.#unreadable.splice(0)) this.#hands.gone(lane, id);
    return this.#done();
  }

  take(request: TakeRequest): Taken {
    if (this.#hands.mustWait(request.lane)) return { rows: [], batch: undefined, drained: true };
    const { taken, unreadable } = this.#file.read((tables) => takeRows(request, tables, this.#hands));
    for (const id of unreadable) this.#unreadable.push({ lane: request.lane, id });
    return taken;
  }

  release({
    rows,
    batches,
  }: {
    readonly rows: readonly RowRef[];
    readonly batches: readonly number[];
  }): void {
    for (const { lane, id } of rows) this.#hands.free(lane, id);
    for (const token of batches) this.#endBatch(token, (lane, id) => this.#hands.free(lane, id));
  }

  releaseAll(): void {
    this.#hands.freeAll();
  }

  resendUnconfirmed(older_than_ms: number): number {
    return this.#hands.resend(this.#clock.mono() - older_than_ms);
  }

  confirm({
    epoch,
    ranges,
  }: {
    readonly epoch: number;
    readonly ranges: readonly (readonly [number, number])[];
  }): Done {
    const spans = ranges
      .filter(([lo, hi]) => lo <= hi && hi >= 0 && lo < seq_max)
      .map(
        ([lo, hi]) =>
          [rowId({ epoch, seq: Math.max(0, lo) }), rowId({ epoch, seq: Math.min(hi, seq_max - 1) })] as const,
      );
    this.#file.write((tables, changes) => {
      for (const lane of lanes)
        for (const [lo, hi] of spans) tables.lane(lane).removeSpan(lo, hi, 'delivered', changes);
      if (readMeta(tables.db, 'cloud_acks') !== 1) writeMeta(tables.db, 'cloud_acks', 1);
    });
    for (const [lo, hi] of spans) this.#hands.confirmed(lo, hi);
    return this.#done();
  }

  admit(entry: JournalEntry): JournalEntry | undefined {
    const known = this.findTask(entry.task_id);
    if (known) return known;
    this.#file.write(({ journal }) => {
      journal.put(entry);
      journal.trim();
    });
    return undefined;
  }

  findTask(task_id: string): JournalEntry | undefined {
    return this.#file.read(({ journal }) => journal.find(task_id));
  }

  listTasks(limit: number): readonly JournalEntry[] {
    return this.#file.read(({ journal }) => journal.list(limit));
  }

  setClockOffset(offset_ms: number): void {
    this.#file.write(({ epochs }) => epochs.setOffset(offset_ms, this.#file.epoch, this.#options.boot_id));
  }

  inspect(): Inspection {
    return this.#file.read((tables) => ({
      lanes: perLane((lane) => ({ ...this.#file.depth[lane], oldest_ms: oldest(tables, lane) })),
      quarantine: tables.quarantine.list(),
      file_bytes: this.#file.bytes(),
      disk_free_bytes: this.#file.freeBytes(),
    }));
  }

  retryQuarantined(ids: readonly RowId[] | undefined): Done {
    const back = this.#file.write(({ quarantine, insert }, changes) =>
      quarantine.takeOut(ids).filter((row) => insert(row, changes)),
    );
    for (const { lane, id } of back) this.#hands.free(lane, id);
    return this.#done();
  }

  discardQuarantined(ids: readonly RowId[] | undefined): Done {
    this.#file.write(({ quarantine }, changes) => quarantine.discard(ids, changes));
    return this.#done();
  }

  close(): void {
    this.#file.close();
  }

  /** Answers the rows that are new in the buffer. */
  #apply(work: Work, tables: Tables, changes: Changes): readonly Row[] {
    const inserted = work.rows.filter((row) => tables.insert(row, changes));
    const refused = work.quarantined.filter(({ row }) => tables.lane(row.lane).has(row.id));
    const batches = work.delivered_batches.flatMap((token) => this.#hands.batch(token) ?? []);
    for (const lane of lanes) {
      const table = tables.lane(lane);
      table.removeRows(idsOf(lane, work.delivered), 'delivered', changes);
      for (const batch of batches) if (batch.lane === lane) table.removeRows(batch.ids, 'delivered', changes);
      table.removeRows(
        idsOf(
          lane,
          refused.map(({ row }) => row),
        ),
        'quarantined',
        changes,
      );
      table.removeRows(idsOf(lane, this.#unreadable), 'unreadable', changes);
    }
    tables.quarantine.put(refused, changes);
    for (const entry of work.journal) tables.journal.put(entry);
    if (work.journal.length > 0) tables.journal.trim();
    tables.drops.reported(work.reported);
    return inserted;
  }

  #endBatch(token: number, each: (lane: Lane, id: RowId) => void): void {
    const batch = this.#hands.batch(token);
    if (!batch) return;
    for (const id of batch.ids) each(batch.lane, id);
    this.#hands.dropBatch(token);
  }

  #done(): Done {
    return {
      depth: this.#file.depth,
      removed: this.#file.takeUntold(),
      quarantined_rows: this.#file.tables?.quarantine.count ?? 0,
      health: this.#file.health(),
      salvage: this.#file.takeSalvage(),
    };
  }
}

/** Of one lane, rising. */
function idsOf(lane: Lane, refs: readonly RowRef[]): readonly RowId[] {
  return refs
    .filter((ref) => ref.lane === lane)
    .map(({ id }) => id)
    .sort((a, b) => a - b);
}

function oldest({ lane: table, epochs }: Tables, lane: Lane): number | null {
  const row = table(lane).oldest();
  return row ? epochs.timeOf({ id: row[0], time_ms: row[2], mono_ms: row[3] }).time_ms : null;
}
