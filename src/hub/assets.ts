/** The assets of the kit: who announced which, and what an earlier run left announced. */
import { prettifyError } from 'zod';
import { announcement, commandList } from '../contract/assets.ts';
import type { FeedSet } from '../contract/feeds.ts';
import { assetId } from '../contract/identity.ts';
import { channelKind, channels } from '../contract/topics.ts';
import type { Command } from '../driver/command.ts';
import type { AssetDescription, DriverLog } from '../driver/driver.ts';
import type { Opened } from '../outbox/protocol.ts';
import { every } from '../platform/time.ts';
import { Asset, type AssetFacts, type AssetParts, type Position, position_floor_ms } from './asset.ts';
import { type Allow, definitionsOf, findAmong, type FoundCommand, usableCommands } from './commands.ts';
import { createFeedGate, type FeedView } from './feed-gate.ts';
import type { Pacer } from './rate.ts';

/** Assets of one kit; what would be one more is refused with a log line. */
export const assets_max = 256;

export interface AssetsParts extends AssetParts {
  readonly kit_id: string;
  /** Names of the configured driver instances: assets that other instances announced are gone. */
  readonly configured: readonly string[];
  readonly announced: Opened['announced'];
  readonly allow: Allow;
  readonly streams: Streams;
  readonly pacer: Pacer;
  readonly log: DriverLog;
  readonly signal: AbortSignal;
}

/** The house's media server: turns the RTSP stream of an asset into the address that viewers are told. */
export interface Streams {
  readonly want: (asset_key: string, rtsp_url: string | null) => void;
  readonly urlOf: (asset_key: string) => string | null;
}

/** Who announces. */
export interface Owner {
  /** Configured name of the driver instance. */
  readonly name: string;
  readonly feeds: FeedSet;
  readonly log: DriverLog;
}

/** An asset as status shows it. */
export interface AssetView {
  readonly id: string;
  readonly key: string;
  readonly name: string;
  readonly type: string;
  readonly driver: string;
  readonly status: 'online' | 'offline';
  readonly reason: string | null;
  readonly last_seen_at: string;
  readonly feeds: Readonly<Record<string, FeedView>>;
}

export class Assets {
  readonly #parts: AssetsParts;
  /** By asset_key. */
  readonly #assets: Map<string, Asset>;
  /** By driver instance. */
  readonly #gateway_commands = new Map<string, readonly Command[]>();

