/** The store: what the main thread may ask of the buffer file. Runs in the worker thread, and in tests without one. */
import { batch_items_max, packHistory } from '../../../contract/batch/pack.ts';
import { type Lane, laneRules, lanes } from '../../../contract/lanes.ts';
import { StorageUnavailable } from '../../../platform/errors.ts';
import { AckRanges } from '../ack-ranges.ts';
import { store_clock, type StoreClock } from './ages.ts';
import { BufferFile } from './file/buffer-file.ts';
import { type Changes, perLane } from './changes.ts';
import { InFlightRows } from './in-flight-rows.ts';
import {
  type CloudAck,
  type Confirmed,
  type Done,
  type Found,
  idsByLane,
  type Inspection,
  type JournalEntry,
  type LaneIds,
  nothing_left,
  type Opened,
  type OpenOptions,
  quarantine_page_rows,
  type QuarantinedMessage,
  type QuarantinedRow,
  type Removal,
  type RowRef,
  type StoreOptions,
  type StoreRequests,
  type Taken,
  type TakenRow,
  type TakeRequest,
  type Work,
} from '../protocol.ts';
import type { QuarantineOutline } from './tables/quarantine.ts';
import { type Row, type RowId, seq_max } from '../row.ts';
import { readMeta, writeMeta } from './schema.ts';
import type { Tables } from './tables/tables.ts';
import { BatchWriter } from '../../../contract/batch/writer.ts';
import type { Epochs } from './epochs.ts';
import type { StoredRow } from './tables/lane-table.ts';

/**
 * Opens the buffer file. A disk that fails makes a store that refuses requests until the disk is well again; only a
 * missing folder throws `StorageUnavailable`. `packRows` gives the payload of a batch; left out: compressed.
 */
export function openStore(
  options: OpenOptions,
  clock: StoreClock = store_clock,
  packRows: PackRows = packHistory,
): { readonly store: Store; readonly opened: Opened } {
  const in_flight = new InFlightRows(options.unconfirmed_max);
  const file = new BufferFile(options, in_flight, clock);
  return { store: new Store(options, file, { in_flight, clock, packRows }), opened: describeOpened(file) };
}

function describeOpened(file: BufferFile): Opened {
  const found = file.takeFound() ?? nothing_found;
  // A damaged file may have just been replaced: its lost rows are among the drops and must not be reported twice.
  file.takeUntold();
  return {
    ...found,
    epoch: file.epoch,
    epoch_wait_ms: file.epoch_wait_ms,
    machine_changed: file.machine_changed,
    depth: file.depth,
    quarantined_rows: file.quarantined_rows,
    salvage: file.takeSalvage(),
    health: file.health(),
  };
}

const nothing_found: Found = {
  drops: [],
  open_tasks: [],
  announced: [],
  cloud_acks: false,
  left: nothing_left,
  ended_tasks: { completed: 0, failed: 0 },
};

interface StoreParts {
  readonly in_flight: InFlightRows;
  readonly clock: StoreClock;
  readonly packRows: PackRows;
}

/** Every method may throw `StorageUnavailable`; then nothing of the request has happened. */
export class Store implements StoreRequests {
  readonly #options: StoreOptions;
  readonly #file: BufferFile;
  readonly #in_flight: InFlightRows;
  readonly #clock: StoreClock;
  readonly #packRows: PackRows;
  /** Rows that turned out to be unreadable: the next commit removes them. */
  readonly #unreadable: RowRef[] = [];

  constructor(options: StoreOptions, file: BufferFile, { in_flight, clock, packRows }: StoreParts) {
    this.#options = options;
    this.#file = file;
    this.#in_flight = in_flight;
    this.#clock = clock;
    this.#packRows = packRows;
  }

