/** What the history needs of a store: it moves bodies and knows their bounds, and `history/` reads them. */
import type { Tombstones } from './erasure.ts';
import type { Hole } from './holes.ts';
import type { HistoryClass, HistoryMessage } from './message.ts';
import type { Retention } from './retention.ts';
import type { KitRecord } from './transfer/record.ts';

export interface SegmentQuery {
  readonly kit_id: string;
  readonly classes: readonly HistoryClass[];
  /** Segments with a message in [from_ms, to_ms). */
  readonly from_ms: number;
  readonly to_ms: number;
  /** `asc` by the first message, `desc` by the last. */
  readonly order: 'asc' | 'desc';
  /** The segment after this one, in this order. */
  readonly after?: { readonly ms: number; readonly id: string } | undefined;
  readonly limit: number;
}

export interface StoredSegment {
  readonly id: string;
  readonly lo_ms: number;
  readonly hi_ms: number;
  readonly messages: number;
  /** Its times are no times of observation: left out of series and tracks. */
  readonly misdated: boolean;
  /** Days since 1970 of the observation; of the arrival when `misdated`. */
  readonly day: number;
  readonly body: Uint8Array;
}

/** What a commit brought. */
export interface StoredLanded {
  readonly landed_ms: number;
  readonly body: Uint8Array;
}

/** How much the history has of a kit. */
export interface KitSize {
  readonly kit_id: string;
  readonly messages: number;
  /** Of its segments; what has not been divided yet is not counted. */
  readonly bytes: number;
  /** Observation of the oldest and the newest message, milliseconds since 1970; null: none is divided yet. */
  readonly lo_ms: number | null;
  readonly hi_ms: number | null;
}

export interface StoredDay {
  readonly day: number;
  /** The figures cover the day up to this time. */
  readonly to_ms: number;
  readonly body: Uint8Array;
}

export interface DayQuery {
  readonly kit_id: string;
  readonly channel: string;
  readonly from_day: number;
  /** Included. */
  readonly to_day: number;
}

export interface Erasure {
  readonly kit_id: string;
  /** Left out: the whole kit. */
  readonly asset_id?: string | undefined;
  /** What was observed before this time. */
  readonly before_ms: number;
}

/** An erasure in force. */
export interface StoredErasure extends Erasure {
  /** When it was asked for last, milliseconds since 1970. */
  readonly erased_ms: number;
}

export interface ErasureQuery {
  readonly kit_id: string;
  readonly after?: string | undefined;
  readonly limit: number;
}

/** Every method may reject with `StorageUnavailable`. */
export interface HistoryStore {
  /** Segments that may hold an answer, in order. */
  readonly historySegments: (query: SegmentQuery) => Promise<readonly StoredSegment[]>;
  /** Bodies that are not divided yet. Read them before the segments: then nothing is missed, and some may be in both. */
  readonly historyLanded: (kit_id: string) => Promise<readonly StoredLanded[]>;
  /** What is erased: what has landed since still holds it until it is divided. */
  readonly historyErased: (kit_id: string) => Promise<Tombstones>;
  /** Whether the kit has, or had, this asset; of one that was removed here, only messages may be left. */
  readonly historyKnows: (kit_id: string, asset_id: string) => Promise<boolean>;
  readonly historyErasures: (query: ErasureQuery) => Promise<readonly StoredErasure[]>;
  /** Cuts bounds of erasures that lie ahead of these, and returns them. */
  readonly mendErasures: () => Promise<readonly StoredErasure[]>;
  /** Figures of a feed that are up to date. */
  readonly historyDays: (query: DayQuery) => Promise<readonly StoredDay[]>;
  /** By epoch, newest first: one more than `holes_max` where there are more. */
  readonly historyHoles: (kit_id: string) => Promise<readonly Hole[]>;
  /** Notes since when history is kept, unless it is noted: what came before was acknowledged and not kept. */
  readonly beginHistory: (now_ms: number) => Promise<void>;
  /** Since when the history of this kit is kept, milliseconds since 1970; undefined: it is not. */
  readonly historySince: (kit_id: string) => Promise<number | undefined>;
  /** When the oldest message that is left of each class was observed; classes without any are left out. */
  readonly historyOldest: (kit_id: string) => Promise<Partial<Readonly<Record<HistoryClass, number>>>>;
  /** Of every kit with history, by id. */
  readonly historySizes: () => Promise<readonly KitSize[]>;
  readonly historyRecord: (kit_id: string) => Promise<KitRecord>;
  /** Stores messages of an export as if they had arrived at that time; known messages change nothing. No webhook is called. */
  readonly importMessages: (
    kit_id: string,
    messages: readonly HistoryMessage[],
    arrived_ms: number,
  ) => Promise<void>;
  /** Adds the record of an export, after its messages. */
  readonly importRecord: (kit_id: string, record: KitRecord, now_ms: number) => Promise<void>;
  /** Whether this process keeps the history in order for so long: of several replicas, one does. */
  readonly leadHistory: (lease_ms: number) => Promise<boolean>;
  /** Divides some of what has landed. Returns how many messages; 0: nothing waits for it. */
  readonly compactHistory: (now_ms: number, all?: boolean) => Promise<number>;
  /** Makes the figures of one day of one kit. False: no day waits for it. */
  readonly rollUpHistory: (now_ms: number) => Promise<boolean>;
  /** What a client has set; undefined: the configuration counts. */
  readonly historyRetention: () => Promise<Retention | undefined>;
  readonly setHistoryRetention: (retention: Retention) => Promise<void>;
  /** Deletes some of what is older than it is kept. Returns how many segments and days; 0: nothing is. */
  readonly trimHistory: (retention: Retention, now_ms: number) => Promise<number>;
  /** Deletes what landed first, beyond so many messages. Returns how many: only where landed messages wait in memory. */
  readonly limitLanded: (messages_max: number) => Promise<number>;
  /**
   * Erases, and keeps what comes later of the time before the bound out of the history; a bound ahead of now counts as now. Resolves
   * when nothing of it is left in the tables.
   */
  readonly eraseHistory: (erasure: Erasure, now_ms: number) => Promise<void>;
}
