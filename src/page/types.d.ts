/** The shapes that the page's modules share; those of the wire come from the service's schemas. */
import type { z } from 'zod';
import type { CommandDefinition } from '../contract/assets.ts';
import type { Link } from '../contract/kit.ts';
import type { ServerFrame } from '../service/api/frames.ts';
import type { KitResource, QueueResource, TaskResource } from '../service/api/resources.ts';

export type { CommandDefinition, KitResource, Link, QueueResource, ServerFrame, TaskResource };
type Frame<T extends ServerFrame['type']> = Extract<ServerFrame, { type: T }>;
export type Snapshot = Frame<'snapshot'>;
export type KitNow = Snapshot['kit'];
export type LiveAsset = Snapshot['assets'][number];
export type FeedMessage = Frame<'feed'>['message'];
export type JsonValue = z.core.util.JSONType;

/** A place where an asset was, and when. */
export interface Fix {
  readonly lat: number;
  readonly lon: number;
  readonly time_ms: number;
}

/** Null: not known at that time. */
export interface Sample {
  readonly time_ms: number;
  readonly value: number | null;
}

/** One report of the kit on its queue. */
export interface QueueReport {
  /** By the kit's clock. */
  readonly time_ms: number;
  readonly rows: number;
}

/** The state of the kit on the page. Entries are replaced, never changed, so that views may compare them. */
export interface World {
  kit: KitNow | null;
  queue: QueueResource | null;
  /** Queue reports of the last minutes, oldest first. */
  readonly reports: QueueReport[];
  readonly assets: Map<string, LiveAsset>;
  readonly feeds: Map<string, Readonly<Record<string, FeedMessage>>>;
  readonly commands: Map<string, readonly CommandDefinition[]>;
  readonly tasks: Map<string, TaskResource>;
  readonly trails: Map<string, readonly Fix[]>;
  /** How long the answers of each link took, by the name of the link. */
  readonly latencies: Map<string, readonly Sample[]>;
  /** The usual time between two messages of a feed, by `asset feed`, milliseconds. */
  readonly periods: Map<string, number>;
}

/** The page's own link to the service; `since_ms` is of `performance.now`. */
export interface PageLink {
  readonly state: 'connecting' | 'live' | 'lost';
  readonly since_ms: number;
}

/** The state at one moment, as the views read it. */
export interface Now {
  readonly world: World;
  readonly link: PageLink;
  /** The server's clock. */
  readonly time_ms: number;
  /** Whether an order would reach the service. */
  readonly isInStep: boolean;
}

/** The freshness of a value, the same wherever it is shown. */
export interface Freshness {
  /** Null: the time is not known. */
  readonly age_ms: number | null;
  readonly isOld: boolean;
}

/** One input of a command form. */
export interface Field {
  readonly name: string;
  readonly kind: 'number' | 'integer' | 'boolean' | 'choice' | 'text';
  readonly label: string;
  readonly hint: string;
  readonly isRequired: boolean;
  readonly choices: readonly string[];
  readonly min: number | undefined;
  readonly max: number | undefined;
  readonly chars_max: number | undefined;
  readonly initial: string;
}

/** A command on its way from the first tap to the answer of the service. */
export interface Order {
  readonly asset: LiveAsset;
  readonly command: CommandDefinition;
  readonly payload: Readonly<Record<string, JsonValue>>;
}

/** The state of an order that has not become a task. */
export interface OrderState {
  readonly state: 'sending' | 'refused' | 'unknown' | 'sent';
  readonly text: string;
}

export interface Session {
  readonly scopes: readonly string[];
}

/** Choices and inputs of the person at the page. */
export interface Choices {
  kits: readonly KitResource[];
  kit_id: string | null;
  session: Session | null;
  /** Undefined: it is not known yet whether a key is needed. */
  needsKey: boolean | undefined;
  /** The last error outside of a command. */
  trouble: string;
  filter: string;
  open_asset: string | null;
  /** Raw texts of the inputs, by `asset command field`. */
  readonly typed: Map<string, string>;
  /** By `asset command`. */
  readonly orders: Map<string, OrderState>;
  confirming: Order | null;
  video_asset: string | null;
  readonly map: { zoom: number; center: string | null };
  events: readonly string[];
  frames: readonly string[];
}

/** Everything a view needs. */
export interface View extends Now {
  readonly choices: Choices;
  readonly act: Actions;
}

export interface Actions {
  /** Redraws at once after a choice has changed. */
  changed(): void;
  login(key: string): Promise<void>;
  logout(): Promise<void>;
  chooseKit(kit_id: string): void;
  order(order: Order): void;
  send(order: Order): Promise<void>;
  /** Withdraws an order that waits for its confirmation. */
  withdraw(order: Order, reason: string): void;
  cancelTask(task_id: string): Promise<void>;
  note(event: string): void;
}