  commit(work: Work): Done {
    const held = new Set(work.held);
    const inserted = this.#file.commit(
      (tables, changes) => this.#apply(work, held, tables, changes),
      durabilityOf(work),
      {
        again: work.again === true,
        // The main thread has them in memory.
        found: (rows) => {
          for (const { lane, id } of rows) this.#in_flight.hold(lane, id);
        },
      },
    );
    for (const { lane, id } of inserted) if (!held.has(id)) this.#in_flight.free(lane, id);
    for (const { lane, id } of work.rows) if (held.has(id)) this.#in_flight.hold(lane, id);
    const now_ms = this.#clock.mono();
    for (const ref of refsIn(work.unconfirmed)) this.#in_flight.waitForCloud(ref, now_ms);
    for (const token of work.unconfirmed_batches)
      this.#endBatch(token, (lane, id) => this.#in_flight.waitForCloud({ lane, id }, now_ms));
    const quarantined = work.quarantined.map(({ row }) => row);
    const ended = [...refsIn(work.delivered), ...refsIn(work.superseded), ...quarantined];
    for (const { lane, id } of [...ended, ...this.#unreadable.splice(0)]) this.#in_flight.gone(lane, id);
    for (const token of work.delivered_batches) this.#in_flight.dropBatch(token);
    return this.#answer();
  }

  look(): Done {
    this.#file.read(() => undefined);
    return this.#answer();
  }

  take(request: TakeRequest): Taken {
    const { taken, unreadable } = this.#file.read((tables) =>
      takeRows(request, tables, this.#in_flight, this.#packRows),
    );
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
    for (const { lane, id } of rows) this.#in_flight.free(lane, id);
    for (const token of batches) this.#endBatch(token, (lane, id) => this.#in_flight.free(lane, id));
  }

  releaseAll(): void {
    this.#in_flight.freeAll();
  }

  resendUnconfirmed({ older_than_ms, lazy }: Parameters<StoreRequests['resendUnconfirmed']>[0]): number {
    const before_ms = this.#clock.mono() - older_than_ms;
    const freed = this.#in_flight.resend(before_ms, (lane) => lazy || laneRules[lane].durability === 'sync');
    return freed > 0 || lazy ? freed : this.#in_flight.resendOldest(before_ms);
  }

  confirm({ epoch, ranges, last_seq }: CloudAck): Confirmed {
    const acked = new AckRanges(epoch, ranges, last_seq);
    const { isKnown, is_first, untracked } = this.#file.read((tables) => ({
      isKnown: tables.epochs.knows(epoch),
      is_first: readMeta(tables.db, 'cloud_acks') !== 1,
      untracked: untrackedAmong(acked, tables, this.#in_flight),
    }));
    const refs = isKnown ? [...this.#in_flight.unconfirmed((id) => acked.has(id)), ...untracked] : [];
    if (refs.length > 0 || is_first) {
      // A power cut would only undo it: what was removed is sent once more.
      this.#file.write(
        (tables, changes) => {
          for (const [lane, ids] of idsByLane(refs))
            tables.lane(lane).removeRows(rising(ids), 'delivered', changes);
          if (is_first) writeMeta(tables.db, 'cloud_acks', 1);
        },
        is_first ? 'now' : 'soon',
      );
    }
    for (const { lane, id } of refs) this.#in_flight.gone(lane, id);
    if (untracked.length > 0) this.#file.read((tables) => trimUntracked(tables, this.#in_flight));
    const impossible = isKnown ? acked.impossible : ranges.length;
    return {
      ...this.#done(),
      released: refs.length,
      ignored:
        impossible > 0 ? { ranges: impossible, why: isKnown ? 'never_sent' : 'unknown_epoch' } : undefined,
    };
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

  beginEpoch(min: number): number {
    return this.#file.beginEpoch(min);
  }

  setClockOffset(offset_ms: number): void {
    this.#file.write(({ epochs }) => epochs.setOffset(offset_ms, this.#file.epoch, this.#options.boot_id));
  }

  inspect(): Inspection {
    return this.#file.read((tables) => ({
      lanes: perLane((lane) => ({ ...this.#file.depth[lane], oldest_ms: oldest(tables, lane) })),
      file_bytes: this.#file.bytes(),
      disk_free_bytes: this.#file.freeBytes(),
    }));
  }

  listQuarantined(after: RowId): readonly QuarantinedRow[] {
    return this.#file.read(({ quarantine }) => quarantine.list(after, quarantine_page_rows));
  }

  findQuarantined(id: RowId): QuarantinedMessage | undefined {
    return this.#file.read(({ quarantine }) => quarantine.find(id));
  }

