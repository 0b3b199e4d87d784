/**
 * The recent senders of a UDP port. On an open network anyone can be one: many of them displace none that keeps sending, and only
 * the oldest receive broadcasts.
 */
import type { RemoteInfo } from 'node:dgram';
import { isIPv6 } from 'node:net';
import { silenceSince } from '../../../src/platform/stalls.ts';

/** After this silence nothing is sent to a peer: its port may belong to another process. */
export const peer_silence_max_ms = 15_000;
/** When there are so many, one that was not heard again gives way to the next. */
const peers_max = 1_024;
/** A peer that was heard for longer keeps its place while it is heard. */
const confirmed_after_ms = 1_000;
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
  #allowance = 0;

  constructor({ address, port }: RemoteInfo, now_ms: number) {
    this.name = nameOf({ address, port });
    this.host = address;
    this.port = port;
    this.first_ms = now_ms;
    this.received_ms = now_ms;
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

export class Peers {
  readonly #silence_max_ms: number;
  /** By name, the oldest first. */
  readonly #peers = new Map<string, Peer>();
  readonly #behind = new Map<string, Peer>();

  constructor(silence_max_ms: number) {
    this.#silence_max_ms = silence_max_ms;
  }

  /** Notes an accepted datagram of so many bytes. */
  received(from: RemoteInfo, bytes: number, now_ms: number): void {
    const name = nameOf(from);
    const peer = this.#at(name, now_ms) ?? this.#add(new Peer(from, now_ms));
    peer.received(bytes, now_ms);
    this.#behind.delete(name);
  }

  /** Notes a sender whose frames do not count because of its clock. It must receive ours to follow it. */
  behind(from: RemoteInfo, bytes: number, now_ms: number): void {
    const name = nameOf(from);
    if (this.#at(name, now_ms)) return;
    const peer = this.#behind.get(name) ?? new Peer(from, now_ms);
    peer.received(bytes, now_ms);
    this.#behind.delete(name);
    this.#behind.set(name, peer);
    const [oldest] = this.#behind.keys();
    if (this.#behind.size > behind_max && oldest !== undefined) this.#behind.delete(oldest);
  }

  /** Returns the oldest peers, limited for each host. */
  all(now_ms: number): readonly Peer[] {
    const of_host = new Map<string, number>();
    const isRecent = (peer: Peer): boolean => this.#isRecent(peer, now_ms);
    const recent = [...this.#peers.values()].filter(isRecent).filter(({ host }) => {
      const count = (of_host.get(host) ?? 0) + 1;
      of_host.set(host, count);
      return count <= host_addressed_max;
    });
    return [...recent.slice(0, addressed_max), ...[...this.#behind.values()].filter(isRecent)];
  }

  named(name: string, now_ms: number): readonly Peer[] {
    const peer = this.#at(name, now_ms);
    return peer ? [peer] : [];
  }

  #at(name: string, now_ms: number): Peer | undefined {
    const peer = this.#peers.get(name);
    return peer && this.#isRecent(peer, now_ms) ? peer : undefined;
  }

  #isRecent({ received_ms }: Peer, now_ms: number): boolean {
    return silenceSince(received_ms, now_ms) <= this.#silence_max_ms;
  }

  /** One that was silent for too long is new when it is heard again. */
  #add(peer: Peer): Peer {
    this.#peers.delete(peer.name);
    if (this.#peers.size >= peers_max) this.#dropOne(peer.received_ms);
    this.#peers.set(peer.name, peer);
    return peer;
  }

  /** Drops the oldest that is silent or was not heard for long; where there is none, the one that was heard least recently. */
  #dropOne(now_ms: number): void {
    let victim: Peer | undefined;
    for (const peer of this.#peers.values()) {
      const isConfirmed = peer.received_ms - peer.first_ms >= confirmed_after_ms;
      if (!victim || peer.received_ms < victim.received_ms) victim = peer;
      if (isConfirmed && this.#isRecent(peer, now_ms)) continue;
      victim = peer;
      break;
    }
    if (victim) this.#peers.delete(victim.name);
  }
}

/** Returns the address in the name of a peer, with or without its port, without brackets. */
export function hostOf(peer: string): string {
  return peer.replace(/:\d+$/u, '').replace(/^\[|\]$/gu, '');
}

export function nameOf({ address, port }: Pick<RemoteInfo, 'address' | 'port'>): string {
  return isIPv6(address) ? `[${address}]:${port}` : `${address}:${port}`;
}
