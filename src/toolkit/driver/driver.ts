/** Definition of a driver: one function that runs until its signal aborts. Everything else belongs to the hub. */
import type { z } from 'zod';
import type { AssetType, HealthItem, Protocol } from '../../contract/assets.ts';
import type { FeedSet, gatewayFeeds } from '../../contract/feeds.ts';
import type { FileKind } from '../../contract/files.ts';
import type { KitPart, Link, LinkCause, LinkType, Location } from '../../contract/kit.ts';
import type { Command } from './command.ts';
import type { Health } from './health.ts';

/** The part of a logger that a driver uses: facts first, then a fixed sentence. */
export interface DriverLog {
  debug(facts: object, sentence: string): void;
  info(facts: object, sentence: string): void;
  warn(facts: object, sentence: string): void;
  error(facts: object, sentence: string): void;
}

/** Description of a device. `asset_key` comes from a hardware identity, never from an address that may change. */
export interface AssetDescription {
  readonly asset_key: string;
  readonly name: string;
  readonly type: AssetType;
  readonly protocol: Protocol;
  readonly vendor?: string | null;
  readonly model?: string | null;
  readonly firmware?: string | null;
  /** `asset_key` of the asset it belongs to: a gimbal of its drone, a channel of its recorder. */
  readonly parent_key?: string | null;
  /**
   * Where the kit's media server fetches the picture, H.264 preferred, with the credentials in it. Never published: the
   * connector turns it into `whep_url`, as its `media` section specifies.
   */
  readonly rtsp_url?: string | null | undefined;
  /**
   * What of `assetHealth` the device delivers; what fails makes the kit degraded. Of `stream`, `still` and `commands` only why
   * they are missing: `rtsp_url`, `takePicture` and commands show that they are there. Left out: nothing is reported.
   */
  readonly health?: ReportedHealth | undefined;
  /** Of the driver's feeds, those that it may publish; all of them when left out. */
  readonly feeds?: readonly string[];
  /** Why a known device cannot be reached now, such as a channel of a recorder without its camera. */
  readonly offline_reason?: string | null;
  /** The configuration of the driver names it, so it always has a place among the kit's assets. */
  readonly configured?: boolean;
  /** Takes a picture of what the camera sees: `snapshot` and `snapshot.jpg` of the kit's service. Left out: it has none. */
  readonly takePicture?: TakePicture | undefined;
  /** The smallest that the camera gives, for its alarms. Left out: they have none; the configuration asks for them. */
  readonly takeAlarmPicture?: TakePicture | undefined;
  /** Asks the camera for a key frame of `rtsp_url` now. Left out: a viewer waits for its next one. Never rejects. */
  readonly requestKeyFrame?: (() => Promise<void>) | undefined;
}

export type ReportedHealth = Readonly<Partial<Record<HealthItem, Health>>>;

/** Resolves with a JPEG (see `expectPicture`); rejects when the camera gives none. The hub limits how often it is called. */
export type TakePicture = (signal: AbortSignal) => Promise<Buffer>;

/** Facts about a link from a driver other than the link's: a dish, a modem, the prober. */
export interface LinkKnowledge extends Partial<
  Pick<Link, 'type' | 'isp' | 'ip' | 'latency_ms' | 'jitter_ms' | 'packet_loss_pct'>
> {
  /** Interface name. */
  readonly name: string;
  /** Reason of the link's state, for the technician: `no carrier`, `dish: obstructed`. */
  readonly reason?: string | null;
  /** The same as one word, while the link cannot carry anything. */
  readonly cause?: LinkCause | null;
  /** How long that has been so already: a link that does not answer is noticed some seconds after its last answer. */
  readonly lasts_ms?: number;
}

/** A position of the kit from one source. The hub selects the source and decides whether the position is stale. */
export interface Fix {
  /** WGS-84, degrees. */
  readonly latitude: number;
  readonly longitude: number;
  /** Metres above the WGS-84 ellipsoid; null when only another height is known. */
  readonly altitude: number | null;
  /** `manual`: entered by the technician, never stale. */
  readonly source: Exclude<Location['source'], 'satellite_cached'>;
  /** Time since the fix reached the driver, milliseconds. */
  readonly age_ms: number;
  /** UTC time of the fix, from the receiver. The hub uses it if it makes the fix older and the clock can be trusted. */
  readonly time_ms?: number | null;
  /** A manual position that takes precedence over every other source. */
  readonly pinned?: boolean;
}

