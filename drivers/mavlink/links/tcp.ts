/** MAVLink over TCP: connects to a router or an autopilot, or listens for them. */
import { connect, createServer, type Socket } from 'node:net';
import { addAbortSignal } from 'node:stream';
import { connectionFault } from '../../../src/toolkit/device/connection-fault.ts';
import { DeviceUnreachable } from '../../../src/platform/errors.ts';
import { descriptorOf, type UnsentBytes, unsentBytes } from '../../../src/platform/linux/unsent-bytes.ts';
import { every } from '../../../src/platform/time.ts';
import { silenceSince } from '../../../src/platform/stalls.ts';
import type { LinkOptions } from '../options.ts';
import type { MediumHost, Stream } from './medium.ts';
import { readPaced, serveTcp } from './sockets.ts';
import { texts } from './texts.ts';

type TcpClient = Extract<LinkOptions, { kind: 'tcp_client' }>;
type TcpListen = Extract<LinkOptions, { kind: 'tcp_listen' }>;

/** Connection attempts of the kernel come further and further apart; a new one starts soon. */
const connect_timeout_ms = 4_000;
/** A vehicle sends every second. A router without vehicles may be silent for longer. */
const silence_max_ms = 15_000;
const silence_at_first_max_ms = 60_000;
const check_every_ms = 1_000;
/** When there are so many, the oldest that has sent no accepted frame gives way to the next. */
const connections_max = 16;
/** Limits the wait to a second or two: older frames are not worth sending. */
const unsent_bytes_max = 16_384;
/** A connection that acknowledged nothing for this long gets no new frames: they would arrive late, all together. */
const unacknowledged_ms_max = 2_000;
/** The kernel closes a connection that acknowledges nothing for this long. */
const lost_after_ms = 10_000;

export async function runTcpClient({ host, port }: TcpClient, medium: MediumHost): Promise<void> {
  const peer = `${host}:${port}`;
  const unsent = await unsentBytes();
  if (medium.signal.aborted) return;
  const socket = connect({ host, port });
  const ended = serveSocket(socket, medium.stream(peer), medium);
  socket.setTimeout(connect_timeout_ms, () => {
    socket.destroy(new Error(texts.connect_timeout(connect_timeout_ms / 1_000)));
  });
  socket.once('connect', () => {
    socket.setTimeout(0);
    const writer = new TcpWriter(socket, unsent);
    medium.opened({
      send: (bytes, to) => (to === undefined || to === peer) && writer.write(bytes),
      discard(to, sent_ms) {
        if (to === peer) writer.discard(sent_ms);
      },
      isNamed: () => true,
    });
  });
  const reason = await ended;
  if (!medium.signal.aborted) throw new DeviceUnreachable(texts.tcp_failed(peer, reason));
}

export async function runTcpListen({ host, port }: TcpListen, medium: MediumHost): Promise<void> {
  const unsent = await unsentBytes();
  const writers = new Map<string, TcpWriter>();
  const connections = new Set<Promise<string>>();
  const streams = new Map<Socket, Stream>();
  const server = createServer((socket) => {
    if (!hasRoom(streams)) {
      socket.destroy();
      return;
    }
    const peer = `${socket.remoteAddress ?? 'unknown'}:${socket.remotePort ?? 0}`;
    const stream = medium.stream(peer);
    streams.set(socket, stream);
    writers.set(peer, new TcpWriter(socket, unsent));
    const ended = serveSocket(socket, stream, medium).finally(() => {
      writers.delete(peer);
      streams.delete(socket);
      connections.delete(ended);
    });
    connections.add(ended);
  });
  try {
    await serveTcp(server, {
      own: { host, port },
      signal: medium.signal,
      opened: () =>
        medium.opened({
          send(bytes, peer) {
            const to =
              peer === undefined
                ? [...writers.values()]
                : [writers.get(peer)].filter((each) => each !== undefined);
            return to.filter((writer) => writer.write(bytes)).length > 0;
          },
          discard: (peer, sent_ms) => writers.get(peer)?.discard(sent_ms),
          isNamed: () => false,
        }),
      closing() {
        for (const writer of writers.values()) writer.close();
      },
      fault: (error) =>
        new DeviceUnreachable(texts.tcp_listen_failed(host, port, error.message), { cause: error }),
    });
  } finally {
    await Promise.all(connections);
  }
}