  retryQuarantined(ids: readonly RowId[] | undefined): Done {
    return this.#eachQuarantined(ids, (outline, tables, changes) => {
      const row = tables.quarantine.withdraw(outline);
      return row !== undefined && tables.insert(row, changes);
    });
  }

  discardQuarantined(ids: readonly RowId[] | undefined): Done {
    return this.#eachQuarantined(ids, (outline, { quarantine }, changes) => {
      quarantine.discard(outline, 'discarded', changes);
      return false;
    });
  }

  close(): void {
    this.#file.close();
  }

  /** Answers the rows that are new in the buffer. */
  #apply(work: Work, held: ReadonlySet<RowId>, tables: Tables, changes: Changes): readonly Row[] {
    const isHeld = (lane: Lane, id: RowId): boolean => held.has(id) || this.#in_flight.isHeld(lane, id);
    const inserted = work.rows.filter((row) => tables.insert(row, changes, isHeld));
    const refused = work.quarantined.filter(({ row }) => tables.lane(row.lane).has(row.id));
    const batches = work.delivered_batches.flatMap((token) => this.#in_flight.batch(token) ?? []);
    const quarantined = idsByLane(refused.map(({ row }) => row));
    const unreadable = idsByLane(this.#unreadable);
    for (const lane of lanes) {
      const table = tables.lane(lane);
      const remove = (ids: readonly RowId[] | undefined, why: Removal['why']): void => {
        if (ids) table.removeRows(rising(ids), why, changes);
      };
      const delivered = work.delivered.get(lane) ?? [];
      const outdated = laneRules[lane].retain ? delivered.flatMap((id) => table.olderThan(id)) : [];
      remove(delivered, 'delivered');
      // A value that the main thread holds may be with the broker, too: it stays until that is known, or until a restart.
      remove(
        outdated.filter((id) => !isHeld(lane, id) && !delivered.includes(id)),
        'superseded',
      );
      for (const batch of batches) if (batch.lane === lane) table.removeRows(batch.ids, 'delivered', changes);
      remove(quarantined.get(lane), 'quarantined');
      remove(work.superseded.get(lane), 'superseded');
      remove(unreadable.get(lane), 'unreadable');
    }
    tables.quarantine.put(refused, changes);
    for (const entry of work.journal) tables.journal.put(entry);
    if (work.journal.length > 0) tables.journal.trim();
    for (const drop of work.dropped) tables.drops.add(drop);
    tables.drops.reported(work.reported);
    tables.totals.add('delivered', work.delivered_from_memory);
    return inserted;
  }

  /**
   * Runs `work` for quarantined rows, all of them when `ids` is undefined, in transactions of bounded size; a
   * refused row ends it. `work` returns whether the row is back in its lane.
   */
  #eachQuarantined(
    ids: readonly RowId[] | undefined,
    work: (outline: QuarantineOutline, tables: Tables, changes: Changes) => boolean,
  ): Done {
    const sorted = ids && [...new Set(ids)].sort((a, b) => a - b);
    let after: RowId = 0;
    for (;;) {
      try {
        const part = this.#file.read(({ quarantine }) => quarantine.next(after, sorted));
        const last = part.at(-1);
        if (!last) break;
        const back = this.#file.write((tables, changes) =>
          part.filter((outline) => work(outline, tables, changes)),
        );
        for (const { lane, id } of back) this.#in_flight.free(lane, id);
        after = last.id;
      } catch (error) {
        if (after === 0 || !(error instanceof StorageUnavailable)) throw error;
        break;
      }
    }
    return this.#done();
  }

  #endBatch(token: number, each: (lane: Lane, id: RowId) => void): void {
    const batch = this.#in_flight.batch(token);
    if (!batch) return;
    for (const id of batch.ids) each(batch.lane, id);
    this.#in_flight.dropBatch(token);
  }

  /** With what the caller logs. */
  #answer(): Done {
    return { ...this.#done(), found: this.#file.takeFound(), salvage: this.#file.takeSalvage() };
  }

  #done(): Done {
    return {
      depth: this.#file.depth,
      removed: this.#file.takeUntold(),
      quarantined_rows: this.#file.quarantined_rows,
      health: this.#file.health(),
    };
  }
}

/** Whether a power cut would only undo it: what was delivered is sent once more. */
function durabilityOf({ rows, superseded, quarantined, journal, dropped, reported }: Work): 'now' | 'soon' {
  const parts = [rows, quarantined, journal, dropped, reported];
  return superseded.size === 0 && parts.every((part) => part.length === 0) ? 'soon' : 'now';
}

function* refsIn(rows: LaneIds): Generator<RowRef> {
  for (const [lane, ids] of rows) for (const id of ids) yield { lane, id };
}

function rising(ids: readonly RowId[]): readonly RowId[] {
  return ids.toSorted((a, b) => a - b);
}

function oldest(tables: Tables, lane: Lane): number | null {
  const row = tables.lane(lane).oldest();
  return row ? tables.epochs.timeOf({ id: row[0], time_ms: row[2], mono_ms: row[3] }).time_ms : null;
}

/** Gives the payload of a batch. */
type PackRows = (rows: BatchWriter) => Uint8Array;

interface TakenRows {
  readonly taken: Taken;
  /** Rows that can never be sent: their channel is lost, or their body is no JSON. */
  readonly unreadable: readonly RowId[];
}

/**
 * Takes the next rows of a lane for sending, one by one or packed into a compressed batch of the contract, and marks them as held by
 * the main thread; also the unreadable ones of a damaged file, which are answered to be removed. Throws what SQLite throws; then
 * nothing was noted.
 */
