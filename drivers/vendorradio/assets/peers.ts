/** Mesh peers as assets: children of the radio that receives them, unless they are configured radios. */
import type { vendorradioFeeds } from '../../../src/contract/feeds.ts';
import type { AssetSink, DriverHost } from '../../../src/toolkit/driver/driver.ts';
import { type Context, isHeard, offlineMessage, radioMessage } from './feeds.ts';
import type { Limits } from '../limits.ts';
import { assetKeyOf, type Station } from '../reading.ts';
import { texts } from '../texts.ts';

export interface PeersParts {
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

export class Peers {
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

  /** Their radio was replaced by another one. */
  forget(): void {
    this.#peers.clear();
    this.#isFull = false;
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
