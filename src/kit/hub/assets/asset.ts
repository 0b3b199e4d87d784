/** One asset: its current values, and those last published to the cloud. */
import type {
  Announcement,
  AssetStatus,
  CommandDefinition,
  CommandList,
  HealthItem,
} from '../../../contract/assets.ts';
import { cut } from '../../../contract/limits.ts';
import { channels } from '../../../contract/topics.ts';
import type { Command } from '../../../toolkit/driver/command.ts';
import type { AssetDescription, ReportedHealth, TakePicture } from '../../../toolkit/driver/driver.ts';
import type { Health } from '../../../toolkit/driver/health.ts';
import type { Appender } from '../../outbox/api.ts';
import type { Clock } from '../../../platform/clock.ts';
import { cleanText } from '../../../platform/foreign-text.ts';
import { HealthOfAsset, type ShownHealth } from './health.ts';
import type { ObserveAssets, ObservedAsset } from '../activity.ts';
import type { CommandTarget } from '../commands.ts';
import type { FeedGate, FeedView } from '../feed-gate.ts';

/** The fields that the driver sets at the announcement; the others change by themselves. */
export type AssetFacts = Omit<
  Announcement,
  'status' | 'status_reason' | 'health' | 'last_seen_at' | 'first_seen_at' | 'lat' | 'lon' | 'alt_m'
>;

export interface Position {
  readonly lat: number;
  readonly lon: number;
  readonly alt_m: number | null;
}

export interface AssetParts {
  readonly outbox: Appender;
  readonly clock: Clock;
  readonly observe: ObserveAssets;
  readonly signal: AbortSignal;
}

/** Between two announcements that differ only in the position or the time last seen. */
export const position_floor_ms = 60_000;
const seen_floor_ms = 600_000;
const reason_chars_max = 500;

export class Asset {
  facts: AssetFacts;
  /** The live commands of this run's driver; empty for an asset that only an earlier run has seen. */
  commands: readonly Command[] = [];
  gate: FeedGate | undefined;
  /** A driver of this run has announced it. Until then any driver may. */
  claimed = false;
  /** Where the kit's media server fetches its picture. */
  rtsp_url: string | null = null;
  /** Undefined: it gives no pictures. */
  takePicture: TakePicture | undefined;
  /** What its driver described as missing; undefined: it reports no health. */
  missing: ReportedHealth | undefined;
  /** Undefined: its alarms have no pictures. */
  takeAlarmPicture: TakePicture | undefined;
  requestKeyFrame: AssetDescription['requestKeyFrame'];
  configured = false;
  /** Its sinks ignore every call. */
  removed = false;
  /** It was evicted, or a technician removed it: it may come back. */
  forgotten = false;
  readonly health: HealthOfAsset;
  readonly #parts: AssetParts;
  #status: AssetStatus = 'offline';
  #status_reason: string | null = null;
  #last_seen_ms: number;
  #first_seen_ms: number;
  /** On the monotonic clock, of this run. */
  #seen_mono_ms: { readonly first: number; last: number };
  #wasKnown = false;
  /** In this run. */
  #wasOnline = false;
  #position: Position | undefined;
  /** The reason of this outage is that of its device, which reports it once, or of its latest attempt. */
  #explained: 'no' | 'first' | 'latest' = 'no';
  /** Last published: the announcement without what moves, its position, and when it was published. */
  #published = '';
  #published_position = '';
  #published_mono_ms = 0;
  #command_list: CommandList | undefined;

  constructor(parts: AssetParts, facts: AssetFacts, last_seen_ms: number) {
    this.#parts = parts;
    this.health = new HealthOfAsset({ ...parts, onLasting: () => this.announce() });
    this.facts = facts;
    this.#last_seen_ms = last_seen_ms;
    this.#first_seen_ms = last_seen_ms;
    const { mono_ms } = parts.clock.stamp();
    this.#seen_mono_ms = { first: mono_ms, last: mono_ms };
  }

