/** The stations of a listening UDP endpoint: recent senders of frames. */
import type { RemoteInfo } from 'node:dgram';
import { plainIp } from '../../../src/platform/networks.ts';
import { isPublicIp } from '../../../src/platform/public-ip.ts';
import { silenceSince } from '../../../src/platform/stalls.ts';
import { Peer } from '../links/peers.ts';

/** A station that sends nothing for this long is gone: its port may belong to another process. */
const silence_max_ms = 15_000;

export interface StationsParts {
  readonly peers_max: number;
  readonly joined: (peer: string) => void;
  readonly left: (peer: string) => void;
}

export class Stations {
  readonly #parts: StationsParts;
  #peers: readonly Peer[] = [];

  constructor(parts: StationsParts) {
    this.#parts = parts;
  }

  /** Whether a new station has no place. `now_ms` is monotonic. */
  isFullFor(from: RemoteInfo, now_ms: number): boolean {
    return !this.#at(from) && this.recent(now_ms).length >= this.#parts.peers_max;
  }

  /** Notes a frame of a station that has a place. */
  received(from: RemoteInfo, bytes: number, now_ms: number): void {
    const known = this.#at(from);
    const peer = known ?? new Peer(from, now_ms);
    peer.received(bytes, now_ms);
    if (known) return;
    this.#peers = [...this.#peers, peer];
    this.#parts.joined(peer.name);
  }

  recent(now_ms: number): readonly Peer[] {
    const isRecent = ({ received_ms }: Peer): boolean => silenceSince(received_ms, now_ms) <= silence_max_ms;
    if (this.#peers.every(isRecent)) return this.#peers;
    const gone = this.#peers.filter((peer) => !isRecent(peer));
    this.#peers = this.#peers.filter(isRecent);
    for (const { name } of gone) this.#parts.left(name);
    return this.#peers;
  }

  #at({ address, port }: RemoteInfo): Peer | undefined {
    return this.#peers.find((each) => each.port === port && each.host === address);
  }
}

/**
 * Whether a station may be sent so many bytes more. Its address may be forged, and then the one who has it would receive all
 * telemetry for the price of a heartbeat: one in the internet gets as little as a vehicle does.
 */
export function mayReceive(station: Peer, bytes: number): boolean {
  return !isPublicIp(plainIp(station.host)) || station.take(bytes);
}
