/** What the store takes and returns. */
import type { Announcement, AssetStatus } from '../../contract/assets.ts';
import type { Json, JsonObject } from '../../contract/json.ts';
import type { PartnerFixMessage, PartnerRecord } from '../../contract/partners.ts';
import type { KitState } from '../../contract/presence.ts';
import type { CloudAck, TaskStatus } from '../../contract/tasks.ts';
import type { Losses, News } from './losses.ts';
import type { Database, Queries } from '../sql/database.ts';
import type { Message } from '../read-message.ts';
import type { ApiKey, StoredAlarm, StoredFeed, StoredTask } from './plain-rows.ts';

export type { ApiKey, StoredAlarm, StoredFeed, StoredTask };

/** Epoch and seq decide which of two values is the newer one (`contract/README.md`, Envelope); the time is for people. */
export interface Stamp {
  readonly time_ms: number;
  readonly epoch: number;
  readonly seq: number;
}

/** What operators call a kit, null: as it calls itself, and the words by which they group kits. */
export interface KitLabel {
  readonly name: string | null;
  readonly tags: readonly string[];
  /** An IANA name: whose days daily figures have. */
  readonly time_zone?: string | null | undefined;
}

export interface StoredKit {
  readonly kit_id: string;
  readonly label?: KitLabel | undefined;
  /** The newest presence and its time (a will was written when the kit connected); undefined: none yet. */
  readonly state: (KitState & { readonly said_ms?: number | undefined }) | undefined;
  /** When this service last heard of the kit, its own clock, milliseconds since 1970. */
  readonly heard_ms: number | null;
  /** When the broker last delivered its birth as a retained message: it was connected then, and may have sent nothing for long. */
  readonly vouched_ms: number | null;
  /** Since when its presence is what it is; null: that was before anybody looked. */
  readonly since_ms: number | null;
  /** Newest value of each part of the telemetry, with the time of its observation. */
  readonly parts: Readonly<
    Record<string, { readonly time_ms: number; readonly data: Json; readonly epoch?: number }>
  >;
  readonly counts: KitCounts;
  readonly losses: Losses;
  /** How late its live messages come, since when: `alarms/clock-lag.ts`. Left out: in time. */
  readonly lag?: { readonly lag_ms: number; readonly since_ms: number } | undefined;
}

export interface KitCounts {
  readonly received: number;
  readonly duplicates: number;
  readonly missing: number;
  readonly dropped: number;
  readonly refused: number;
}

export interface StoredAsset extends Omit<Announcement, 'type' | 'protocol' | 'feeds' | 'driver'> {
  readonly type: string;
  readonly protocol: string;
  readonly feeds: readonly string[];
  readonly metadata: JsonObject;
}

/** The status of an asset without what it announced. */
export interface AssetState {
  readonly kit_id: string;
  readonly asset_id: string;
  readonly status: AssetStatus;
}

/** A change of a commit, for subscribers. Values are the stored ones, after the commit. */
export type Change =
  | {
      readonly kind: 'kit';
      readonly kit_id: string;
      /** It has connected or disconnected, by its own report or its will. */
      readonly turned?: Stamp & { readonly online: boolean; readonly reason: string | null };
    }
  /** It was removed. */
  | { readonly kind: 'kit_gone'; readonly kit_id: string }
  | { readonly kind: 'asset' | 'commands' | 'asset_gone'; readonly kit_id: string; readonly asset_id: string }
  | {
      readonly kind: 'feed';
      readonly kit_id: string;
      readonly asset_id: string;
      readonly message: StoredFeed;
    }
  | { readonly kind: 'task'; readonly kit_id: string; readonly task: StoredTask }
  | { readonly kind: 'alarm'; readonly kit_id: string; readonly alarm: StoredAlarm }
  | { readonly kind: 'file'; readonly kit_id: string; readonly file_id: string };

export interface Committed {
  readonly changes: readonly Change[];
  /**
   * Acknowledgements for each kit, one per epoch of these messages: at least the ranges of the messages, also of
   * duplicates. Of any number of ranges.
   */
  readonly acks: readonly { readonly kit_id: string; readonly ack: CloudAck }[];
  /** Kits that reported that they are connected. */
  readonly births: readonly string[];
  /** Kits that were not known before. */
  readonly new_kits: readonly string[];
  /** Kits that sent messages without a known online presence: it is missing here, or older than the messages. */
  readonly without_presence: readonly string[];
  /** Kinds of messages that were refused: `what` is the channel. */
  readonly refused: readonly (News & { readonly kit_id: string })[];
  /** Reports of files, with the state at the kit. */
  readonly files: readonly { readonly kit_id: string; readonly file_id: string; readonly state: string }[];
  /** Messages may have been queued for webhooks. */
  readonly hasEvents: boolean;
}

