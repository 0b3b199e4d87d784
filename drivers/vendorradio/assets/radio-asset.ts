/** The asset of one radio: announces it, publishes its feeds at each poll, and reports when it is offline. */
import type { vendorradioFeeds } from '../../../src/contract/feeds.ts';
import type { AssetSink, DriverHost } from '../../../src/toolkit/driver/driver.ts';
import { fails, notOffered, works } from '../../../src/toolkit/driver/health.ts';
import {
  type Context,
  gpsMessage,
  linkMessage,
  meshMessage,
  offlineMessage,
  primaryOf,
  radioMessage,
  statusMessage,
  isHeard,
} from './feeds.ts';
import type { Limits } from '../limits.ts';
import type { RadioOptions, VendorradioOptions } from '../options.ts';
import { assetKeyOf, type Identity, type Reading, type Station } from '../reading.ts';
import type { Known } from '../source.ts';
import { texts } from '../texts.ts';

type Host = DriverHost<typeof vendorradioFeeds>;

export interface RadioAssetParts {
  readonly host: Host;
  readonly radio: RadioOptions;
  readonly options: VendorradioOptions;
  readonly limits: Limits;
  readonly registry: Registry;
}

interface Announced {
  readonly identity: Identity;
  readonly key: string;
  readonly sink: AssetSink<typeof vendorradioFeeds>;
}

export class RadioAsset {
  readonly #parts: RadioAssetParts;
  readonly #peers: Peers | undefined;
  #announced: Announced | undefined;
  #before: Reading | undefined;
  #isOnline = false;
  #status_told_ms = -Infinity;
  #status_source: string | null = null;

  constructor(parts: RadioAssetParts) {
    const { host, radio, options, limits, registry } = parts;
    this.#parts = parts;
    const heartbeat_ms = options.heartbeat_s * 1_000;
    const isConfigured = (mac: string): boolean => registry.has(mac);
    const peers_parts = { host, radio: radio.name, limits, isConfigured, heartbeat_ms };
    this.#peers = options.peers === 'assets' ? new Peers(peers_parts) : undefined;
  }

  announce({ identity, commands }: Known): void {
    const { host, radio } = this.#parts;
    const key = assetKeyOf(identity.mac);
    const description = {
      asset_key: key,
      name: radio.name,
      type: 'radio',
      protocol: 'vendorradio',
      vendor: identity.vendor,
      model: identity.model,
      firmware: identity.firmware,
      configured: true,
      health: { commands: notOffered() },
    } as const;
    this.#announced = { identity, key, sink: host.announce(description, commands) };
    this.#before = undefined;
    this.#status_told_ms = -Infinity;
  }