function takeRows(
  request: TakeRequest,
  tables: Tables,
  in_flight: InFlightRows,
  packRows: PackRows,
): TakenRows {
  const { lane } = request;
  const writer = request.form === 'batch' ? new BatchWriter() : undefined;
  const rows: TakenRow[] = [];
  const ids: RowId[] = [];
  const unreadable: RowId[] = [];
  const isTaken = (row: StoredRow): boolean => {
    const [id, topic, time_ms, mono_ms, body] = row;
    const channel = tables.channels.channelOf(topic);
    if (channel === undefined) return false;
    if (writer) return isPacked(row, channel, tables.epochs, writer);
    rows.push(tables.epochs.correct({ id, lane, channel, time_ms, mono_ms, body }));
    return true;
  };
  const { cursor, drained } = scan(request, tables, in_flight, (row) => {
    (isTaken(row) ? ids : unreadable).push(row[0]);
  });
  const payload = writer && ids.length > 0 ? packRows(writer) : undefined;
  in_flight.advance(lane, cursor);
  for (const id of unreadable) in_flight.hold(lane, id);
  for (const { id } of rows) in_flight.hold(lane, id);
  if (!payload) return { unreadable, taken: { rows, batch: undefined, drained } };
  const [lo, hi] = [ids[0] ?? 0, ids.at(-1) ?? 0];
  const token = in_flight.addBatch({ lane, ids });
  const batch = { token, lane, rows: ids.length, payload, lo, hi };
  return { unreadable, taken: { rows, batch, drained } };
}

/** Adds a row to the batch; false: it is no JSON, which must not spoil the batch. */
function isPacked(
  [id, , stored_ms, mono_ms, data]: StoredRow,
  channel: string,
  epochs: Epochs,
  writer: BatchWriter,
): boolean {
  const epoch = Math.floor(id / seq_max);
  const { time_ms, time_quality } = epochs.timeOf({ id, time_ms: stored_ms, mono_ms });
  try {
    writer.add({ channel, epoch, seq: id - epoch * seq_max, time_ms, time_quality, data });
    return true;
  } catch (error) {
    if (error instanceof SyntaxError) return false;
    throw error;
  }
}

/** Calls `take` for the next rows that may be sent, within the limits of the request. */
function scan(
  { lane, form, rows_max, bytes_max }: TakeRequest,
  tables: Tables,
  in_flight: InFlightRows,
  take: (row: StoredRow) => void,
): { readonly cursor: RowId; readonly drained: boolean } {
  const most = Math.max(1, form === 'batch' ? Math.min(rows_max, batch_items_max) : rows_max);
  const table = tables.lane(lane);
  const isFree = in_flight.freeIn(lane);
  // After a restart the lane may hold older values of a retained topic whose newest one was published and not acknowledged.
  // They are skipped; the delivery of the newest removes them.
  const { retain } = laneRules[lane];
  let [rows, bytes] = [0, 0];
  let cursor = in_flight.cursor(lane);
  for (;;) {
    // Reads one row beyond the limit, to see whether the lane is drained.
    const page_rows = Math.min(scan_rows, most - rows + 1);
    const page = table.after(cursor, page_rows);
    for (const row of page) {
      const [id, topic] = row;
      if (isFree(id) && !(retain && table.isOutdated(topic, id))) {
        bytes += row[4].length;
        if (rows >= most || (rows > 0 && bytes > bytes_max)) return { cursor, drained: false };
        take(row);
        rows += 1;
      }
      cursor = id;
    }
    if (page.length < page_rows) return { cursor, drained: true };
  }
}
/** Rows read at once: more are hardly faster, and a row may be large. */
const scan_rows = 64;

/** Released by one acknowledgement at most, so that no commit takes long; the next one continues. */
const rows_max = 20_000;
const page_rows = 1_000;

/**
 * Finds rows that the broker acknowledged and that are too many to be tracked one by one.
 * Those among them that the cloud has acknowledged.
 */
function untrackedAmong(acked: AckRanges, tables: Tables, in_flight: InFlightRows): readonly RowRef[] {
  const refs: RowRef[] = [];
  for (const lane of lanes) {
    const span = in_flight.untracked(lane);
    for (const named of span ? acked.within(...span) : []) {
      for (const id of freeRows(lane, named, tables, in_flight)) {
        if (refs.length >= rows_max) return refs;
        refs.push({ lane, id });
      }
    }
  }
  return refs;
}

/** Forgets the spans of which nothing is left on disk. */
function trimUntracked(tables: Tables, in_flight: InFlightRows): void {
  for (const lane of lanes) {
    const span = in_flight.untracked(lane);
    if (!span) continue;
    const [first] = freeRows(lane, span, tables, in_flight);
    in_flight.untrackedLeft(lane, first);
  }
}

function* freeRows(
  lane: Lane,
  [from, to]: readonly [from: RowId, to: RowId],
  tables: Tables,
  in_flight: InFlightRows,
): Generator<RowId> {
  let after = from - 1;
  for (;;) {
    const page = tables.lane(lane).outline(after, to, page_rows);
    for (const [id] of page) if (in_flight.isFree(lane, id)) yield id;
    if (page.length < page_rows) return;
    after = page.at(-1)?.[0] ?? to;
  }
}
