/** The store: what the main thread may ask of the buffer file. Runs in the worker thread, and in tests without one. */
import { packHistory } from '../../contract/batch/pack.ts';
import { laneRules, lanes, type Lane } from '../../contract/lanes.ts';
import { StorageUnavailable } from '../../errors.ts';
import { AckRanges } from '../ack-ranges.ts';
import { store_clock, type StoreClock } from './ages.ts';
import { BufferFile } from './file/buffer-file.ts';
import { perLane, type Changes } from './changes.ts';
import { InFlightRows } from './in-flight-rows.ts';
import {
  nothing_left,
  quarantine_page_rows,
  type CloudAck,
  type Confirmed,
  type Done,
  type Found,
  type Inspection,
  type JournalEntry,
  type Opened,
  type QuarantinedMessage,
  type QuarantinedRow,
  type RowRef,
  type OpenOptions,
  type StoreOptions,
  type StoreRequests,
  type Taken,
  type TakeRequest,
  type Work,
} from '../protocol.ts';
import type { QuarantineOutline } from './tables/quarantine.ts';
import type { Row, RowId } from '../row.ts';
import { readMeta, writeMeta } from './schema.ts';
import type { Tables } from './tables/tables.ts';
import { takeRows, type PackRows } from './taking.ts';
import { trimUntracked, untrackedAmong } from './untracked.ts';

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
    for (const ref of work.unconfirmed) this.#in_flight.waitForCloud(ref, now_ms);
    for (const token of work.unconfirmed_batches)
      this.#endBatch(token, (lane, id) => this.#in_flight.waitForCloud({ lane, id }, now_ms));
    for (const { lane, id } of [...work.delivered, ...work.superseded]) this.#in_flight.gone(lane, id);
    for (const { row } of work.quarantined) this.#in_flight.gone(row.lane, row.id);
    for (const token of work.delivered_batches) this.#in_flight.dropBatch(token);
    for (const { lane, id } of this.#unreadable.splice(0)) this.#in_flight.gone(lane, id);
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
    const { is_known, is_first, untracked } = this.#file.read((tables) => ({
      is_known: tables.epochs.knows(epoch),
      is_first: readMeta(tables.db, 'cloud_acks') !== 1,
      untracked: untrackedAmong(acked, tables, this.#in_flight),
    }));
    const refs = is_known ? [...this.#in_flight.unconfirmed((id) => acked.has(id)), ...untracked] : [];
    if (refs.length > 0 || is_first) {
      // A power cut would only undo it: what was removed is sent once more.
      this.#file.write(
        (tables, changes) => {
          for (const lane of lanes) tables.lane(lane).removeRows(idsOf(lane, refs), 'delivered', changes);
          if (is_first) writeMeta(tables.db, 'cloud_acks', 1);
        },
        is_first ? 'now' : 'soon',
      );
    }
    for (const { lane, id } of refs) this.#in_flight.gone(lane, id);
    if (untracked.length > 0) this.#file.read((tables) => trimUntracked(tables, this.#in_flight));
    const impossible = is_known ? acked.impossible : ranges.length;
    return {
      ...this.#done(),
      released: refs.length,
      ignored:
        impossible > 0 ? { ranges: impossible, why: is_known ? 'never_sent' : 'unknown_epoch' } : undefined,
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
    return this.#eachQuarantined(ids, (outline, { quarantine, insert }, changes) => {
      const row = quarantine.takeOut(outline);
      return row !== undefined && insert(row, changes);
    });
  }

  discardQuarantined(ids: readonly RowId[] | undefined): Done {
    return this.#eachQuarantined(ids, (outline, { quarantine }, changes) => {
      quarantine.giveUp(outline, 'discarded', changes);
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
    for (const lane of lanes) {
      const table = tables.lane(lane);
      const delivered = idsOf(lane, work.delivered);
      const outdated = laneRules[lane].retain ? delivered.flatMap((id) => table.olderThan(id)) : [];
      table.removeRows(delivered, 'delivered', changes);
      // A value that the main thread holds may be with the broker, too: it stays until that is known, or until a restart.
      const superseded = outdated.filter((id) => !isHeld(lane, id) && !delivered.includes(id));
      table.removeRows(
        superseded.sort((a, b) => a - b),
        'superseded',
        changes,
      );
      for (const batch of batches) if (batch.lane === lane) table.removeRows(batch.ids, 'delivered', changes);
      table.removeRows(
        idsOf(
          lane,
          refused.map(({ row }) => row),
        ),
        'quarantined',
        changes,
      );
      table.removeRows(idsOf(lane, work.superseded), 'superseded', changes);
      table.removeRows(idsOf(lane, this.#unreadable), 'unreadable', changes);
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
  const only_removes = [rows, superseded, quarantined, journal, dropped, reported].every(
    (part) => part.length === 0,
  );
  return only_removes ? 'soon' : 'now';
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
