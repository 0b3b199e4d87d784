/** The assets of the kit: who announced which, and what an earlier run left announced. */
import {
  announcement,
  type CommandDefinition,
  commandList,
  health_items,
  type HealthItem,
} from '../../../contract/assets.ts';
import type { FeedSet, GatewayFeed } from '../../../contract/feeds.ts';
import { firstFault } from '../../../contract/first-fault.ts';
import { assetId } from '../../../contract/identity.ts';
import { cut, name_chars_max } from '../../../contract/limits.ts';
import { channelKind, channels } from '../../../contract/topics.ts';
import type { Command } from '../../../toolkit/driver/command.ts';
import type { AssetDescription, DeviceReport, DriverLog } from '../../../toolkit/driver/driver.ts';
import type { Health } from '../../../toolkit/driver/health.ts';
import type { Opened } from '../../outbox/protocol.ts';
import { cleanText } from '../../../platform/foreign-text.ts';
import { every } from '../../../platform/time.ts';
import {
  Asset,
  type AssetFacts,
  type AssetParts,
  type AssetView,
  type Position,
  position_floor_ms,
  slotFor,
  stranger_kept_ms,
  viewOf,
} from './asset.ts';
import { type Allow, definitionsOf, findAmong, type FoundCommand, usableCommands } from '../commands.ts';
import { createFeedGate } from '../feed-gate.ts';
import type { AlarmPictures } from './alarm-pictures.ts';
import type { Clips } from './clips.ts';
import type { Pictures } from './pictures.ts';
import type { Pacer } from '../rate.ts';
import { texts } from '../texts.ts';

export interface AssetsParts extends AssetParts {
  readonly kit_id: string;
  /** Names of the configured driver instances: assets that other instances announced are gone. */
  readonly configured: readonly string[];
  /** What earlier runs left retained. */
  readonly announced: Opened['announced'];
  /** Local policy; it gives the same answer for the same asset and command until `policyChanged`. */
  readonly allow: Allow;
  readonly streams: Streams;
  /** Undefined where no service could serve them. */
  readonly pictures: Pictures | undefined;
  readonly alarm_pictures: AlarmPictures;
  /** Undefined where the media server does not record. */
  readonly clips: Clips | undefined;
  readonly pacer: Pacer;
  /** Called when a part contradicts itself: the process has to start again. */
  readonly broken: (error: unknown) => void;
  readonly log: DriverLog;
}

/** The media server: turns the RTSP stream of an asset into the address for viewers. */
export interface Streams {
  readonly want: (asset_key: string, rtsp_url: string | null) => void;
  readonly urlOf: (asset_key: string) => string | null;
  /** Whether viewers find it; undefined while that is not known yet. */
  readonly healthOf: (asset_key: string) => Health | undefined;
}

/** Who announces. */
interface Owner {
  /** Configured name of the driver instance. */
  readonly name: string;
  readonly feeds: FeedSet;
  readonly log: DriverLog;
}

/** Beyond these a removed asset may come back, offline, when the buffer file of an earlier run opens late. */
const removed_max = 4_096;
/** After a start, a driver has so long to reach an asset before its tasks are refused as offline. */
const reach_wait_ms = 30_000;

export class Assets {
  readonly #parts: AssetsParts;
  /** By asset_key. */
  readonly #assets: Map<string, Asset>;
  /** By driver instance. */
  readonly #started_mono_ms: number;
  /** The newest message of each feed of a gateway that is not announced yet. */
  readonly #gateway_news = new Map<GatewayFeed, { readonly log: DriverLog; readonly message: unknown }>();
  readonly #gateway_commands = new Map<string, readonly Command[]>();
  /** Ids of assets that this run has removed: the file of an earlier run may still have them, and cannot be read yet. */
  readonly #removed = new Set<string>();

