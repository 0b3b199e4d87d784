/** What links to vehicles and endpoints for stations share of their sockets, UDP and TCP. */
import type { Socket as UdpSocket } from 'node:dgram';
import type { Server, Socket } from 'node:net';
import { aborted, every } from '../../../src/platform/time.ts';
import { type FrameSink, StreamFramer } from '../wire/framer.ts';

export interface OwnAddress {
  readonly host: string;
  readonly port: number;
}

/** Serves while the socket is open: until the signal aborts, or it fails. Everything is closed when it settles. */
export interface Serving {
  readonly own: OwnAddress;
  readonly signal: AbortSignal;
  readonly opened: () => void;
  /** Called before the socket is closed. */
  readonly closing: () => void;
  /** The error for a socket that cannot be opened or is lost. */
  readonly fault: (error: Error) => Error;
}

/** Listens for connections, which `closing` must end. */
export async function serveTcp(server: Server, { own, ...serving }: Serving): Promise<void> {
  const { host, port } = own;
  const listening = new Promise<void>((resolve) => {
    server.listen({ host, port }, resolve);
  });
  await serveOpen(server, listening, serving);
}

export async function serveUdp(socket: UdpSocket, { own, ...serving }: Serving): Promise<void> {
  const { host, port } = own;
  const bound = new Promise<void>((resolve) => {
    socket.bind({ address: host, port, exclusive: true }, resolve);
  });
  await serveOpen(socket, bound, serving);
}

async function serveOpen(
  socket: Server | UdpSocket,
  open: Promise<void>,
  { signal, opened, closing, fault }: Omit<Serving, 'own'>,
): Promise<void> {
  const { promise: lost, reject } = Promise.withResolvers<never>();
  lost.catch(() => undefined);
  const onError = (error: Error): void => reject(fault(error));
  socket.on('error', onError);
  try {
    await Promise.race([open, lost]);
    opened();
    await untilLost(lost, signal);
  } finally {
    closing();
    await new Promise<void>((resolve) => {
      socket.close(() => resolve());
    });
  }
}

/** Resolves when the signal aborts, rejects when `lost` does. Leaves no listener on the signal, which outlives the medium. */
export async function untilLost(lost: Promise<never>, signal: AbortSignal): Promise<void> {
  const over = new AbortController();
  try {
    await Promise.race([aborted(AbortSignal.any([signal, over.signal])), lost]);
  } finally {
    over.abort();
  }
}

/** Reads a connection one chunk in a turn of the event loop, so that a flood on it leaves time for the other sockets. */
export function readPaced(socket: Socket, push: (chunk: Uint8Array) => void): void {
  socket.on('data', (chunk) => {
    push(chunk);
    if (socket.destroyed) return;
    socket.pause();
    setImmediate(() => socket.resume());
  });
}

/** Longer than any pause between the bytes of one frame, on any link. */
const stall_ms = 200;

/** Returns what finds the frames of one connection, until `over` aborts: behind a stray start byte too, once nothing follows. */
export function streamReader(sink: FrameSink, over: AbortSignal): (chunk: Uint8Array) => void {
  const framer = new StreamFramer(sink);
  let pushed_ms = 0;
  every(stall_ms, over, () => {
    if (framer.pending > 0 && performance.now() - pushed_ms > stall_ms) framer.stalled();
  });
  return (chunk) => {
    pushed_ms = performance.now();
    framer.push(chunk);
  };
}

/** The largest datagram, and more than libuv reads of usual ones in a turn. */
export const turn_bytes_max = 65_536;

/**
 * Limits the bytes of one socket that are handled in one turn of the event loop. libuv reads up to 32 times before it
 * serves other sockets: a flooding sender would block all of them for two megabytes.
 */
export class TurnBudget {
  #left = turn_bytes_max;
  #isCounting = false;

  /** Takes the bytes from the budget of this turn; false, and nothing is taken, when they exceed what is left. */
  take(bytes: number): boolean {
    if (!this.#isCounting) {
      this.#isCounting = true;
      setImmediate(() => {
        this.#isCounting = false;
        this.#left = turn_bytes_max;
      });
    }
    if (bytes > this.#left) return false;
    this.#left -= bytes;
    return true;
  }
}
