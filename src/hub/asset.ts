/** One asset: what is known of it, and what of that the cloud was told. */
import type { Announcement, AssetStatus, CommandDefinition, CommandList } from '../contract/assets.ts';
import { channels } from '../contract/topics.ts';
import type { Command } from '../driver/command.ts';
import type { Appender } from '../outbox/api.ts';
import type { Clock } from '../platform/clock.ts';
import type { CommandTarget } from './commands.ts';
import type { FeedGate } from './feed-gate.ts';
import { stableJson } from './stable-json.ts';

/** What a driver says of the asset once; the rest of an announcement changes by itself. */
export type AssetFacts = Omit<
  Announcement,
  'status' | 'status_reason' | 'last_seen_at' | 'lat' | 'lon' | 'alt_m'
>;

export interface Position {
  readonly lat: number;
  readonly lon: number;
  readonly alt_m: number | null;
}

export interface AssetParts {
  readonly outbox: Appender;
  readonly clock: Clock;
  /** Tells that a task may find this asset in another state now. */
  readonly changed: () => void;
}

/** Between two announcements whose only news is the position or the time it was seen. */
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
  /** Its sinks are dead. */
  removed = false;
  readonly #parts: AssetParts;
  #status: AssetStatus = 'offline';
  #status_reason: string | null = null;
  #last_seen_ms: number;
  #position: Position | undefined;
  /** What the cloud has: the last announcement without what moves, its position and when it was made. */
  #told = '';
  #told_position = '';
  #told_mono_ms = 0;
  #command_list: CommandList | undefined;

  constructor(parts: AssetParts, facts: AssetFacts, last_seen_ms: number) {
    this.#parts = parts;
    this.facts = facts;
    this.#last_seen_ms = last_seen_ms;
  }

  /** The asset as an earlier run announced it: offline until its driver announces it again. */
  static restore(parts: AssetParts, earlier: Announcement, commands: CommandList | undefined): Asset {
    const { status, status_reason, last_seen_at, lat, lon, alt_m, ...facts } = earlier;
    const asset = new Asset(parts, facts, Date.parse(last_seen_at));
    if (lat !== null && lon !== null) asset.#position = { lat, lon, alt_m };
    asset.#status = status;
    asset.#status_reason = status_reason;
    asset.#command_list = commands;
    asset.#remember(asset.announcement());
    asset.setOnline(false, 'not seen since the connector was started');
    return asset;
  }

  get online(): boolean {
    return this.#status === 'online';
  }

  target(): CommandTarget {
    const { id, asset_key, name } = this.facts;
    return { asset_id: id, asset_key, name, online: this.online };
  }

  announcement(): Announcement {
    return {
      ...this.facts,
      status: this.#status,
      status_reason: this.#status_reason,
      last_seen_at: new Date(this.#last_seen_ms).toISOString(),
      lat: this.#position?.lat ?? null,
      lon: this.#position?.lon ?? null,
      alt_m: this.#position?.alt_m ?? null,
    };
  }

  /** The device was heard. */
  touch(): void {
    this.#last_seen_ms = this.#parts.clock.stamp().time_ms;
  }

  setPosition(position: Position): void {
    const isFirst = this.#position === undefined;
    this.#position = position;
    if (isFirst) this.announce();
  }

  /** Known, and not reachable: for an asset that was offline before, only the reason is news. */
  begin(reason: string): void {
    if (this.online) this.setOnline(false, reason);
    else this.#status_reason = reason.slice(0, reason_chars_max);
  }

  /** Publishes the announcement, and the edge as an event, when the status is another than before. */
  setOnline(online: boolean, reason?: string): void {
    const status: AssetStatus = online ? 'online' : 'offline';
    const isEdge = status !== this.#status;
    // The first reason of an outage is the one that helps; what follows from it is not news.
    if (!isEdge) return;
    this.#status = status;
    this.#status_reason = reason?.slice(0, reason_chars_max) ?? null;
    this.announce();
    this.#parts.outbox.append({
      channel: channels.event(this.facts.id, 'asset_status'),
      lane: 'alarm',
      data: { status, reason: this.#status_reason },
    });
    this.#parts.changed();
  }

  /** Publishes the retained announcement if it says anything new. */
  announce(): void {
    const announcement = this.announcement();
    if (this.#told !== standing(announcement)) this.#publish(announcement);
  }

  /** Publishes what has only moved or been seen again; called every `position_floor_ms`. */
  refresh(): void {
    const announcement = this.announcement();
    const isOld = this.#parts.clock.stamp().mono_ms - this.#told_mono_ms >= seen_floor_ms;
    const isMoved = this.#told_position !== stableJson(this.#position ?? null);
    if (isMoved || (this.online && isOld)) this.#publish(announcement);
  }

  /** Publishes the retained list of commands if it says anything new. */
  announceCommands(commands: readonly CommandDefinition[]): void {
    const known = this.#command_list;
    if (known && stableJson(known.commands) === stableJson(commands)) return;
    this.#command_list = { revision: (known?.revision ?? 0) + 1, commands: [...commands] };
    this.#publishCommands(this.#command_list);
  }

  /** Publishes everything that is retained, as it is. */
  announceAgain(): void {
    this.#publish(this.announcement());
    if (this.#command_list) this.#publishCommands(this.#command_list);
  }

  /** Clears what is retained; every sink of the asset is dead from now on. */
  remove(): void {
    this.removed = true;
    this.gate?.close();
    const { id } = this.facts;
    this.#parts.outbox.append({ channel: channels.asset(id), lane: 'presence', data: null });
    this.#parts.outbox.append({ channel: channels.commands(id), lane: 'presence', data: null });
    this.#parts.changed();
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
    this.#told = standing(announcement);
    this.#told_position = stableJson(this.#position ?? null);
    this.#told_mono_ms = this.#parts.clock.stamp().mono_ms;
  }
}

/** The announcement without what moves all the time, as text to compare. */
function standing(announcement: Announcement): string {
  const isPlaced = announcement.lat !== null;
  return stableJson({ ...announcement, last_seen_at: '', lat: isPlaced, lon: isPlaced, alt_m: null });
}