  see(reading: Reading): void {
    if (!this.#announced) return;
    const { identity, key, sink } = this.#announced;
    const { registry } = this.#parts;
    registry.report(identity.mac, reading.at_mono_ms, reading.stations);
    const context = this.#context(identity, reading);
    if (!this.#isOnline) sink.setOnline(true);
    sink.setHealth('state', reading.gap === undefined ? works : fails(reading.gap));
    sink.publish('radio', radioMessage(context, primaryOf(context)));
    sink.publish('link', linkMessage(context));
    const mesh = meshMessage(context);
    if (mesh) sink.publish('mesh', mesh);
    const gps = gpsMessage(reading);
    if (gps) {
      sink.publish('gps', gps);
      sink.setPosition({ lat: gps.lat, lon: gps.lon });
    }
    this.#tellStatus(context, sink);
    this.#peers?.see(context, key);
    this.#isOnline = true;
    this.#before = reading;
  }

  lose(reason: string): void {
    this.#before = undefined;
    if (this.#isOnline) this.#sayOffline(reason);
  }

  #sayOffline(reason: string): void {
    const timestamp = new Date().toISOString();
    this.#peers?.lose(texts.its_radio(reason), timestamp);
    if (!this.#announced || !this.#isOnline) return;
    const { identity, sink } = this.#announced;
    sink.publish('status', offlineMessage(identity, timestamp));
    sink.setOnline(false, reason);
    this.#isOnline = false;
  }

  /** An event for the cloud, kept until acknowledged: at changes and as heartbeat, not at each poll. */
  #tellStatus(context: Context, sink: Announced['sink']): void {
    const now_ms = performance.now();
    const { source } = context.reading;
    const isDue = now_ms - this.#status_told_ms >= this.#parts.options.heartbeat_s * 1_000;
    if (!isDue && this.#isOnline && source === this.#status_source) return;
    this.#status_told_ms = now_ms;
    this.#status_source = source;
    sink.publish('status', statusMessage(context));
  }

  #context(identity: Identity, reading: Reading): Context {
    const { radio, options, limits, registry } = this.#parts;
    return {
      identity,
      reading,
      before: this.#before,
      primary_peer: radio.primary_peer,
      peer_lost_ms: limits.peer_lost_ms,
      neighbours_max: limits.neighbours_max,
      book: {
        nameOf: (mac) => options.names.get(mac) ?? registry.nameOf(mac),
        assetOf: (mac) => registry.assetKey(mac),
        remoteRssiOf: (mac) => registry.rssiAt(mac, identity.mac, limits.report_fresh_ms),
      },
      timestamp: new Date().toISOString(),
    };
  }
}

// Mesh peers as assets: children of the radio that receives them, unless they are configured radios.

interface PeersParts {
  readonly host: DriverHost<typeof vendorradioFeeds>;
  readonly radio: string;
  readonly limits: Limits;
  readonly isConfigured: (mac: string) => boolean;
  readonly heartbeat_ms: number;
}

interface Peer {
  /** Polls in a row in which it was received, or was missing. */
  heard: number;
  missed: number;
  sink: AssetSink<typeof vendorradioFeeds> | undefined;
  isOnline: boolean;
  told_ms: number;
}

const no_identity = { hostname: null, firmware: null, serial: null };
/** Limit of counted peers that are no assets yet. */
const candidates_max = 256;

class Peers {
  readonly #parts: PeersParts;
  readonly #peers = new Map<string, Peer>();
  #isFull = false;

  constructor(parts: PeersParts) {
    this.#parts = parts;
  }

  see(context: Context, root_key: string): void {
    const { limits, isConfigured } = this.#parts;
    const heard = new Map(
      (context.reading.stations ?? [])
        .filter((station) => isHeard(station, limits.peer_lost_ms))
        .map((station) => [station.mac, station]),
    );
    for (const mac of heard.keys()) {
      if (!this.#peers.has(mac) && !isConfigured(mac) && this.#peers.size < candidates_max) {
        this.#peers.set(mac, { heard: 0, missed: 0, sink: undefined, isOnline: false, told_ms: 0 });
      }
    }
    for (const [mac, peer] of this.#peers) {
      if (isConfigured(mac)) {
        peer.sink?.remove();
        this.#peers.delete(mac);
      } else {
        this.#follow(mac, peer, { station: heard.get(mac), context, root_key });
      }
    }
  }

  /** Their radio is offline, so their state is unknown. */
  lose(reason: string, timestamp: string): void {
    for (const peer of this.#peers.values()) this.#gone(peer, reason, timestamp);
  }

  #follow(
    mac: string,
    peer: Peer,
    { station, context, root_key }: { station: Station | undefined; context: Context; root_key: string },
  ): void {
    const { limits, heartbeat_ms } = this.#parts;
    if (!station) {
      peer.heard = 0;
      peer.missed += 1;
      if (peer.sink === undefined) this.#peers.delete(mac);
      else if (peer.missed >= limits.peer_gone_polls) {
        this.#gone(peer, texts.peer_lost(limits.peer_lost_ms / 1_000), context.timestamp);
      }
      return;
    }
    peer.missed = 0;
    peer.heard += 1;
    if (!peer.sink && (peer.heard < limits.peer_new_polls || !this.#hasRoom())) return;
    peer.sink ??= this.#announce(mac, root_key, context);
    peer.sink.publish('radio', radioMessage(context, station));
    const now_ms = performance.now();
    if (peer.isOnline && now_ms - peer.told_ms < heartbeat_ms) return;
    if (!peer.isOnline) peer.sink.setOnline(true);
    peer.isOnline = true;
    peer.told_ms = now_ms;
    const status = {
      ...offlineMessage(no_identity, context.timestamp),
      online: true,
      source: 'peer' as const,
    };
    peer.sink.publish('status', { ...status, inactive_ms: station.inactive_ms });
  }

  #gone(peer: Peer, reason: string, timestamp: string): void {
    if (!peer.sink || !peer.isOnline) return;
    peer.isOnline = false;
    peer.sink.publish('status', offlineMessage(no_identity, timestamp));
    peer.sink.setOnline(false, reason);
  }

  #announce(mac: string, parent_key: string, { book }: Context): AssetSink<typeof vendorradioFeeds> {
    return this.#parts.host.announce({
      asset_key: `${parent_key}:peer:${assetKeyOf(mac).slice('radio:'.length)}`,
      name: book.nameOf(mac) ?? `Peer ${mac.slice(-5).toUpperCase()}`,
      type: 'radio',
      protocol: 'vendorradio',
      parent_key,
    });
  }

  #hasRoom(): boolean {
    const { limits, host, radio } = this.#parts;
    const count = [...this.#peers.values()].filter(({ sink }) => sink).length;
    if (count < limits.peer_assets_max) return true;
    if (!this.#isFull) {
      host.log.warn({ radio, peers: count }, texts.peers_max);
    }
    this.#isFull = true;
    return false;
  }
}

// Shared data of the radios of one driver: owners of MAC addresses, and the signals that each measures of the others.

interface Report {
  readonly at_mono_ms: number;
  readonly rssi_of: ReadonlyMap<string, number | null>;
}

export class Registry {
  /** By name of the radio in the configuration. */
  readonly #macs = new Map<string, string>();
  /** By MAC address of the receiving radio. */
  readonly #reports = new Map<string, Report>();

  /** The radio answered. The driver's bindings decide the owner, so an older record of another entry is replaced. */
  answered(name: string, mac: string): void {
    for (const [other, known] of this.#macs) if (known === mac) this.#macs.delete(other);
    this.#macs.set(name, mac);
  }

  /** From before the restart, until it answers. */
  remember(name: string, mac: string): void {
    if (![...this.#macs.values()].includes(mac)) this.#macs.set(name, mac);
  }

  /** The radio is not configured any more, or in another way. */
  forget(name: string): void {
    this.#macs.delete(name);
  }

  has(mac: string): boolean {
    return [...this.#macs.values()].includes(mac);
  }

  assetKey(mac: string): string | null {
    return this.has(mac) ? assetKeyOf(mac) : null;
  }

  nameOf(mac: string): string | null {
    return [...this.#macs].find(([, known]) => known === mac)?.[0] ?? null;
  }

  report(mac: string, at_mono_ms: number, stations: readonly Station[] | undefined): void {
    this.#reports.set(mac, { at_mono_ms, rssi_of: new Map(stations?.map((each) => [each.mac, each.rssi])) });
  }

  /** Signal of `mac` at `peer`, if measured within `fresh_ms`. */
  rssiAt(peer: string, mac: string, fresh_ms: number): number | null {
    const report = this.#reports.get(peer);
    if (!report || performance.now() - report.at_mono_ms > fresh_ms) return null;
    return report.rssi_of.get(mac) ?? null;
  }
}
