/** The shapes that the page's modules share; those of the wire come from the service's schemas. */
import type { z } from 'zod';
import type { CommandDefinition } from '../contract/assets.ts';
import type { Link } from '../contract/kit.ts';
import type { AlarmResource } from '../cloud/api/alarm-resources.ts';
import type { FileResource } from '../cloud/api/file-resources.ts';
import type { FleetServerFrame, ServerFrame } from '../cloud/api/frames.ts';
import type { KitResource, QueueResource, TaskResource } from '../cloud/api/resources.ts';
import type { Settings } from './settings.ts';

export type { CommandDefinition, KitResource, Link, QueueResource, ServerFrame, TaskResource };
/** What the page takes of the socket for many kits. */
export type FleetFrame = Extract<FleetServerFrame, { type: 'summaries' | 'heartbeat' }>;
type Frame<T extends ServerFrame['type']> = Extract<ServerFrame, { type: T }>;
export type Snapshot = Frame<'snapshot'>;
export type KitNow = Snapshot['kit'];
export type LiveAsset = Snapshot['assets'][number];
export type FeedMessage = Frame<'feed'>['message'];
export type KitFile = FileResource;
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

/** What was asked of the files of an asset or a kit. */
export interface FileList {
  readonly isLoading: boolean;
  readonly fault: string;
  /** Cursor of the next page; null: there is none. */
  readonly next: string | null;
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
  readonly files: Map<string, KitFile>;
  /** By asset; empty: of the whole kit. */
  readonly fileLists: Map<string, FileList>;
  readonly trails: Map<string, readonly Fix[]>;
  /** How long the answers of each link took, by the name of the link. */
  readonly latencies: Map<string, readonly Sample[]>;
  /** The usual time between two messages of a feed, by `asset feed`, milliseconds. */
  readonly periods: Map<string, number>;
  /** The last change of each link that was reported, by the name of the link. */
  readonly linkEdges: Map<
    string,
    { readonly status: string; readonly time_ms: number; readonly reason: string }
  >;
  /** Figures of the last ten minutes, by name; of assets by `asset name`. */
  readonly series: Map<string, readonly Sample[]>;
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

/** One of the values that an input offers. */
export interface Option {
  /** The value as text, as the input holds it. */
  readonly value: string;
  readonly text: string;
  readonly json: JsonValue;
}

/** One input of a command form. */
export interface Field {
  readonly name: string;
  readonly kind: 'number' | 'integer' | 'boolean' | 'choice' | 'text';
  readonly label: string;
  readonly hint: string;
  readonly isRequired: boolean;
  readonly choices: readonly Option[];
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

/** A screen and what it shows, as the address names them. */
export interface Route {
  readonly screen: Screen;
  readonly kit_id: string | null;
  readonly asset_id: string | null;
}
export type Screen =
  | 'overview'
  | 'map'
  | 'assets'
  | 'files'
  | 'asset'
  | 'links'
  | 'align'
  | 'activity'
  | 'settings'
  | FleetScreen;
/** Of all kits of the key. */
export type FleetScreen = 'kits' | 'alarms' | 'log' | 'manage';

/** Something that this page saw happen. */
export interface Entry {
  /** Of the condition, or of the thing that was seen. */
  key: string;
  kind: 'alarm' | 'change' | 'seen';
  level: 'bad' | 'warn' | 'info';
  title: string;
  since_ms: number;
  /** Null: it lasts. */
  until_ms: number | null;
  href: string;
}

/** An event of the history. */
export interface Event {
  readonly time_ms: number;
  readonly type: string;
  /** Empty: the kit that is shown. */
  readonly kit_id: string;
  readonly asset_id: string;
  readonly id: string;
  readonly data: Readonly<Record<string, unknown>>;
}

/** The answer to a question about the history. */
export interface Reading {
  readonly value: unknown;
  readonly fault: string;
  readonly status: number;
  readonly path: string;
  /** Neither an answer nor a fault yet. */
  readonly isLoading: boolean;
}

export type Asker = Pick<View, 'choices' | 'link' | 'time_ms' | 'history'>;

/** The history as the views ask it. */
export interface HistoryAnswers {
  readonly read: (view: Asker, name: string, path: string) => Reading;
  readonly state: (view: Asker) => 'asking' | 'on' | 'off' | 'missing' | 'failed';
  readonly completeness: (view: Asker) => Reading;
}

/** Pages of the activity that were loaded after the first. */
export interface Older {
  /** The filter that they belong to. */
  readonly of: string;
  readonly kit_id: string | null;
  /** Newest first. */
  readonly events: readonly Event[];
  /** Cursor of the next page; null: there is none. */
  readonly next: string | null;
  /** The question of the first page: a cursor belongs to it. */
  readonly path: string;
  readonly isLoading: boolean;
  readonly fault: string;
}

export interface Session {
  readonly scopes: readonly string[];
}

/** What the list of kits may be ordered by. */
export type Column = 'state' | 'name' | 'link' | 'battery' | 'assets' | 'seen';

/** Choices and inputs of the person at the page. */
export interface Choices {
  kits: readonly KitResource[];
  /** When they were last reported, by `performance.now`. */
  kits_ms: number;
  kit_id: string | null;
  session: Session | null;
  /** Undefined: it is not known yet whether a key is needed. */
  needsKey: boolean | undefined;
  /** The last error outside of a command. */
  trouble: string;
  /** Filter of the assets. */
  filter: string;
  /** Filter of the activity log. */
  log_filter: string;
  /** Text typed to find a kit. */
  search: string;
  /** A state of kits, or a tag. */
  kit_filter: string;
  kit_sort: { readonly by: Column; readonly isDown: boolean };
  /** Where there is no room for both. */
  kit_view: 'list' | 'map';
  /** Those that are not over. */
  alarms: readonly Alarm[];
  alarm_filter: 'open' | 'acknowledged' | 'muted';
  /** Why the last change was refused. */
  alarm_fault: string;
  /** Why the last request for a file was refused. */
  file_fault: string;
  /** The signal by which an antenna is aligned. */
  aligned: string;
  /** Kits of one place that are listed on the map. */
  together: readonly string[];
  /** The open sheet: `kits`, `register`, `file ID`, or `command NAME` of the asset that is shown. */
  sheet: string | null;
  /** Where a person has tapped the map to send a drone. */
  target: { readonly asset_id: string; readonly lat: number; readonly lon: number } | null;
  /** Raw texts of the inputs, by `asset command field`. */
  readonly typed: Map<string, string>;
  /** By `asset command`. */
  readonly orders: Map<string, OrderState>;
  confirming: Order | null;
  map: { zoom: number; center: string | null; pan: { lat: number; lon: number } | null };
  /** Metadata of partner assets as the service gave it, by asset, and what became of the last change. */
  readonly metadata: Map<string, { readonly value: unknown; readonly text: string }>;
  /** Why the registration of a partner asset failed. */
  registering: string;
  /** Hours of history that are shown; 0: what this page saw. */
  hours: number;
  /** The moment of the past that is looked at; null: now. */
  moment_ms: number | null;
  /** Older pages of the activity, as far as they were loaded. */
  older: Older | null;
  /** Asset whose activity is shown; empty: every one. */
  log_asset: string;
  events: readonly string[];
  /** Newest first. */
  frames: readonly ServerFrame[];
}

/** Of the service, where it has alarms. */
export type Alarm = AlarmResource;
/** What the page takes of the socket for the alarms of many kits. */
export type AlarmsFrame = Extract<FleetServerFrame, { type: 'alarms' | 'heartbeat' }>;

/** Everything a view needs. */
export interface View extends Now {
  readonly choices: Choices;
  readonly route: Route;
  /** day, night or red */
  readonly theme: string;
  readonly log: { readonly entries: readonly Entry[] };
  readonly history: HistoryAnswers;
  /** The list of kits may be outdated. */
  readonly isListOld: boolean;
  readonly act: Actions;
}

export interface Actions {
  /** Redraws at once after a choice has changed. */
  readonly changed: () => void;
  readonly choose: (chosen: Partial<Choices>) => void;
  /** Redraws after something was loaded in the background, such as a module. A tap in progress ends first. */
  readonly arrived: () => void;
  readonly login: (key: string) => Promise<void>;
  readonly logout: () => Promise<void>;
  /** Sends an order of a control that is held; settles with the answer, never rejects. */
  readonly sendQuietly: (order: Order) => Promise<void>;
  readonly register: (body: Readonly<Record<string, JsonValue>>) => Promise<void>;
  readonly loadMetadata: (asset_id: string) => void;
  readonly saveMetadata: (asset_id: string, text: string) => Promise<void>;
  readonly openSheet: (name: string) => void;
  readonly closeSheet: () => void;
  readonly switchTheme: () => void;
  readonly setting: (name: keyof Settings, value: string) => void;
  readonly order: (order: Order) => void;
  readonly send: (order: Order) => Promise<void>;
  /** Withdraws an order that waits for its confirmation. */
  readonly withdraw: (order: Order, reason: string) => void;
  readonly cancelTask: (task_id: string) => Promise<void>;
  readonly note: (event: string) => void;
}