  /** The asset as an earlier run announced it: offline until its driver announces it again. */
  static restore(parts: AssetParts, earlier: Announcement, commands: CommandList | undefined): Asset {
    const {
      status,
      status_reason,
      health: _,
      last_seen_at,
      first_seen_at,
      lat,
      lon,
      alt_m,
      ...facts
    } = earlier;
    const asset = new Asset(parts, facts, Date.parse(last_seen_at));
    // What an earlier version announced has no such time, and was not asked for one.
    asset.#wasKnown = first_seen_at === undefined || seenFor_ms(earlier) >= known_after_ms;
    asset.#first_seen_ms = Date.parse(first_seen_at ?? last_seen_at);
    if (lat !== null && lon !== null) asset.#position = { lat, lon, alt_m };
    asset.#status = status;
    asset.#status_reason = status_reason;
    asset.#command_list = commands;
    asset.#remember(asset.announcement());
    asset.#turn(false, 'not seen since the connector was started');
    asset.#explained = 'no';
    return asset;
  }

  get online(): boolean {
    return this.#status === 'online';
  }

  get driver(): string {
    return this.facts.driver;
  }

  get last_seen_ms(): number {
    return this.#last_seen_ms;
  }

  /** It is configured, or was seen for long. */
  get isKnown(): boolean {
    const { first, last } = this.#seen_mono_ms;
    return this.configured || this.#wasKnown || last - first >= known_after_ms;
  }

  target(): CommandTarget {
    const { id, asset_key, name } = this.facts;
    return { asset_id: id, asset_key, name, online: this.online };
  }

  observed(): ObservedAsset {
    const { id, asset_key: key, name, type, driver } = this.facts;
    return { id, key, name, type, driver };
  }

