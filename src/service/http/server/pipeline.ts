/**
 * Begins requests a few at a time, and those of one connection one after the other. HTTP/1.1 lets a client send many without waiting for
 * an answer, and Node.js hands all of a packet over at once, of each connection: a stranger's packets would be one long turn of the
 * event loop.
 */
import type { ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';

/** Requests that may wait behind the one under way; a connection that sends more is closed. */
const pipelined_max = 8;
/** Requests of all connections that begin in one turn of the event loop: each may take more than a millisecond. */
const begun_a_turn_max = 8;
type Begin = () => void;

export class Pipeline {
  /** Waiting requests of each connection that has one in progress. */
  readonly #waiting = new WeakMap<Duplex, Begin[]>();
  /** Those whose turn comes. */
  readonly #later: Begin[] = [];
  #begun = 0;

  /** Begins the request after those before it on this connection, in this turn of the event loop or a later one. */
  take(socket: Duplex, response: ServerResponse, begin: Begin): void {
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
    this.#begin(begin);
  }

  #next(socket: Duplex): void {
    const next = socket.destroyed ? undefined : this.#waiting.get(socket)?.shift();
    if (next) this.#begin(next);
    else this.#waiting.delete(socket);
  }

  #begin(begin: Begin): void {
    if (this.#begun >= begun_a_turn_max) {
      this.#later.push(begin);
      return;
    }
    if (this.#begun === 0) setImmediate(() => this.#turn());
    this.#begun += 1;
    begin();
  }

  #turn(): void {
    this.#begun = 0;
    for (const begin of this.#later.splice(0, begun_a_turn_max)) this.#begin(begin);
  }
}
