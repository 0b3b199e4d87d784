/**
 * What crosses between the main thread and the thread that owns SQLite: requests and replies are plain data, many rows
 * at a time. `Store` (store/store.ts) implements the requests, `StoreClient` (live/store-client.ts) sends them.
 */
import type { TimeQuality } from '../../contract/envelope.ts';
import type { Lane } from '../../contract/lanes.ts';
import type { StorageFault } from '../../platform/errors.ts';
import { positionOf, type Row, type RowId } from './row.ts';

/** Why a message left the buffer without being delivered. */
export type DropReason =
  | 'evicted' // the buffer was full and this was the oldest of the least important
  | 'thinned' // the buffer was full and its feed was denser than it had to be
  | 'expired' // older than the configured age
  | 'superseded' // a newer value of the same retained topic replaced it
  | 'memory_full' // the disk write failed and the memory for such messages was full
  | 'unreadable' // could not be read back from a damaged file
  | 'too_large' // larger than any message may be
  | 'discarded'; // the technician discarded it from the quarantine

export interface RowRef {
  readonly lane: Lane;
  readonly id: RowId;
}

/** Rows by lane. They may be thousands: as an object for each, they would cost ten times as much on both sides. */
export type LaneIds = ReadonlyMap<Lane, readonly RowId[]>;

export function idsByLane(refs: Iterable<RowRef>): LaneIds {
  const by_lane = Map.groupBy(refs, ({ lane }) => lane);
  return new Map(Array.from(by_lane, ([lane, its]) => [lane, its.map(({ id }) => id)]));
}

/** Rows of one lane that left the buffer together. `lo` and `hi` are of one epoch. */
export interface Removal {
  readonly lane: Lane;
  readonly why: 'delivered' | 'quarantined' | DropReason;
  readonly rows: number;
  readonly bytes: number;
  readonly lo: RowId;
  readonly hi: RowId;
}

/** A drop that was not reported to the cloud yet; coalesced for each epoch, lane and reason. */
export interface Drop {
  readonly epoch: number;
  readonly lane: Lane;
  readonly reason: DropReason;
  readonly rows: number;
  /** First and last sequence number between which the dropped ones lie. */
  readonly lo: number;
  readonly hi: number;
}

export function dropOf({ lane, rows, lo, hi }: Omit<Removal, 'why'>, reason: DropReason): Drop {
  const { epoch, seq } = positionOf(lo);
  return { epoch, lane, reason, rows, lo: seq, hi: positionOf(hi).seq };
}

export type TaskState = 'pending' | 'running' | 'completed' | 'failed';

/** A task as the journal keeps it: enough to resume after a restart and to refuse a second delivery. */
export interface JournalEntry {
  readonly task_id: string;
  readonly state: TaskState;
  /** The dispatch as received, JSON text. */
  readonly dispatch: string;
  /** JSON text of `result`. */
  readonly result: string;
  readonly received_ms: number;
  readonly updated_ms: number;
  /** UTC; null when the command's own default counts. */
  readonly deadline_ms: number | null;
}

/** Everything that one commit does, in one transaction. */
export interface Work {
  /** The same work was refused with `StorageUnsure` before, and nothing was committed since. */
  readonly again?: boolean;
  readonly rows: readonly Row[];
  /** Ids among `rows` that the main thread continues to hold: `take` skips them until they are released or delivered. */
  readonly held: readonly RowId[];
  readonly delivered: LaneIds;
  /** Batches, by their token, that were delivered whole. */
  readonly delivered_batches: readonly number[];
  /** Rows that the broker has but the cloud has not confirmed: kept, not taken again until `resendUnconfirmed`. */
  readonly unconfirmed: LaneIds;
  /** The same for batches, by their token. */
  readonly unconfirmed_batches: readonly number[];
  /** Rows of retained topics that were not sent because a newer value was. */
  readonly superseded: LaneIds;
  /** Refused permanently. A row that left its lane meanwhile, evicted or superseded, was reported as dropped and is not kept. */
  readonly quarantined: readonly { readonly row: Row; readonly code: number; readonly reason: string }[];
  readonly journal: readonly JournalEntry[];
  /** Messages that were given up before they were on disk. */
  readonly dropped: readonly Drop[];
  /** How many were delivered from memory, without ever being on disk, since the last commit. */
  readonly delivered_from_memory: number;
  /** Drops that were reported by a row of this very commit. */
  readonly reported: readonly Drop[];
}

export interface LaneDepth {
  readonly rows: number;
  readonly bytes: number;
}

/** `full`: messages are stored in place of older ones. `failing`: none are stored. */
export interface DiskHealth {
  readonly state: 'ok' | 'full' | 'failing';
  readonly detail: string;
  /** Why it is failing, where that has a specific remedy. */
  readonly fault?: StorageFault | undefined;
}

