/**
 * Limits what the connections of an HTTP server of Node.js cost: whatever they send, no turn of the event loop gets long. Node.js
 * hands over up to 64 KiB of each connection at once, and a parser makes of some bytes as many calls: 3,600 requests of one packet,
 * or the small pieces of a chunked body (RFC 9112, section 7.1), on 60 connections would be a turn of seconds. Its HTTP server takes
 * any stream as a connection, so it gets one that passes on a share at a time.
 */
import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { Duplex } from 'node:stream';
import { TLSSocket } from 'node:tls';

/** Of all connections of a server together. */
const turn_bytes_max = 4 * 1024;

/**
 * Replaces the sockets that `event` brings (`secureConnection` with TLS) for the listeners that the server has by now, its own included.
 * To be called before the server listens.
 */
export function limitConnections(
  server: Server,
  event: 'connection' | 'secureConnection' = 'connection',
): void {
  const turns = new Turns();
  const listeners = server.listeners(event);
  server.removeAllListeners(event);
  server.on(event, (socket: Socket) => {
    if (socket.destroyed) return;
    const limited = new LimitedSocket(socket, turns);
    for (const listener of listeners) Reflect.apply(listener, server, [limited]);
  });
}

/** In each turn of the event loop, connections with something to read pass on the same share. */
class Turns {
  #waiting = new Set<LimitedSocket>();

  add(socket: LimitedSocket): void {
    if (this.#waiting.size === 0) setImmediate(() => this.#next());
    this.#waiting.add(socket);
  }

  #next(): void {
    const waiting = this.#waiting;
    this.#waiting = new Set();
    for (const socket of waiting) socket.passOn(Math.ceil(turn_bytes_max / waiting.size));
  }
}

/** Has of a `Socket` what HTTP servers, WebSockets and our own handlers use. */
class LimitedSocket extends Duplex {
  readonly remoteAddress: string | undefined;
  readonly remotePort: number | undefined;
  readonly encrypted: boolean;
  readonly #socket: Socket;
  readonly #turns: Turns;
  #isAwaited = false;

  constructor(socket: Socket, turns: Turns) {
    // At most one share waits here, so that a reader that resumes gets no more.
    super({ readableHighWaterMark: 1 });
    this.#socket = socket;
    this.#turns = turns;
    this.remoteAddress = socket.remoteAddress;
    this.remotePort = socket.remotePort;
    this.encrypted = socket instanceof TLSSocket;
    socket
      .on('readable', () => this.#isAwaited && turns.add(this))
      .on('end', () => this.push(null))
      .on('timeout', () => this.emit('timeout'))
      .on('error', (error) => this.destroy(error))
      .on('close', () => this.destroy());
  }

  passOn(bytes_max: number): void {
    const socket = this.#socket;
    const bytes: unknown = socket.read(socket.readableLength > bytes_max ? bytes_max : undefined);
    if (bytes === null) return;
    this.#isAwaited = false;
    this.push(bytes);
  }

  get timeout(): number | undefined {
    return this.#socket.timeout;
  }

  setTimeout(timeout_ms: number): this {
    this.#socket.setTimeout(timeout_ms);
    return this;
  }

  setNoDelay(): this {
    this.#socket.setNoDelay();
    return this;
  }

  destroySoon(): void {
    this.end(() => this.destroy());
  }

  override _read(): void {
    this.#isAwaited = true;
    this.#turns.add(this);
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    this.#socket.write(chunk, done);
  }

  /** What is written together leaves in one packet: the head of a response and its body. */
  override _writev(
    chunks: readonly { readonly chunk: Buffer }[],
    done: (error?: Error | null) => void,
  ): void {
    this.#socket.write(Buffer.concat(chunks.map(({ chunk }) => chunk)), done);
  }

  override _final(done: () => void): void {
    this.#socket.end(done);
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#socket.destroy();
    done(error);
  }
}
