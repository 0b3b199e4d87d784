/**
 * Limits the connections per address, and under pressure closes those without a complete request: otherwise one host with
 * 1,100 incomplete requests would lock out all others.
 */
import type { Socket } from 'node:net';
import { texts } from '../../texts.ts';

/** Connections in all. */
export const connections_max = 1_024;
/** Per address. A proxy on this machine is exempt. */
export const address_connections_max = 64;
/** From this many connections, a new one replaces the oldest that waits for the rest of a request. */
const pressure_connections = 768;
/** Refused addresses are logged once per interval. */
const log_every_ms = 60_000;

export interface ConnectionLog {
  warn(facts: object, sentence: string): void;
}

export class ConnectionGuard {
  readonly #log: ConnectionLog;
  readonly #byAddress = new Map<string, Set<Socket>>();
  /** Without a request under way, the oldest first. */
  readonly #waiting = new Set<Socket>();
  readonly #requests = new Map<Socket, number>();
  #count = 0;
  #logged_ms = Number.NEGATIVE_INFINITY;

  constructor(log: ConnectionLog) {
    this.#log = log;
  }

  /** Accepts a new connection, perhaps in place of another one, or closes it. */
  open(socket: Socket): void {
    const address = networkOf(socket.remoteAddress);
    const own = this.#byAddress.get(address) ?? new Set<Socket>();
    if (!isProxy(address) && own.size >= address_connections_max) {
      this.#logRefusal(address);
      const oldest = [...own].find((each) => this.#waiting.has(each));
      if (!oldest) {
        socket.destroy();
        return;
      }
      this.#cut(oldest);
    } else if (this.#count >= pressure_connections) {
      const [oldest] = this.#waiting;
      if (oldest) this.#cut(oldest);
    }
    own.add(socket);
    this.#byAddress.set(address, own);
    this.#waiting.add(socket);
    this.#count += 1;
    socket.once('close', () => this.#forget(socket, address));
  }

  /** Notes a complete request; call `ended` after its response. A WebSocket has none. */
  request(socket: Socket): { readonly ended: () => void } {
    this.#requests.set(socket, (this.#requests.get(socket) ?? 0) + 1);
    this.#waiting.delete(socket);
    return {
      ended: () => {
        const left = (this.#requests.get(socket) ?? 1) - 1;
        if (left > 0) this.#requests.set(socket, left);
        else this.#requests.delete(socket);
        if (left <= 0 && !socket.destroyed) this.#waiting.add(socket);
      },
    };
  }

  /** Closes all connections. */
  cutAll(): void {
    for (const own of this.#byAddress.values()) for (const socket of own) this.#cut(socket);
  }

  #cut(socket: Socket): void {
    this.#forget(socket, networkOf(socket.remoteAddress));
    socket.destroy();
  }

  #forget(socket: Socket, address: string): void {
    const own = this.#byAddress.get(address);
    this.#waiting.delete(socket);
    this.#requests.delete(socket);
    if (!own?.delete(socket)) return;
    this.#count -= 1;
    if (own.size === 0) this.#byAddress.delete(address);
  }

  #logRefusal(address: string): void {
    const now_ms = performance.now();
    if (now_ms - this.#logged_ms < log_every_ms) return;
    this.#logged_ms = now_ms;
    this.#log.warn({ address, connections: address_connections_max }, texts.log_connections);
  }
}

/** A proxy on this machine carries the connections of many clients. */
const proxies: ReadonlySet<string> = new Set(['127.0.0.1', '::1']);

/** Whether this address, as `networkOf` returns it, is that of a proxy on this machine. */
export function isProxy(network: string): boolean {
  return proxies.has(network);
}

/** Returns the address; for IPv6 the /64 network of the host, with the zeros that its short form leaves out. */
export function networkOf(address: string | undefined): string {
  const plain = (address ?? '').replace(/^::ffff:/iu, '').replace(/%.*$/u, '');
  if (!plain.includes(':') || proxies.has(plain)) return plain;
  const [before = [], after] = plain.split('::').map((part) => part.split(':').filter(Boolean));
  const written = before.length + (after?.length ?? 0);
  const zeros = after ? Array.from({ length: Math.max(0, ipv6_groups - written) }, () => '0') : [];
  return [...before, ...zeros, ...(after ?? [])].slice(0, network_groups).join(':');
}
const ipv6_groups = 8;
const network_groups = 4;
