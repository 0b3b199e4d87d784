/**
 * Serves the requests of one connection one after the other. HTTP/1.1 lets a client send many without waiting for an answer, and
 * Node.js hands them all over at once: a stranger's 1,000 requests in one packet would be one long turn of the event loop.
 */
import type { ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';

/** Requests that may wait behind the one under way; a connection that sends more is closed. */
const pipelined_max = 32;

export class Pipeline {
  /** Waiting requests of each connection that has one in progress. */
  readonly #waiting = new WeakMap<Duplex, (() => void)[]>();

  /** Begins the request after those before it on this connection, in another turn of the event loop. */
  take(socket: Duplex, response: ServerResponse, begin: () => void): void {
    if (socket.destroyed) return;
    const waiting = this.#waiting.get(socket);
    if (waiting && waiting.length >= pipelined_max) {
      socket.destroy();
      return;
    }
    response.once('close', () => this.#next(socket));
    if (waiting) {
      waiting.push(begin);
      return;
    }
    this.#waiting.set(socket, []);
    begin();
  }

  #next(socket: Duplex): void {
    const next = socket.destroyed ? undefined : this.#waiting.get(socket)?.shift();
    if (next) setImmediate(next);
    else this.#waiting.delete(socket);
  }
}