  constructor(parts: AssetsParts) {
    this.#parts = parts;
    this.#assets = restoreAssets(parts);
    this.#started_mono_ms = parts.clock.stamp().mono_ms;
    every(position_floor_ms, parts.signal, () => {
      for (const asset of this.#assets.values()) asset.refresh();
      this.#forgetStrangers();
    });
  }

  /**
   * Restores the announcements of an earlier run when the buffer file became readable only now. What this run has announced
   * or removed meanwhile is newer. A run that stops leaves them to the next one.
   */
  takeUp(announced: Opened['announced']): void {
    if (this.#parts.signal.aborted) return;
    const ids = [...this.#removed, ...[...this.#assets.values()].map(({ facts }) => facts.id)];
    const known = new Set(ids.flatMap((id) => [channels.asset(id), channels.commands(id)]));
    const unknown = announced.filter(({ channel }) => !known.has(channel));
    const restored = restoreAssets({ ...this.#parts, announced: unknown });
    if (restored.size === 0) return;
    for (const [asset_key, asset] of restored) this.#assets.set(asset_key, asset);
    // The roster of this run did not name them, and a broker may have lost them.
    this.announceAgain();
    for (const asset of restored.values()) this.#parts.observe({ kind: 'added', asset: asset.observed() });
  }

  /** Adds or updates; undefined when this owner may not have the asset, which was logged. */
  announce(owner: Owner, described: AssetDescription, commands: readonly Command[]): Asset | undefined {
    const about = withCleanKeys(described);
    const { kit_id, clock, observe } = this.#parts;
    const facts = factsOf(kit_id, owner, about);
    const asset = this.#assets.get(about.asset_key) ?? new Asset(this.#parts, facts, clock.stamp().time_ms);
    const isKnown = about.configured === true;
    const obstacle = this.#obstacle(owner, asset, facts) ?? this.#makeRoom({ ...facts, isKnown });
    if (obstacle) {
      const { asset_key, name } = about;
      owner.log.warn({ asset_key, name, reason: obstacle }, texts.asset_refused);
      return undefined;
    }
    const isNew = !this.#assets.has(about.asset_key);
    this.#assets.set(about.asset_key, asset);
    asset.claimed = true;
    asset.configured = about.configured === true;
    asset.rtsp_url = about.rtsp_url ?? null;
    this.#parts.streams.want(about.asset_key, asset.rtsp_url);
    asset.facts = { ...facts, whep_url: this.#parts.streams.urlOf(about.asset_key) };
    asset.takePicture = about.takePicture;
    asset.takeAlarmPicture = about.takeAlarmPicture;
    asset.requestKeyFrame = about.requestKeyFrame;
    asset.commands = usableCommands([...commands, ...this.#pictureCommands(asset)], owner.log);
    if (asset.gate?.feeds !== owner.feeds) {
      asset.gate?.close();
      asset.gate = createFeedGate({ ...this.#parts, asset_id: facts.id, feeds: owner.feeds });
    }
    if (isNew) observe({ kind: 'added', asset: asset.observed() });
    noteWithheld(owner, asset, about);
    asset.missing = about.health;
    if (about.offline_reason) {
      asset.begin(about.offline_reason);
    } else {
      this.takeHealth(asset);
      asset.touch();
      asset.setOnline(true);
    }
    asset.announce();
    this.#announceCommands(asset);
    observe({ kind: 'announced', asset: asset.observed() });
    return asset;
  }

  /** Announces a new address of the stream of this asset, or its end. */
  streamChanged(asset_key: string): void {
    const asset = this.#assets.get(asset_key);
    if (!asset?.claimed) return;
    asset.facts = { ...asset.facts, whep_url: this.#parts.streams.urlOf(asset_key) };
    if (asset.online) this.#takeStreamHealth(asset);
    asset.announce();
  }

  /** Of an asset that is online from now on, or announced again: what is there, and why the rest is not. */
  takeHealth(asset: Asset): void {
    const { missing, health } = asset;
    if (!missing) return;
    const there: Partial<Record<HealthItem, boolean>> = {
      stream: asset.rtsp_url !== null,
      still: asset.takePicture !== undefined,
      commands: asset.commands.length > 0 && missing.commands?.state !== 'fails',
    };
    for (const item of health_items) {
      const why = there[item] === true ? undefined : missing[item];
      if (why) health.set(item, why);
    }
    if (there.commands === true) health.set('commands', { state: 'works' });
    // What the last picture has shown stays, also when other commands are announced.
    if (there.still === true && !health.has('still')) {
      const { pictures } = this.#parts;
      health.set(
        'still',
        pictures ? { state: 'works' } : { state: 'not_offered', reason: texts.no_pictures },
      );
    }
    this.#takeStreamHealth(asset);
  }

  /** A picture of this asset came, or two in a row did not: `fault` has the words of the camera. */
  pictureTaken(asset_id: string, health: Health): void {
    const asset = this.named(asset_id);
    if (asset?.missing) asset.setHealth('still', health);
  }

  /** Commands of the kit's gateway that another driver than the gateway's own serves. */
  serveGateway(owner: Owner, commands: readonly Command[]): void {
    if (commands.length > 0) this.#gateway_commands.set(owner.name, usableCommands(commands, owner.log));
    else this.#gateway_commands.delete(owner.name);
    const gateway = this.#gateway();
    if (gateway?.claimed) this.#announceCommands(gateway);
  }

  /** One message of a feed of the gateway, from whatever driver. The newest of each feed waits for the gateway. */
  publishGateway({ log }: Owner, feed: GatewayFeed, message: unknown): void {
    this.#gateway_news.set(feed, { log, message });
    this.publishGatewayNews();
  }

  /** Publishes the messages buffered for the gateway, once it is announced. */
  publishGatewayNews(): void {
    const gateway = this.#gateway();
    if (!gateway?.claimed) return;
    for (const [feed, { log, message }] of this.#gateway_news) gateway.gate?.publish(feed, message, log);
    this.#gateway_news.clear();
  }

  /** One message of a feed of this asset. */
  publish(asset: Asset, feed: string, message: unknown, log: DriverLog): void {
    if (asset.gate?.publish(feed, message, log) !== true) return;
    asset.touch();
    this.#parts.alarm_pictures.published(asset, feed, message, log);
    this.#parts.clips?.published(asset, feed, message, log);
  }

  remove(asset: Asset, reason: string): void {
    this.#parts.streams.want(asset.facts.asset_key, null);
    this.#parts.pictures?.forget(asset.facts.id);
    this.#parts.alarm_pictures.forget(asset.facts.id);
    this.#assets.delete(asset.facts.asset_key);
    if (this.#removed.size < removed_max) this.#removed.add(asset.facts.id);
    asset.remove(reason);
  }

  /** Removes an asset that an earlier run of this driver announced, and its children. */
  retract({ name }: Owner, asset_key: string): void {
    const id = assetId(this.#parts.kit_id, asset_key);
    for (const asset of this.#assets.values()) {
      const { facts, claimed, online } = asset;
      const isMeant = facts.id === id || facts.parent_id === id;
      if (isMeant && facts.driver === name && !claimed && !online) this.remove(asset, 'has another key now');
    }
  }

  /** Removes an asset that is gone for good; returns why it cannot, or undefined. */
  forget(asset_id: string): string | undefined {
    const asset = this.named(asset_id);
    if (!asset) return `this kit has no asset ${asset_id}`;
    const { name, driver } = asset.facts;
    if (asset.online) return `${name} is online: ${driver} still reaches it; switch it off, then forget it`;
    if (asset.claimed && asset.configured) {
      return `${driver} is configured with ${name}; take it out of the configuration and reload, then forget it`;
    }
    this.#forget(asset, 'forgotten by request');
    return undefined;
  }

  /** Makes an asset that was forgotten part of the kit again, because its driver reaches it. Returns whether there is room. */
  revive(asset: Asset): boolean {
    const { asset_key } = asset.facts;
    const refusal = this.#assets.has(asset_key)
      ? 'it was announced again'
      : this.#makeRoom({ ...asset.facts, isKnown: asset.configured });
    if (refusal !== undefined) return false;
    this.#assets.set(asset_key, asset);
    this.#parts.streams.want(asset_key, asset.rtsp_url);
    asset.revive();
    return true;
  }

  named(asset_id: string): Asset | undefined {
    return this.#assets.values().find(({ facts }) => facts.id === asset_id);
  }

  /** All assets of this driver instance are offline, and its commands of the gateway are gone. */
  lose(owner_name: string, reason: string): void {
    if (this.#gateway_commands.delete(owner_name)) {
      const gateway = this.#gateway();
      if (gateway?.claimed) this.#announceCommands(gateway);
    }
    for (const asset of this.#assets.values()) {
      if (asset.facts.driver === owner_name) asset.lose(reason);
    }
  }

  /** The assets of a device that cannot be served, and their children, show why, and a rejection its time and the next attempt. */
  explain(owner_name: string, device: DeviceReport): void {
    const { asset_key, reason } = device;
    if (reason === null || asset_key === null) return;
    const id = assetId(this.#parts.kit_id, asset_key);
    for (const asset of this.#assets.values()) {
      const { facts } = asset;
      if (facts.driver !== owner_name || (facts.id !== id && facts.parent_id !== id)) continue;
      asset.explain(absenceOf(device, reason), device.state === 'rejected' ? 'latest' : 'first');
    }
  }

  /** The driver instance is not part of the kit any more, nor is what it announced. */
  retire(owner_name: string): void {
    const reason = 'its driver was removed';
    this.lose(owner_name, reason);
    for (const asset of this.#assets.values()) {
      if (asset.facts.driver === owner_name) this.remove(asset, reason);
    }
  }

  /** Announces the commands again after the local policy changed. */
  policyChanged(): void {
    for (const asset of this.#assets.values()) if (asset.claimed) this.#announceCommands(asset);
  }

  /** Publishes everything retained, then the roster: the cloud drops any retained asset that it does not list. */
  announceAgain(): void {
    for (const asset of this.#assets.values()) asset.announceAgain();
    const data = { assets: [...this.#assets.values()].map(({ facts }) => facts.id) };
    this.#parts.outbox.append({ channel: channels.roster, lane: 'presence', data });
  }

  /** The command, live, or a sentence for the operator. */
  find(asset_id: string, command_name: string): FoundCommand {
    const asset = this.named(asset_id);
    if (!asset) return { refusal: `this kit has no asset ${asset_id}` };
    if (asset.claimed) {
      return findAmong(this.#commandsOf(asset), asset.target(), command_name, this.#parts.allow);
    }
    const { name, driver } = asset.facts;
    const isAwaited = this.#parts.clock.stamp().mono_ms - this.#started_mono_ms < reach_wait_ms;
    return {
      isAwaited,
      refusal: `${name} is offline: ${driver} has not reached it since the connector was started`,
    };
  }

  /** The commands of an asset as published; none while its driver has not announced it. */
  definitions(asset_id: string): readonly CommandDefinition[] {
    const asset = this.named(asset_id);
    return asset?.claimed ? this.#definitionsOf(asset) : [];
  }

  /** The gateway is where the kit is. */
  placeGateway(position: Position): void {
    const gateway = this.#gateway();
    if (gateway?.claimed) gateway.setPosition(position);
  }

  /** The asset of the kit's gateway: the first of that type, else the id that the key `gateway` would have. */
  gatewayId(): string {
    return this.#gateway()?.facts.id ?? assetId(this.#parts.kit_id, 'gateway');
  }

  view(): readonly AssetView[] {
    return [...this.#assets.values()].map(viewOf);
  }

  #pictureCommands(asset: Asset): readonly Command[] {
    const { pictures, clips } = this.#parts;
    return [...(pictures?.commandOf(asset) ?? []), ...(clips?.commandOf(asset) ?? [])];
  }

  #takeStreamHealth(asset: Asset): void {
    if (asset.rtsp_url === null || !asset.missing) return;
    const health = this.#parts.streams.healthOf(asset.facts.asset_key);
    if (health) asset.health.set('stream', health);
  }

  #gateway(): Asset | undefined {
    return this.#assets.values().find((asset) => asset.facts.type === 'gateway');
  }

  #commandsOf(asset: Asset): readonly Command[] {
    if (asset !== this.#gateway()) return asset.commands;
    return [...asset.commands, ...[...this.#gateway_commands.values()].flat()];
  }

  #announceCommands(asset: Asset): void {
    asset.announceCommands(this.#definitionsOf(asset));
  }

  #definitionsOf(asset: Asset): CommandDefinition[] {
    const { kit_id, allow } = this.#parts;
    const enabled = this.#commandsOf(asset).filter((command) => allow(asset.target(), command) === true);
    return definitionsOf(kit_id, asset.facts.asset_key, enabled);
  }

  #forgetStrangers(): void {
    const { time_ms, synced } = this.#parts.clock.stamp();
    if (!synced) return;
    for (const asset of this.#assets.values()) {
      const isGone = time_ms - asset.last_seen_ms >= stranger_kept_ms;
      if (isGone && !asset.online && !asset.isKnown)
        this.#forget(asset, 'seen only briefly, and absent for a day');
    }
  }

  /** It may come back: its driver does not know of this. */
  #forget(asset: Asset, reason: string): void {
    this.remove(asset, reason);
    asset.forgotten = true;
  }

  /** Why there is no room for one more asset. */
  #makeRoom(
    newcomer: Pick<AssetFacts, 'asset_key' | 'driver'> & { readonly isKnown: boolean },
  ): string | undefined {
    if (this.#assets.has(newcomer.asset_key)) return undefined;
    const slot = slotFor([...this.#assets.values()], newcomer);
    if ('refusal' in slot) return slot.refusal;
    if (slot.evicted) this.#forget(slot.evicted, `seen only briefly; makes room for ${newcomer.asset_key}`);
    return undefined;
  }

  /** Why this owner may not announce this asset. */
  #obstacle(owner: Owner, asset: Asset, facts: AssetFacts): string | undefined {
    if (asset.claimed && asset.facts.driver !== owner.name) {
      return `driver ${asset.facts.driver} announced an asset with this key first`;
    }
    const fault = announcement.safeParse({ ...asset.announcement(), ...facts }).error;
    return fault && firstFault(fault);
  }
}

/** Logs once why the stream of the asset is withheld. */
function noteWithheld(
  owner: Owner,
  asset: Asset,
  { asset_key, name, rtsp_url, health }: AssetDescription,
): void {
  const stream = health?.stream;
  const before = asset.missing?.stream;
  if (rtsp_url !== null || stream?.state !== 'fails') return;
  if (before?.state === 'fails' && before.reason === stream.reason) return;
  owner.log.warn({ asset_key, name, reason: stream.reason }, texts.stream_withheld);
}

/** An address of a picture is not for people, and a key is an identity: neither is cut. */
function withCleanKeys(about: AssetDescription): AssetDescription {
  const { asset_key, parent_key } = about;
  return { ...about, asset_key: cleanText(asset_key), parent_key: parent_key ? cleanText(parent_key) : null };
}

function factsOf(kit_id: string, owner: Owner, about: AssetDescription): AssetFacts {
  const { asset_key, name, type, protocol, vendor, model, firmware, parent_key } = about;
  return {
    id: assetId(kit_id, asset_key),
    asset_key,
    // A key is an identity: a key that is too long is refused, not cut.
    name: cut(cleanText(name), name_chars_max) || cut(asset_key, name_chars_max),
    type,
    vendor: line(vendor),
    model: line(model),
    firmware: line(firmware),
    protocol,
    parent_id: parent_key ? assetId(kit_id, parent_key) : null,
    whep_url: null,
    feeds: [...(about.feeds ?? Object.keys(owner.feeds))],
    driver: owner.name,
  };
}

/** One line of the announcement, cut to what it may hold. */
function line(text: string | null | undefined): string | null {
  return text === null || text === undefined ? null : cut(cleanText(text), name_chars_max);
}

/**
 * What an earlier run left announced: the assets that are still configured, and the removal of the others.
 * Restores the announcements of an earlier run, and retracts those whose driver is not configured.
 */
function restoreAssets(parts: AssetsParts): Map<string, Asset> {
  const left = parts.announced.filter(
    ({ channel, body }) => channelKind(channel) === 'asset' && body !== 'null',
  );
  const bodies = new Map(left.map(({ channel, body }) => [channel, parsed(body)]));
  const found = new Map<string, Asset>();
  for (const body of bodies.values()) {
    const { data: earlier } = announcement.safeParse(body);
    if (!earlier || !parts.configured.includes(earlier.driver)) continue;
    // Ids derived from another kit_id no longer belong to this kit.
    if (earlier.id !== assetId(parts.kit_id, earlier.asset_key)) continue;
    const { data: commands } = commandList.safeParse(bodies.get(channels.commands(earlier.id)));
    found.set(earlier.asset_key, Asset.restore(parts, earlier, commands));
  }
  const kept = new Set(
    [...found.values()].flatMap(({ facts: { id } }) => [channels.asset(id), channels.commands(id)]),
  );
  for (const channel of bodies.keys()) {
    if (kept.has(channel)) continue;
    const gone = announcement.safeParse(bodies.get(channel)).data;
    // Its commands go with it.
    if (gone) {
      const { asset_key, name } = gone;
      parts.log.info({ asset_key, name }, texts.asset_not_configured);
    }
    parts.outbox.append({ channel, lane: 'presence', data: null });
  }
  return found;
}

function parsed(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    return undefined;
  }
}

/**
 * The sentence why a device is not served.
 * A rejection has its time and that of the next attempt, which may be hours away.
 */
function absenceOf({ state, tried_at, next_try_at }: DeviceReport, reason: string): string {
  const isTimed = state === 'rejected' && tried_at !== null && next_try_at !== null;
  return isTimed ? texts.rejected_at(reason, tried_at, next_try_at) : reason;
}
