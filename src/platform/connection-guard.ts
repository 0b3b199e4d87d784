/**
 * Limits the connections of each client, and under pressure closes those without a complete request: otherwise one host or
 * program with many incomplete requests would lock out all others.
 */
import type { Server } from 'node:http';
import type { Socket } from 'node:net';

/** What a connection counts for: an address, a process, a user. */
export interface Share {
  readonly name: string;
  readonly connections_max: number;
}

export interface GuardLimits {
  /** From this many connections, a new one replaces the oldest that waits for the rest of a request. */
  readonly pressure_connections: number;
  /** Called for a share that is used up, once a minute at most. */
  readonly onFull: (share: Share) => void;
}

const log_every_ms = 60_000;

export class ConnectionGuard {
  readonly #limits: GuardLimits;
  readonly #shares = new Map<Socket, readonly Share[]>();
  readonly #byShare = new Map<string, Set<Socket>>();
  /** Without a request under way, the oldest first. */
  readonly #waiting = new Set<Socket>();
  readonly #requests = new Map<Socket, number>();
  #logged_ms = Number.NEGATIVE_INFINITY;

  constructor(limits: GuardLimits) {
    this.#limits = limits;
  }

  /** Accepts a new connection, perhaps in place of another one, or closes it. The first share is the smallest. */
  open(socket: Socket, shares: readonly Share[]): void {
    for (const share of shares) {
      const own = this.#byShare.get(share.name);
      if (!own || own.size < share.connections_max) continue;
      this.#log(share);
      const oldest = [...own].find((each) => this.#waiting.has(each));
      if (!oldest) {
        socket.destroy();
        return;
      }
      this.#cut(oldest);
    }
    if (this.#shares.size >= this.#limits.pressure_connections) {
      const [oldest] = this.#waiting;
      if (oldest) this.#cut(oldest);
    }
    this.#shares.set(socket, shares);
    for (const { name } of shares)
      this.#byShare.set(name, (this.#byShare.get(name) ?? new Set()).add(socket));
    // The request of a connection may be there before its shares are known.
    if (!this.#requests.has(socket)) this.#waiting.add(socket);
    socket.once('close', () => this.#forget(socket));
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
        if (left <= 0 && this.#shares.has(socket)) this.#waiting.add(socket);
      },
    };
  }

  /** Closes all connections. */
  cutAll(): void {
    for (const socket of this.#shares.keys()) this.#cut(socket);
  }

  #cut(socket: Socket): void {
    this.#forget(socket);
    socket.destroy();
  }

  #forget(socket: Socket): void {
    this.#waiting.delete(socket);
    this.#requests.delete(socket);
    for (const { name } of this.#shares.get(socket) ?? []) {
      const own = this.#byShare.get(name);
      own?.delete(socket);
      if (own?.size === 0) this.#byShare.delete(name);
    }
    this.#shares.delete(socket);
  }

  #log(share: Share): void {
    const now_ms = performance.now();
    if (now_ms - this.#logged_ms < log_every_ms) return;
    this.#logged_ms = now_ms;
    this.#limits.onFull(share);
  }
}

/** Notes the requests of a server in the guard of its connections. */
export function noteRequests(server: Server, guard: ConnectionGuard): void {
  server.on('request', ({ socket }, response) => response.once('close', guard.request(socket).ended));
}