export function failing(detail: string, fault?: StorageFault): DiskHealth {
  return { state: 'failing', detail, ...(fault && { fault }) };
}

export interface Done {
  /** Depth of every lane after the commit. */
  readonly depth: Readonly<Record<Lane, LaneDepth>>;
  readonly removed: readonly Removal[];
  /** Quarantine after the commit. */
  readonly quarantined_rows: number;
  readonly health: DiskHealth;
  /** The file could not be opened at the start and could now: what an earlier run left in it. Once, with a commit. */
  readonly found?: Found | undefined;
  /** The file turned out to be damaged, or gone, while it was in use. What was lost is among `removed`. Only of `commit` and `look`. */
  readonly salvage?: Salvage | undefined;
}

/** Ranges of sequence numbers of an epoch that the cloud has stored. */
export interface Stored {
  readonly epoch: number;
  readonly ranges: readonly (readonly [lo: number, hi: number])[];
}

export interface CloudAck extends Stored {
  /** The last number given out in this epoch, if this run has begun it: no later one can have been stored. */
  readonly last_seq?: number | undefined;
}

export interface Confirmed extends Done {
  /** Messages that this acknowledgement released. */
  readonly released: number;
  /** Ranges that cannot be about messages of this kit, and why. Rows that were merely not sent yet are no such case. */
  readonly ignored: { readonly ranges: number; readonly why: 'unknown_epoch' | 'never_sent' } | undefined;
}

export interface TakeRequest {
  readonly lane: Lane;
  readonly rows_max: number;
  /** Bytes of bodies before compression; at least one row is taken. */
  readonly bytes_max: number;
  /** `rows`: to be published one by one. `batch`: one compressed batch of the contract. */
  readonly form: 'rows' | 'batch';
}

/** A row read back, its time corrected if it can be by now. */
export interface TakenRow extends Row {
  readonly time_quality: TimeQuality | undefined;
}

export interface Taken {
  readonly rows: readonly TakenRow[];
  readonly batch: TakenBatch | undefined;
  /** All rows of the lane are held by the main thread. */
  readonly drained: boolean;
}

export interface TakenBatch {
  readonly token: number;
  readonly lane: Lane;
  readonly rows: number;
  readonly payload: Uint8Array;
  readonly lo: RowId;
  readonly hi: RowId;
}

export interface Opened extends Found {
  readonly epoch: number;
  /** For so long nothing may be published: the disk refuses, and an earlier start may have chosen the same epoch. */
  readonly epoch_wait_ms: number;
  /** The file was used on another machine before: it is a copy, or has moved. */
  readonly machine_changed: boolean;
  readonly depth: Readonly<Record<Lane, LaneDepth>>;
  readonly quarantined_rows: number;
  /** What happened to a damaged file, if there was one. */
  readonly salvage: Salvage | undefined;
  readonly health: DiskHealth;
}

/** What an earlier run left for this one, beside its messages. */
export interface Found {
  readonly drops: readonly Drop[];
  /** Tasks that are not completed or failed, oldest first. */
  readonly open_tasks: readonly JournalEntry[];
  /** The newest body of every retained channel, whether the broker has it or not. */
  readonly announced: readonly { readonly channel: string; readonly body: string }[];
  /** A `down/ack` was seen in this or an earlier run. */
  readonly cloud_acks: boolean;
  readonly left: Left;
  /** Tasks of the journal. */
  readonly ended_tasks: { readonly completed: number; readonly failed: number };
}

/** How many messages left the buffer until this run began. */
export interface Left {
  /** Since when they are counted; null: the clock was not set then. */
  readonly since_ms: number | null;
  readonly delivered: number;
  readonly dropped: Readonly<Partial<Record<DropReason, number>>>;
}

export const nothing_left: Left = { since_ms: null, delivered: 0, dropped: {} };

/** How far the reading of a damaged file is. */
export interface SalvageProgress {
  readonly rows_saved: number;
  /** By the damaged file's own counters; null when they are lost too. */
  readonly rows_expected: number | null;
  readonly done: boolean;
}

export type Salvage = SalvageOf & {
  readonly cause: string;
  readonly rows_saved: number;
  /** Rows that the damaged file's own counters knew of and that could not be read; null when the counters were lost too. */
  readonly rows_lost: number | null;
};

type SalvageOf =
  | {
      /** `other_kit`: the file is whole and holds the messages of another kit. */
      readonly kind: 'damaged' | 'too_new' | 'other_kit';
      /** Where the old file lies now. */
      readonly moved_to: string;
    }
  | {
      /** It was deleted or replaced while in use. */
      readonly kind: 'replaced';
      /** Where the file lies now that was found in its place; null: there was none. */
      readonly moved_to: string | null;
    };

