/**
 * Limits what the connections of an HTTP server of Node.js cost: whatever they send, no turn of the event loop gets long. Node.js
 * hands over up to 64 KiB of each connection at once, and a parser makes of some bytes as many calls: 3,600 requests of one packet,
 * or the small pieces of a chunked body (RFC 9112, section 7.1), on 60 connections would be a turn of seconds.
 *
 * Node.js has no public way to stop its parser within a packet, so this replaces `push` and `_read` of the socket, and `onIncoming` of
 * the parser. Where one of them is missing in a later version the tests of this file fail, and connections are served without limits.
 */
import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';

/** To be called before the server listens. `event`: brings the sockets that HTTP is spoken on; `secureConnection` with TLS. */
export function limitConnections(
  server: Server,
  event: 'connection' | 'secureConnection' = 'connection',
): void {
  const portions = new Portions();
  server.on(event, (socket: Socket) => {
    portions.limit(socket);
    limitRequests(socket);
  });
}

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

/** A client may send requests without waiting for answers (RFC 9112, section 9.3.2); few do, and not many. */
const requests_a_turn_max = 9;
/** Result of `onIncoming` for a request that changes the protocol: the parser stops reading. */
const read_no_more = 2;

/** Node.js keeps the parser of a connection at its socket. */
type Connection = Duplex & { parser?: { onIncoming: ((...request: unknown[]) => number) | null } | null };

/**
 * Closes a new connection that sends more requests in one turn of the event loop, those included that Node.js refuses itself. The rest
 * of the packet, 3,600 requests perhaps, is not read: to make and refuse each takes 30 us. To be called after the server has seen it.
 */
export function limitRequests(socket: Connection): void {
  const { parser } = socket;
  const incoming = parser?.onIncoming;
  if (!parser || !incoming) return;
  let in_this_turn = 0;
  parser.onIncoming = (...request) => {
    if (in_this_turn === 0) setImmediate(() => (in_this_turn = 0));
    in_this_turn += 1;
    if (in_this_turn > requests_a_turn_max) socket.destroy();
    return socket.destroyed ? read_no_more : incoming(...request);
  };
}