/** Receives the messages of an asset. Never blocks and never throws: the hub handles a full outbox. */
export interface AssetSink<F extends FeedSet> {
  /** One message of a feed, observed now. */
  publish<K extends keyof F & string>(feed: K, message: z.output<F[K]>): void;
  /** Last known position, WGS-84; shown on the map until a newer one comes. */
  setPosition(position: { readonly lat: number; readonly lon: number; readonly alt_m?: number }): void;
  /** Reports that the device was lost or is back; `reason` is for the technician. */
  setOnline(online: boolean, reason?: string): void;
  /**
   * Reports whether it delivers this from now on, until it is offline. Cheap when nothing changed; what had worked is shown as
   * failing only once it lasts, so a subscription may be lost and made again.
   */
  setHealth(item: HealthItem, health: Health): void;
  /** The asset is no longer part of the kit. */
  remove(): void;
}

/** A file for the cloud. */
export interface NewFile {
  readonly kind: FileKind;
  /** The asset that it is about; null: the kit itself. */
  readonly asset_key: string | null;
  /** As a person would store it: `flight 2026-11-29 12-40.bin`. */
  readonly name: string;
  /** Left out: `application/octet-stream`. */
  readonly content_type?: string;
  /** When what it shows was observed, milliseconds since 1970. */
  readonly at_ms: number;
  /** `path`: a file of the driver, complete, which is moved (best below `stateFile`) and no longer the driver's once it is taken. */
  readonly content:
    | { readonly path: string }
    | { readonly bytes: Uint8Array }
    | { readonly stream: AsyncIterable<Uint8Array> };
  /** A JPEG of at most 8 KiB; a larger one is left out. */
  readonly thumbnail?: Uint8Array | undefined;
  /** Messages of the asset that it belongs to. */
  readonly alarms?: readonly { readonly feed: string; readonly timestamp: string }[];
}

/** State of one configured device, for status and doctor. Times are ISO 8601, UTC. */
export interface DeviceReport {
  /** As the configuration calls it. */
  readonly name: string;
  /** Host and port that are tried. */
  readonly tried: string;
  /** Of the asset that belongs to the entry, and of its children; null before the first contact. */
  readonly asset_key: string | null;
  readonly state: 'starting' | 'online' | 'offline' | 'rejected';
  /** Why the last attempt failed, in the words of the device; null while it is online. */
  readonly reason: string | null;
  readonly tried_at: string | null;
  readonly next_try_at: string | null;
  /** A weakness that the configuration allows, with its remedy; the kit is then degraded. */
  readonly weakness?: string;
}