/** Makes room where there is none: a host that only holds connections keeps no vehicle away. */
function hasRoom(streams: Map<Socket, Stream>): boolean {
  if (streams.size < connections_max) return true;
  const strangers = streams.entries().filter(([, stream]) => stream.received_ms() === undefined);
  const [oldest] = strangers.next().value ?? [];
  if (!oldest) return false;
  streams.delete(oldest);
  oldest.destroy();
  return true;
}

/** Reads a connection until it ends; resolves with the reason. Never rejects. */
async function serveSocket(socket: Socket, stream: Stream, medium: MediumHost): Promise<string> {
  const { signal } = medium;
  const over = new AbortController();
  const begin_ms = performance.now();
  let reason: string = texts.closed_by_peer;
  socket.setNoDelay(true);
  readPaced(socket, (chunk) => stream.push(chunk));
  socket.on('error', (error) => {
    reason = connectionFault(error, texts.tcp_refused_remedy) ?? error.message;
  });
  addAbortSignal(signal, socket);
  every(check_every_ms, over.signal, () => {
    const received_ms = stream.received_ms();
    const silence_ms = silenceSince(received_ms ?? begin_ms);
    const usual_ms = received_ms === undefined ? silence_at_first_max_ms : silence_max_ms;
    const allowed_ms = medium.silence_max_ms ?? usual_ms;
    if (silence_ms > allowed_ms) socket.destroy(new Error(texts.silent(allowed_ms / 1_000)));
  });
  await new Promise<void>((resolve) => {
    socket.once('close', () => resolve());
  });
  over.abort();
  stream.close();
  return reason;
}

/** Writes to one connection, and knows which frames the other side has not acknowledged. */
class TcpWriter {
  readonly #socket: Socket;
  readonly #unsent: UnsentBytes;
  /** Frames that are not acknowledged: when they were written, and how many bytes had been written then. */
  #pending: readonly { readonly at_ms: number; readonly end: number }[] = [];

  /** `socket` is connected. */
  constructor(socket: Socket, unsent: UnsentBytes) {
    this.#socket = socket;
    this.#unsent = unsent;
    const fd = descriptorOf(socket);
    if (fd !== null) unsent.neverLinger(fd, lost_after_ms);
  }

  write(bytes: Uint8Array): boolean {
    const socket = this.#socket;
    if (socket.destroyed || socket.connecting || socket.writableLength > unsent_bytes_max) return false;
    const now_ms = performance.now();
    this.#settle();
    const [oldest] = this.#pending;
    if (oldest && now_ms - oldest.at_ms > unacknowledged_ms_max) return false;
    socket.write(bytes);
    this.#pending = [...this.#pending, { at_ms: now_ms, end: socket.bytesWritten }];
    return true;
  }

  /** Resets the connection if a frame that was written until `sent_ms` is not acknowledged. */
  discard(sent_ms: number): void {
    this.#settle();
    const [oldest] = this.#pending;
    if (!oldest || oldest.at_ms > sent_ms || this.#socket.destroyed) return;
    this.#socket.destroy(new Error(texts.unacknowledged(Math.round(performance.now() - oldest.at_ms))));
  }

  close(): void {
    this.#socket.destroy();
  }

  #settle(): void {
    if (this.#pending.length === 0) return;
    const fd = descriptorOf(this.#socket);
    const unsent_bytes = fd === null ? 0 : this.#unsent.count(fd);
    const acknowledged = this.#socket.bytesWritten - this.#socket.writableLength - unsent_bytes;
    this.#pending = this.#pending.filter(({ end }) => end > acknowledged);
  }
}