export interface QuarantinedRow {
  readonly id: RowId;
  readonly lane: Lane;
  readonly channel: string;
  readonly time_ms: number;
  readonly code: number;
  readonly reason: string;
  readonly body_bytes: number;
}

export interface QuarantinedMessage extends QuarantinedRow {
  readonly body: string;
}

export const quarantine_page_rows = 1_000;

export interface Inspection {
  readonly lanes: Readonly<Record<Lane, LaneDepth & { readonly oldest_ms: number | null }>>;
  readonly file_bytes: number;
  readonly disk_free_bytes: number;
}

export interface StoreLimits {
  /** Bytes of rows (`rowBytes`), all lanes and the quarantine together. */
  readonly bytes_max: number;
  readonly rows_max: number;
  /** Free space that is left to others on the file system. */
  readonly free_bytes_min: number;
  readonly age_max_ms: number;
  readonly journal_rows_max: number;
}

export interface StoreOptions {
  readonly file: string;
  readonly limits: StoreLimits;
  readonly boot_id: string;
  /** Whose messages these are: the file of another kit is moved aside. Left out: of whom the file is. */
  readonly kit_id?: string | undefined;
  /** Lasts until the next boot and can be written while the disk cannot; left out: there is none. */
  readonly runtime_dir?: string | undefined;
  /** Names this machine, so that a copied file is noticed; left out: not known. */
  readonly machine?: string | undefined;
  /** False: the time of day may be wrong. Left out: it is right. */
  readonly clock_synced?: boolean | undefined;
}

/** As the thread opens the file. */
export interface OpenOptions extends StoreOptions {
  /** Receives the progress of reading a damaged file, at the start or later. */
  readonly onSalvage?: ((progress: SalvageProgress) => void) | undefined;
  /** Rows that wait for the cloud and are tracked singly; left out: more than a full window of batches. */
  readonly unconfirmed_max?: number | undefined;
}

/** The requests, by name. The worker answers in order. */
export interface StoreRequests {
  commit(work: Work): Done;
  /** Looks whether the file is still where it was opened, and does what a commit would. */
  look(): Done;
  take(request: TakeRequest): Taken;
  /** Releases unsent rows and batches: `take` may return them again. */
  release(given: { readonly rows: readonly RowRef[]; readonly batches: readonly number[] }): void;
  /** After a lost connection: everything handed out is free again. */
  releaseAll(): void;
  /**
   * Frees rows unconfirmed for longer than `older_than_ms`, with `lazy` also those of lazy lanes; answers how many. Without `lazy`,
   * and where no other waits, one row of a lazy lane: its acknowledgement shows that the cloud is back.
   */
  resendUnconfirmed(due: { readonly older_than_ms: number; readonly lazy: boolean }): number;
  /** `down/ack`: releases the unconfirmed rows that it names, and nothing else. */
  confirm(ack: CloudAck): Confirmed;
  /** Journals a dispatch unless its task id is known; answers the entry that was known. */
  admit(entry: JournalEntry): JournalEntry | undefined;
  findTask(task_id: string): JournalEntry | undefined;
  /** The newest tasks, newest first. */
  listTasks(limit: number): readonly JournalEntry[];
  /**
   * Begins a higher epoch in the running process and answers it: at least `min`, unless that is out of all proportion.
   * Also while the disk refuses; the file learns of it with its next transaction.
   */
  beginEpoch(min: number): number;
  /** The clock is trusted now: `offset_ms` + time since boot = UTC, for all unsynced rows of this boot. */
  setClockOffset(offset_ms: number): void;
  inspect(): Inspection;
  /** The next quarantined rows after a number, at most `quarantine_page_rows`. */
  listQuarantined(after: RowId): readonly QuarantinedRow[];
  findQuarantined(id: RowId): QuarantinedMessage | undefined;
  /** Puts quarantined rows back into their lanes, or discards them; all of them when `ids` is undefined. */
  retryQuarantined(ids: readonly RowId[] | undefined): Done;
  discardQuarantined(ids: readonly RowId[] | undefined): Done;
  close(): void;
}

/** Ids from 1; replies come in the same order. The first message to the thread is the `StoreOptions`. */
export type Request = {
  [K in keyof StoreRequests]: {
    readonly id: number;
    readonly method: K;
    readonly args: Parameters<StoreRequests[K]>;
  };
}[keyof StoreRequests];

/** Id 0 is sent without a request and carries the result of opening. Only the caller knows the type of `value`. */
export type Reply<T = unknown> =
  | { readonly id: number; readonly value: T }
  | { readonly id: number; readonly failure: Failure };

/** An error class does not survive the crossing, so it goes as data. */
export interface Failure {
  readonly unavailable: boolean;
  /** It may have been carried out. */
  readonly unsure: boolean;
  readonly fault: StorageFault | undefined;
  readonly message: string;
}

/** Sent without a request. */
export interface Notice {
  readonly salvage: SalvageProgress;
}
