/**
 * Passes on what connections receive in portions. Node.js hands over up to 64 KiB of each connection at once, and a parser makes of some
 * bytes as many calls: the small pieces of a chunked body (RFC 9112, section 7.1) on 60 connections would be one turn of a second.
 */
import type { Socket } from 'node:net';

/** Of all connections together in one turn of the event loop. */
const turn_bytes_max = 16 * 1024;
/** Of one connection, while others wait. */
const portion_bytes = 2 * 1024;

type Chunk = Buffer | null;

export class Portions {
  /** What passes on the next portion of each connection that has one, in the order of their turns. */
  readonly #waiting = new Set<() => void>();
  #left = turn_bytes_max;
  #isCounting = false;

  /** To be called before anything reads from the socket, or after the HTTP server has seen it. */
  limit(socket: Socket): void {
    const push = socket.push.bind(socket);
    const read = socket._read.bind(socket);
    /** Received and not passed on: at most what was read at once, and its end. */
    const held: Chunk[] = [];
    const passOn = (): void => {
      const [first] = held;
      if (first === undefined || socket.destroyed) return;
      const portion = first?.subarray(0, Math.min(portion_bytes, this.#left)) ?? null;
      if (first && portion && portion.length < first.length) held[0] = first.subarray(portion.length);
      else held.shift();
      this.#count(portion?.length ?? 0);
      push(portion);
      if (held.length > 0) this.#waiting.add(passOn);
      else socket.read(0);
    };
    socket.push = (chunk: Chunk) => {
      const length = chunk?.length ?? 0;
      if (held.length === 0 && length <= this.#left) {
        this.#count(length);
        return push(chunk);
      }
      held.push(chunk);
      this.#count(0);
      this.#waiting.add(passOn);
      return false;
    };
    socket._read = (size) => {
      if (held.length === 0) read(size);
    };
    leaveItsParser(socket);
  }

  /** Counts what is passed on in this turn; there is another one to come. */
  #count(bytes: number): void {
    this.#left -= bytes;
    if (this.#isCounting) return;
    this.#isCounting = true;
    setImmediate(() => this.#turn());
  }

  #turn(): void {
    this.#left = turn_bytes_max;
    this.#isCounting = false;
    for (const passOn of this.#waiting) {
      if (this.#left <= 0) break;
      this.#waiting.delete(passOn);
      passOn();
    }
    if (this.#waiting.size > 0) this.#count(0);
  }
}

/** The parser of Node.js reads directly from the system until the socket has a listener. */
function leaveItsParser(socket: Socket): void {
  const listen = (): void => undefined;
  socket.on('data', listen).off('data', listen);
}