/** A request with an idempotency key, which its client may repeat. */
export interface RepeatableRequest {
  readonly key_id: string;
  readonly idempotency_key: string;
  /** Hash of the request: the same key on another request is a mistake. */
  readonly request: string;
}

/** `mine`: the key was free. `answer` null: the request has started and its answer is not known. */
export type Claim =
  | { readonly kind: 'mine' }
  | { readonly kind: 'known'; readonly request: string; readonly answer: Json | null };

export interface PartnerAsset extends Pick<
  PartnerRecord,
  'name' | 'type' | 'vendor' | 'model' | 'metadata' | 'parent_id'
> {
  readonly kit_id: string;
  readonly asset_id: string;
  readonly asset_key: string;
  readonly created_ms: number;
  /** Label of the key. */
  readonly created_by: string;
}

/** What a client changes of a partner asset; the rest stays. */
export interface PartnerEdit {
  readonly name?: string | undefined;
  /** In place of all that was there, or merged into it. */
  readonly metadata?: JsonObject | undefined;
  readonly merges?: boolean;
}

/** What a service knows of a partner asset for the other side. */
export interface PartnerState {
  readonly asset_id: string;
  readonly gone: boolean;
  readonly revision: number;
  /** The last report of the other side; null: nothing. */
  readonly peer_revision: number | null;
  /** The other side has the fix of this time. */
  readonly fix_sent_ms: number;
  /** Null: removed. */
  readonly record: PartnerRecord | null;
  readonly fix: PushedMessage | null;
}

/** A message of the `gps` feed of a partner asset. */
export interface PushedMessage extends StoredFeed {
  readonly data: PartnerFixMessage;
}

export type PartnerFix = Omit<PartnerFixMessage, 'source' | 'timestamp'>;

export interface PushedFix {
  readonly asset_id: string;
  readonly fix: PartnerFix;
  /** When it was measured; left out: now. */
  readonly time_ms?: number | undefined;
}

/** A pushed fix as it was stored. */
export interface LandedFix {
  readonly asset_id: string;
  readonly message: StoredFeed;
  /** False: a newer one is known, so that only the history has it. */
  readonly isNewest: boolean;
}

/** Tells the other replicas what has changed. */
export type Announce = (queries: Queries, changes: readonly Change[]) => Promise<void>;

/** What the parts of a store work with. */
export interface StoreContext {
  readonly database: Database;
  /** Called inside each transaction that stores what kits report, and after each change of a client. */
  readonly announce: Announce;
  /** False: only the newest values are stored. */
  readonly keepsHistory: boolean;
  /** Undefined: no other process shares the database. */
  readonly replica_id: string | undefined;
}

export interface TaskOrder extends Pick<
  StoredTask,
  'kit_id' | 'task_id' | 'asset_id' | 'command_name' | 'created_ms'
> {
  readonly payload: JsonObject;
  readonly requested_by: string;
  /** Label of the key. */
  readonly requested_by_name: string;
  /** The kit has answered by then, or it does not start the task any more. */
  readonly due_ms: number;
}

export interface TaskQuery {
  readonly asset_id?: string | undefined;
  readonly status?: TaskStatus | undefined;
  /** Only tasks that come after this one in the order of the list: newest first, then by id. */
  readonly after?: { readonly created_ms: number; readonly task_id: string } | undefined;
  readonly limit: number;
}

/** A message of a kit on its way into the tables. */
export interface Arrival {
  readonly kit_id: string;
  readonly message: Message;
  /** Clock of the service, milliseconds since 1970. */
  readonly now_ms: number;
}

/** The changes of the message, or why it is refused. */
export type Applied = readonly Change[] | { readonly fault: string };

/** A new message of a feed, on its way into the table. */
export interface FeedArrival {
  readonly kit_id: string;
  readonly asset_id: string;
  readonly feed: string;
  readonly message: Message;
  /** From the buffer of the kit: no subscriber waits for it unless it is the newest. */
  readonly historical: boolean;
  readonly data: JsonObject;
}

/** Where it is, as far as it is known. */
export interface PlacedAsset {
  readonly kit_id: string;
  readonly asset: StoredAsset;
  /** Undefined: it has reported none. */
  readonly fix:
    | {
        readonly lat: number | null;
        readonly lon: number | null;
        readonly alt_m?: number | null | undefined;
        readonly heading?: number | null | undefined;
        readonly time_ms: number;
      }
    | undefined;
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