  constructor(parts: AssetsParts) {
    this.#parts = parts;
    this.#assets = restoreAssets(parts);
    every(position_floor_ms, parts.signal, () => {
      for (const asset of this.#assets.values()) asset.refresh();
    });
  }

  /** Adds or updates; undefined when this owner may not have the asset, which was logged. */
  announce(owner: Owner, about: AssetDescription, commands: readonly Command[]): Asset | undefined {
    const { kit_id, clock, changed } = this.#parts;
    const facts = factsOf(kit_id, owner, about);
    const asset = this.#assets.get(about.asset_key) ?? new Asset(this.#parts, facts, clock.stamp().time_ms);
    const obstacle = this.#obstacle(owner, asset, facts);
    if (obstacle) {
      const { asset_key, name } = about;
      owner.log.warn({ asset_key, name, reason: obstacle }, 'asset is refused; what it says is dropped');
      return undefined;
    }
    this.#assets.set(about.asset_key, asset);
    asset.claimed = true;
    this.#parts.streams.want(about.asset_key, about.rtsp_url ?? null);
    asset.facts = { ...facts, whep_url: this.#parts.streams.urlOf(about.asset_key) };
    asset.commands = usableCommands(commands, owner.log);
    if (asset.gate?.feeds !== owner.feeds) {
      asset.gate?.close();
      asset.gate = createFeedGate({ ...this.#parts, asset_id: facts.id, feeds: owner.feeds });
    }
    if (about.offline_reason) {
      asset.begin(about.offline_reason);
    } else {
      asset.touch();
      asset.setOnline(true);
    }
    asset.announce();
    this.#announceCommands(asset);
    changed();
    return asset;
  }

  /** Viewers find the stream of this asset elsewhere, or no more. */
  streamChanged(asset_key: string): void {
    const asset = this.#assets.get(asset_key);
    if (!asset?.claimed) return;
    asset.facts = { ...asset.facts, whep_url: this.#parts.streams.urlOf(asset_key) };
    asset.announce();
  }

  /** Commands of the kit's gateway that another driver than the gateway's own serves. */
  serveGateway(owner: Owner, commands: readonly Command[]): void {
    if (commands.length > 0) this.#gateway_commands.set(owner.name, usableCommands(commands, owner.log));
    else this.#gateway_commands.delete(owner.name);
    const gateway = this.#gateway();
    if (gateway?.claimed) this.#announceCommands(gateway);
  }

  remove(asset: Asset): void {
    this.#parts.streams.want(asset.facts.asset_key, null);
    this.#assets.delete(asset.facts.asset_key);
    asset.remove();
  }

  /** All assets of this driver instance are offline, and its commands of the gateway are gone. */
  lose(owner_name: string, reason: string): void {
    if (this.#gateway_commands.delete(owner_name)) {
      const gateway = this.#gateway();
      if (gateway?.claimed) this.#announceCommands(gateway);
    }
    for (const asset of this.#assets.values()) {
      if (asset.facts.driver === owner_name) asset.setOnline(false, reason);
    }
  }

  /** The driver instance is not part of the kit any more, nor is what it announced. */
  retire(owner_name: string): void {
    this.lose(owner_name, 'its driver was removed');
    for (const asset of this.#assets.values()) {
      if (asset.facts.driver === owner_name) this.remove(asset);
    }
  }

  /** Local policy on commands is another: what is offered follows. */
  policyChanged(): void {
    for (const asset of this.#assets.values()) if (asset.claimed) this.#announceCommands(asset);
  }

  announceAgain(): void {
    for (const asset of this.#assets.values()) asset.announceAgain();
  }

  /** The command, live, or a sentence for the operator. */
  find(asset_id: string, command_name: string): FoundCommand {
    const asset = this.#assets.values().find((each) => each.facts.id === asset_id);
    if (!asset) return { refusal: `this kit has no asset ${asset_id}` };
    if (asset.claimed) {
      return findAmong(this.#commandsOf(asset), asset.target(), command_name, this.#parts.allow);
    }
    const { name, driver } = asset.facts;
    return { refusal: `${name} is offline: ${driver} has not reached it since the connector was started` };
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

  #gateway(): Asset | undefined {
    return this.#assets.values().find((asset) => asset.facts.type === 'gateway');
  }

  #commandsOf(asset: Asset): readonly Command[] {
    if (asset !== this.#gateway()) return asset.commands;
    return [...asset.commands, ...[...this.#gateway_commands.values()].flat()];
  }

  #announceCommands(asset: Asset): void {
    const { kit_id, allow } = this.#parts;
    const enabled = this.#commandsOf(asset).filter((command) => allow(asset.target(), command) === true);
    asset.announceCommands(definitionsOf(kit_id, asset.facts.asset_key, enabled));
  }

  /** Why this owner may not announce this asset. */
  #obstacle(owner: Owner, asset: Asset, facts: AssetFacts): string | undefined {
    if (asset.claimed && asset.facts.driver !== owner.name) {
      return `driver ${asset.facts.driver} announced an asset with this key first`;
    }
    if (!this.#assets.has(facts.asset_key) && this.#assets.size >= assets_max) {
      return `a kit has at most ${assets_max} assets`;
    }
    const fault = announcement.safeParse({ ...asset.announcement(), ...facts }).error;
    return fault && prettifyError(fault);
  }
}

/** Takes over what an earlier run left announced, and takes back what no configured driver stands for. */
function restoreAssets(parts: AssetsParts): Map<string, Asset> {
  const left = parts.announced.filter(
    ({ channel, body }) => channelKind(channel) === 'asset' && body !== 'null',
  );
  const bodies = new Map(left.map(({ channel, body }) => [channel, parsed(body)]));
  const found = new Map<string, Asset>();
  for (const body of bodies.values()) {
    const { data: earlier } = announcement.safeParse(body);
    if (!earlier || !parts.configured.includes(earlier.driver)) continue;
    // The ids of another kit_id are not the kit's any more.
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
      parts.log.info({ asset_key, name }, 'its driver or kit_id is not configured any more: taken back');
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

function factsOf(kit_id: string, owner: Owner, about: AssetDescription): AssetFacts {
  const { asset_key, name, type, protocol, vendor, model, firmware, parent_key } = about;
  return {
    id: assetId(kit_id, asset_key),
    asset_key,
    name,
    type,
    vendor: vendor ?? null,
    model: model ?? null,
    firmware: firmware ?? null,
    protocol,
    parent_id: parent_key ? assetId(kit_id, parent_key) : null,
    whep_url: null,
    feeds: Object.keys(owner.feeds),
    driver: owner.name,
  };
}

function viewOf(asset: Asset): AssetView {
  const { id, asset_key, name, type, driver, status, status_reason, last_seen_at } = asset.announcement();
  const feeds = asset.gate?.view() ?? {};
  return { id, key: asset_key, name, type, driver, status, reason: status_reason, last_seen_at, feeds };
}
