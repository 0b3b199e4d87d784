/** What a driver is. A driver is one function that runs until it is told to stop; everything else is the hub's work. */
import type { z } from 'zod';
import type { AssetType, Protocol } from '../contract/assets.ts';
import type { FeedSet } from '../contract/feeds.ts';
import type { KitPart, Link, Location } from '../contract/kit.ts';
import type { Command } from './command.ts';

/** The part of a logger that a driver uses: facts first, then a fixed sentence. */
export interface DriverLog {
  debug(facts: object, sentence: string): void;
  info(facts: object, sentence: string): void;
  warn(facts: object, sentence: string): void;
  error(facts: object, sentence: string): void;
}

/** What a driver knows of a device. `asset_key` comes from a hardware identity, never from an address that may change. */
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
   * connector turns it into `whep_url`, as its `media` section says.
   */
  readonly rtsp_url?: string | null;
  /** It is known and cannot be reached now, and why: a channel of a recorder without its camera. */
  readonly offline_reason?: string | null;
}

/** What a driver knows of a link beside the one that reports it: a dish, a modem, the prober. */
export interface LinkKnowledge extends Partial<
  Pick<Link, 'type' | 'isp' | 'ip' | 'latency_ms' | 'jitter_ms' | 'packet_loss_pct'>
> {
  /** Interface name. */
  readonly name: string;
  /** Why the link is as it is, for the technician: `no carrier`, `dish: obstructed`. */
  readonly reason?: string | null;
}

/** A position of the kit, as one source knows it. The hub chooses among the sources and says whether it is stale. */
export interface Fix {
  /** WGS-84, degrees. */
  readonly latitude: number;
  readonly longitude: number;
  /** Metres above the WGS-84 ellipsoid; null when only another height is known. */
  readonly altitude: number | null;
  /** `manual`: the technician's word, never stale. */
  readonly source: Exclude<Location['source'], 'satellite_cached'>;
  /** Time since the fix reached the driver, milliseconds. */
  readonly age_ms: number;
  /** UTC time of the fix as the receiver says. The hub uses it where it makes the fix older and the clock can be trusted. */
  readonly time_ms?: number | null;
  /** Of a manual position: it counts before every other source. */
  readonly pinned?: boolean;
}

/** Takes what an asset says. Never blocks and never throws: a full outbox is the hub's concern. */
export interface AssetSink<F extends FeedSet> {
  /** One message of a feed, observed now. */
  publish<K extends keyof F & string>(feed: K, message: z.output<F[K]>): void;
  /** Last known position, WGS-84; shown on the map until a newer one comes. */
  setPosition(position: { readonly lat: number; readonly lon: number; readonly alt_m?: number }): void;
  /** Tells that the device was lost or is back; `reason` is for the technician. */
  setOnline(online: boolean, reason?: string): void;
  /** The asset is no longer part of the kit. */
  remove(): void;
}

/** The only door from a driver to the rest of the connector. */
export interface DriverHost<F extends FeedSet> {
  /** Aborts when the driver must stop. Every timer, socket and listener of the driver ends with it. */
  readonly signal: AbortSignal;
  readonly log: DriverLog;
  /** Adds or updates the asset with this key. It is online from now, unless `offline_reason` says why not, until `run` settles or it says otherwise. */
  readonly announce: (asset: AssetDescription, commands?: readonly Command[]) => AssetSink<F>;
  /** A part of the kit's telemetry: `{ gateway }`, `{ wans }`, `{ battery, battery_charging }`, ... */
  readonly reportKit: (part: KitPart) => void;
  /** Replaces what this driver said before of the link of that name. Fills gaps in `wans`, which another driver reports. */
  readonly reportLink: (knowledge: LinkKnowledge) => void;
  /** A position of the kit; null: what was measured does not count any more. A manual one stands while the connector runs. */
  readonly reportLocation: (fix: Fix | null) => void;
  /** Commands of the kit's gateway that this driver serves while it runs; replaces what it gave before. */
  readonly serveGateway: (commands: readonly Command[]) => void;
  /** Path of a small file of this driver instance that outlives restarts, in a folder that only the daemon reads. */
  readonly stateFile: (name: string) => string;
  /** Shown by `kit-connector status` beside the driver; an empty object clears it. */
  readonly reportStatus: (facts: Readonly<Record<string, string | number | boolean | null>>) => void;
}

interface DriverSpec<F extends FeedSet, S extends z.ZodType> {
  /** What `driver:` says in the configuration file. */
  readonly name: string;
  readonly feeds: F;
  /** Its section of the configuration. */
  readonly options: S;
  /**
   * Serves its devices until `host.signal` aborts, then resolves. Rejects when the device is lost (any error: the hub
   * tries again later) or refuses (`DeviceRejected`: the hub waits for a new configuration). Either way it leaves no
   * timer, socket or listener behind.
   */
  readonly run: (options: z.output<S>, host: DriverHost<F>) => Promise<void>;
}

/** A driver whose options are read: what the hub runs. */
export type ConfiguredRun = (host: DriverHost<FeedSet>) => Promise<void>;

/** A driver as the house sees it: types erased. */
export interface Driver {
  readonly name: string;
  readonly feeds: FeedSet;
  readonly options: z.ZodType;
  /** Pure: checks the options without touching a device. Throws `z.ZodError`. */
  readonly configure: (raw: unknown) => ConfiguredRun;
}

/** Joins a driver's options schema, feeds and run function, so that `run` never sees unchecked options. */
export function defineDriver<F extends FeedSet, S extends z.ZodType>(spec: DriverSpec<F, S>): Driver {
  return {
    name: spec.name,
    feeds: spec.feeds,
    options: spec.options,
    configure(raw) {
      const options = spec.options.parse(raw);
      return async (host) => spec.run(options, host);
    },
  };
}