/** The only interface from a driver to the rest of the connector. */
export interface DriverHost<F extends FeedSet> {
  /** Aborts when the driver must stop. Every timer, socket and listener of the driver ends with it. */
  readonly signal: AbortSignal;
  readonly log: DriverLog;
  /** Adds or updates the asset with this key. It is online from now, unless `offline_reason` is set, until `run` settles or `setOnline` is called. */
  readonly announce: (asset: AssetDescription, commands?: readonly Command[]) => AssetSink<F>;
  /**
   * Removes an offline asset that an earlier run of this driver announced, with its children: it is known now under
   * another key. Does nothing for assets of this run and of other drivers.
   */
  readonly retract: (asset_key: string) => void;
  /** A part of the kit's telemetry: `{ gateway }`, `{ wans }`, `{ battery, battery_charging }`, ... */
  readonly reportKit: (part: KitPart) => void;
  /** Replaces this driver's facts about the link of that name. Fills gaps in `wans`, which another driver reports. */
  readonly reportLink: (knowledge: LinkKnowledge) => void;
  /** Type of a link as all drivers report it together; null: no such link, or unknown. */
  readonly linkType: (name: string) => LinkType | null;
  /** A position of the kit; null invalidates the measured one. A manual one stands while the connector runs. */
  readonly reportLocation: (fix: Fix | null) => void;
  /** Commands of the kit's gateway that this driver serves while it runs; replaces the earlier list. */
  readonly serveGateway: (commands: readonly Command[]) => void;
  /** One message of a feed of the kit's gateway, observed now; the newest waits until the gateway is announced. */
  readonly publishGateway: <K extends keyof typeof gatewayFeeds>(
    feed: K,
    message: z.output<(typeof gatewayFeeds)[K]>,
  ) => void;
  /**
   * Files for the cloud. `add` resolves with the id once the file is on disk: it is announced, and sent when the link allows it.
   * Rejects with `CommandRefused` for a file that is empty or larger than all files may be, and with `StorageUnavailable` while the
   * disk takes none; a file named by its path stays the driver's then.
   */
  readonly files: {
    readonly add: (file: NewFile) => Promise<string>;
    /** Makes a support bundle of the kit, as the command does, and adds it. Left out: this process cannot. */
    readonly addBundle?: ((signal: AbortSignal) => Promise<string>) | undefined;
  };
  /** Path of a small file of this driver instance that outlives restarts, in a folder that only the daemon reads. */
  readonly stateFile: (name: string) => string;
  /**
   * Shown by `kit-connector status` beside the driver; an empty object clears it. `devices`: the configured devices, each with
   * its last failure and next attempt; the assets of a device that cannot be served get the reason too.
   */
  readonly reportStatus: (
    facts: Readonly<Record<string, string | number | boolean | null>>,
    devices?: readonly DeviceReport[],
  ) => void;
  /** See `OnOptions`; the options are those of the configuration file. */
  readonly onOptions: OnOptions<unknown>;
}

/**
 * Registers what takes the options of a reload while the driver runs, where only the list of its devices differs, or nothing.
 * It returns the names of devices that are tried again because they rejected the connector, or undefined when the driver must
 * be restarted.
 */
export type OnOptions<O> = (take: (options: O) => readonly string[] | undefined) => void;

interface DriverSpec<F extends FeedSet, S extends z.ZodType> {
  /** Value of `driver:` in the configuration file. */
  readonly name: string;
  readonly feeds: F;
  /** Its section of the configuration. */
  readonly options: S;
  /** What the options leave open to others, each a sentence with its remedy behind a semicolon. Pure; for `check` and the doctor. */
  readonly cautions?: (options: z.output<S>) => readonly string[];
  /** Option that lists its devices, when `run` takes another list through its third argument, `onOptions`. */
  readonly devices?: keyof z.output<S> & string;
  /**
   * Serves its devices until `host.signal` aborts, then resolves. Rejects when the device is lost (any error: the hub
   * tries again soon) or rejects the connector (`DeviceRejected`: the hub tries again hours later). Either way it leaves no
   * timer, socket or listener behind.
   */
  readonly run: (
    options: z.output<S>,
    host: DriverHost<F>,
    onOptions: OnOptions<z.output<S>>,
  ) => Promise<void>;
}

/** A driver whose options are read: what the hub runs. */
export type ConfiguredRun = (host: DriverHost<FeedSet>) => Promise<void>;

/** A driver with its types erased, as the hub and the CLI use it. */
export interface Driver {
  readonly name: string;
  readonly feeds: FeedSet;
  readonly options: z.ZodType;
  /** Pure: checks the options without touching a device. Throws `z.ZodError`. */
  readonly configure: (raw: unknown) => ConfiguredRun;
  /** What these options leave open to others, with the remedy. */
  readonly cautions: (raw: unknown) => readonly string[];
  /** Option that lists its devices, when a running driver takes another list. */
  readonly devices: string | undefined;
}

/** Joins a driver's options schema, feeds and run function, so that `run` never sees unchecked options. */
export function defineDriver<F extends FeedSet, S extends z.ZodType>(spec: DriverSpec<F, S>): Driver {
  return {
    name: spec.name,
    feeds: spec.feeds,
    options: spec.options,
    configure(raw) {
      const options = spec.options.parse(raw);
      return async (host) =>
        spec.run(options, host, (take) => host.onOptions((next) => take(spec.options.parse(next))));
    },
    cautions: (raw) => spec.cautions?.(spec.options.parse(raw)) ?? [],
    devices: spec.devices,
  };
}
