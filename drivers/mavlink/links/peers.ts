/**
 * The recent senders of a UDP port. On an open network anyone can be one: a flood of them drops none that keeps sending, and only
 * the oldest receive broadcasts.
 */
import type { RemoteInfo } from 'node:dgram';
import { isIPv6 } from 'node:net';
import { silenceSince } from '../../../src/platform/stalls.ts';

/** After this silence nothing is sent to a peer: its port may belong to another process. */
export const peer_silence_max_ms = 15_000;
/** Of each of two generations. A peer that sends ten times a second stays for one at 20,000 new peers a second. */
const generation_max = 2_048;
/** Peers that receive what is for all, of all hosts and of one. */
const addressed_max = 64;
const host_addressed_max = 32;
/** Bytes that a peer is sent for each byte from it: more would let a forged source turn the kit against that address (RFC 9000, 8.1). */
const amplification_max = 3;
/** Senders whose clock is behind: they receive only what is for all. */
const behind_max = 8;

export interface Address {
  readonly host: string;
  readonly port: number;
}

/** A sender, and how much it may still be sent. */
export class Peer implements Address {
  readonly name: string;
  readonly host: string;
  readonly port: number;
  readonly first_ms: number;
  received_ms: number;
  #allowance: number;

  /** `of`: the same peer in the earlier generation. */
  constructor({ address, port }: RemoteInfo, now_ms: number, of?: Peer) {
    this.name = nameOf({ address, port });
    this.host = address;
    this.port = port;
    this.first_ms = of?.first_ms ?? now_ms;
    this.received_ms = now_ms;
    this.#allowance = of ? of.#allowance : 0;
  }

  received(bytes: number, now_ms: number): void {
    this.received_ms = now_ms;
    this.#allowance += bytes * amplification_max;
  }

  allows(bytes: number): boolean {
    return bytes <= this.#allowance;
  }

  /** Takes the bytes from what it may be sent; false, and nothing is taken, when they are more. */
  take(bytes: number): boolean {
    if (!this.allows(bytes)) return false;
    this.#allowance -= bytes;
    return true;
  }
}

/** Found by host and port, since formatting a name for each datagram costs more; and by name. */
class Generation {
  readonly #by_host = new Map<string, Map<number, Peer>>();
  readonly by_name = new Map<string, Peer>();

  at({ address, port }: RemoteInfo): Peer | undefined {
    return this.#by_host.get(address)?.get(port);
  }

  add(peer: Peer): void {
    const of_host = this.#by_host.get(peer.host) ?? new Map<number, Peer>();
    this.#by_host.set(peer.host, of_host);
    of_host.set(peer.port, peer);
    this.by_name.set(peer.name, peer);
  }
}

export class Peers {
  readonly #silence_max_ms: number;
  #current = new Generation();
  #previous = new Generation();
  #behind: readonly Peer[] = [];

  constructor(silence_max_ms: number) {
    this.#silence_max_ms = silence_max_ms;
  }

  nameOf(from: RemoteInfo): string {
    return this.#at(from)?.name ?? nameOf(from);
  }

  /** Notes an accepted datagram of so many bytes. */
  received(from: RemoteInfo, bytes: number, now_ms: number): void {
    const known = this.#current.at(from);
    if (known) {
      known.received(bytes, now_ms);
      return;
    }
    const earlier = this.#previous.at(from);
    const isRecent = earlier !== undefined && this.#isRecent(earlier, now_ms);
    const peer = new Peer(from, now_ms, isRecent ? earlier : undefined);
    peer.received(bytes, now_ms);
    this.#add(peer);
    if (this.#behind.length > 0) this.#behind = this.#behind.filter((each) => !isAt(each, from));
  }

  /** Notes a sender whose frames do not count because of its clock. It must receive ours to follow it. */
  behind(from: RemoteInfo, bytes: number, now_ms: number): void {
    const known = this.#at(from);
    if (known && this.#isRecent(known, now_ms)) return;
    const others = this.#behind.filter((each) => !isAt(each, from));
    const peer = new Peer(
      from,
      now_ms,
      this.#behind.find((each) => isAt(each, from)),
    );
    peer.received(bytes, now_ms);
    this.#behind = [...others.slice(-(behind_max - 1)), peer];
  }

  /** Returns the oldest peers, limited for each host. */
  all(now_ms: number): readonly Peer[] {
    const peers = new Map([...this.#previous.by_name, ...this.#current.by_name]);
    const of_host = new Map<string, number>();
    const recent = [...peers.values()]
      .filter((peer) => this.#isRecent(peer, now_ms))
      .toSorted((a, b) => a.first_ms - b.first_ms)
      .filter(({ host }) => {
        const count = (of_host.get(host) ?? 0) + 1;
        of_host.set(host, count);
        return count <= host_addressed_max;
      });
    const behind = this.#behind.filter((peer) => this.#isRecent(peer, now_ms));
    return [...recent.slice(0, addressed_max), ...behind];
  }

  named(name: string, now_ms: number): readonly Peer[] {
    const peer = this.#current.by_name.get(name) ?? this.#previous.by_name.get(name);
    return peer && this.#isRecent(peer, now_ms) ? [peer] : [];
  }

  #at(from: RemoteInfo): Peer | undefined {
    return this.#current.at(from) ?? this.#previous.at(from);
  }

  #isRecent({ received_ms }: Peer, now_ms: number): boolean {
    return silenceSince(received_ms, now_ms) <= this.#silence_max_ms;
  }

  #add(peer: Peer): void {
    if (this.#current.by_name.size >= generation_max) {
      this.#previous = this.#current;
      this.#current = new Generation();
    }
    this.#current.add(peer);
  }
}

function isAt({ host, port }: Address, from: RemoteInfo): boolean {
  return port === from.port && host === from.address;
}

/** Returns the address in the name of a peer, with or without its port, without brackets. */
export function hostOf(peer: string): string {
  return peer.replace(/:\d+$/u, '').replace(/^\[|\]$/gu, '');
}

function nameOf({ address, port }: Pick<RemoteInfo, 'address' | 'port'>): string {
  return isIPv6(address) ? `[${address}]:${port}` : `${address}:${port}`;
}