  announcement(): Announcement {
    const health = this.online ? this.health.announced() : undefined;
    return {
      ...this.facts,
      status: this.#status,
      status_reason: this.#status_reason,
      ...(health && { health }),
      last_seen_at: new Date(this.#last_seen_ms).toISOString(),
      first_seen_at: new Date(this.#first_seen_ms).toISOString(),
      lat: this.#position?.lat ?? null,
      lon: this.#position?.lon ?? null,
      alt_m: this.#position?.alt_m ?? null,
    };
  }

  /** Notes that the device was seen now. */
  touch(): void {
    const { time_ms, mono_ms } = this.#parts.clock.stamp();
    this.#last_seen_ms = time_ms;
    this.#seen_mono_ms.last = mono_ms;
  }

  setPosition(position: Position): void {
    const isFirst = this.#position === undefined;
    this.#position = position;
    if (isFirst) this.announce();
  }

  /** Marks a known asset as unreachable; if it was offline before, only the reason changes. */
  begin(reason: string): void {
    if (this.online) this.setOnline(false, reason);
    else this.#status_reason = cut(cleanText(reason), reason_chars_max);
  }

  /**
   * Gives the reason why the device of an offline asset cannot be served, in place of that of the connector ("the driver was
   * stopped"). `first` keeps the reason that this outage has from its device.
   */
  explain(reason: string, which: 'first' | 'latest'): void {
    if (this.online || (which === 'first' && this.#explained === 'first')) return;
    this.#explained = which;
    this.#status_reason = cut(cleanText(reason), reason_chars_max);
    this.announce();
  }

  /** Publishes the announcement, and the edge as an event, when the status is another than before. */
  setOnline(online: boolean, reason?: string): void {
    if (this.#turn(online, reason)) this.#observeEdge();
  }

  /** Ignored while it is offline: nothing is delivered then. */
  setHealth(item: HealthItem, health: Health): void {
    if (this.online && this.health.set(item, health)) this.announce();
  }

  /** Its driver does not serve it any more; the reason is the connector's. */
  lose(reason: string): void {
    if (!this.online) return;
    this.setOnline(false, reason);
    this.#explained = 'no';
  }

  #turn(online: boolean, reason: string | undefined): boolean {
    const status: AssetStatus = online ? 'online' : 'offline';
    const isEdge = status !== this.#status;
    // The first reason of an outage is the useful one; later ones only follow from it.
    if (!isEdge) return false;
    this.#status = status;
    if (!online) this.health.clear();
    this.#explained = 'first';
    this.#status_reason = reason === undefined ? null : cut(cleanText(reason), reason_chars_max);
    this.announce();
    this.#parts.outbox.append({
      channel: channels.event(this.facts.id, 'asset_status'),
      lane: 'alarm',
      data: { status, reason: this.#status_reason },
    });
    return true;
  }

  /** Publishes the retained announcement if it changed. */
  announce(): void {
    const announcement = this.announcement();
    if (this.#published !== standing(announcement)) this.#publish(announcement);
  }

  /** Publishes what has only moved or been seen again; called every `position_floor_ms`. */
  refresh(): void {
    const announcement = this.announcement();
    const isOld = this.#parts.clock.stamp().mono_ms - this.#published_mono_ms >= seen_floor_ms;
    const isMoved = this.#published_position !== stableJson(this.#position ?? null);
    if (isMoved || (this.online && isOld)) this.#publish(announcement);
  }

  /** Publishes the retained list of commands if it changed. */
  announceCommands(commands: readonly CommandDefinition[]): void {
    const known = this.#command_list;
    if (known && stableJson(known.commands) === stableJson(commands)) return;
    this.#command_list = { revision: (known?.revision ?? 0) + 1, commands: [...commands] };
    this.#publishCommands(this.#command_list);
  }

  /** Publishes everything retained again, unchanged. */
  announceAgain(): void {
    this.#publish(this.announcement());
    if (this.#command_list) this.#publishCommands(this.#command_list);
  }

  /** Clears the retained messages; every sink of the asset ignores calls from now on. */
  remove(reason: string): void {
    this.removed = true;
    this.gate?.close();
    const { id } = this.facts;
    this.#parts.outbox.append({ channel: channels.asset(id), lane: 'presence', data: null });
    this.#parts.outbox.append({ channel: channels.commands(id), lane: 'presence', data: null });
    this.#parts.observe({ kind: 'removed', asset: this.observed(), reason });
  }

  /** Adds the asset to the kit again, as a new one. */
  revive(): void {
    this.removed = false;
    this.forgotten = false;
    this.#position = undefined;
    this.#status = 'offline';
    const { time_ms, mono_ms } = this.#parts.clock.stamp();
    this.#first_seen_ms = time_ms;
    this.#seen_mono_ms = { first: mono_ms, last: mono_ms };
    this.#wasKnown = false;
    this.#wasOnline = false;
    this.announceAgain();
    this.#parts.observe({ kind: 'added', asset: this.observed() });
  }

  #observeEdge(): void {
    const asset = this.observed();
    const { observe } = this.#parts;
    if (this.online) observe({ kind: 'online', asset, is_first: !this.#wasOnline });
    else observe({ kind: 'offline', asset, reason: this.#status_reason });
    this.#wasOnline ||= this.online;
  }

  #publish(announcement: Announcement): void {
    this.#remember(announcement);
    const channel = channels.asset(announcement.id);
    this.#parts.outbox.append({ channel, lane: 'presence', data: { ...announcement } });
  }

  #publishCommands(list: CommandList): void {
    const channel = channels.commands(this.facts.id);
    this.#parts.outbox.append({ channel, lane: 'presence', data: { ...list } });
  }

  #remember(announcement: Announcement): void {
    this.#published = standing(announcement);
    this.#published_position = stableJson(this.#position ?? null);
    this.#published_mono_ms = this.#parts.clock.stamp().mono_ms;
  }
}

function seenFor_ms({ first_seen_at, last_seen_at }: Announcement): number {
  return Date.parse(last_seen_at) - Date.parse(first_seen_at ?? last_seen_at);
}

/** The announcement without what moves all the time, as text to compare. */
function standing(announcement: Announcement): string {
  const isPlaced = announcement.lat !== null;
  return stableJson({ ...announcement, last_seen_at: '', lat: isPlaced, lon: isPlaced, alt_m: null });
}

/** Assets of one kit. Together with 256 of partners they are what the service takes. */
export const asset_limits = {
  all: 768,
  /** Of all drivers together: the rest is for assets that are configured, or were seen for `known_after_ms`. */
  strangers: 640,
  strangers_per_driver: 512,
} as const;

/** An asset that was seen for so long is known from then on, also over a restart. */
const known_after_ms = 600_000;
/** A stranger that was not seen for so long is forgotten. */
export const stranger_kept_ms = 86_400_000;

interface SlotHolder {
  /** Driver instance. */
  readonly driver: string;
  readonly isKnown: boolean;
  readonly online: boolean;
  readonly last_seen_ms: number;
}

/** A slot, and which holder makes room for it; or why there is none. */
type Slot<H> = { readonly evicted: H | undefined } | { readonly refusal: string };

/**
 * Decides who may have one of the kit's asset slots. A driver on an open network announces what anybody sends, so assets
 * that were seen only briefly, the strangers, never use up the slots of the others.
 * Among equals the offline stranger that was lost first makes room; nothing that is online or known ever does.
 */
export function slotFor<H extends SlotHolder>(
  holders: readonly H[],
  newcomer: Pick<SlotHolder, 'driver' | 'isKnown'>,
): Slot<H> {
  const strangers = holders.filter(({ isKnown }) => !isKnown);
  const own = strangers.filter(({ driver }) => driver === newcomer.driver);
  if (!newcomer.isKnown && own.length >= asset_limits.strangers_per_driver) {
    return evictedFrom(own, `driver ${newcomer.driver} has ${own.length} assets that are new to the kit`);
  }
  const isFull = holders.length >= asset_limits.all;
  if (isFull || (!newcomer.isKnown && strangers.length >= asset_limits.strangers)) {
    return evictedFrom(
      strangers,
      `the kit has ${holders.length} assets, ${strangers.length} of them new to it`,
    );
  }
  return { evicted: undefined };
}

function evictedFrom<H extends SlotHolder>(candidates: readonly H[], why: string): Slot<H> {
  const [first, ...others] = candidates.filter(({ online }) => !online);
  if (!first) return { refusal: `${why}, which is the limit` };
  return {
    evicted: others.reduce(
      (oldest, each) => (each.last_seen_ms < oldest.last_seen_ms ? each : oldest),
      first,
    ),
  };
}

/** An asset as status shows it. */
export interface AssetView extends ObservedAsset {
  readonly status: 'online' | 'offline';
  readonly reason: string | null;
  readonly last_seen_at: string;
  /** While it is online. */
  readonly health: ShownHealth;
  readonly feeds: Readonly<Record<string, FeedView>>;
}

/** What `status` shows of an asset. */
export function viewOf(asset: Asset): AssetView {
  const { status, status_reason: reason, last_seen_at } = asset.announcement();
  const feeds = asset.gate?.view() ?? {};
  const health = asset.online ? asset.health.view() : {};
  return { ...asset.observed(), status, reason, last_seen_at, health, feeds };
}

// JSON text that is the same whenever the content is the same, so that content can be compared as text.

/** Like `JSON.stringify` of a value that JSON can carry, with the keys of every object in order. */
export function stableJson(value: unknown): string {
  return JSON.stringify(value, (_key, inner: unknown) => (isRecord(inner) ? inKeyOrder(inner) : inner));
}

function inKeyOrder(record: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(record).sort(([a], [b]) => (a < b ? -1 : 1)));
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
