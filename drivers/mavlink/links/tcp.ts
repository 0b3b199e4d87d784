/** MAVLink over TCP: connects to a router or an autopilot, or listens for them. */
import { connect, createServer, type Server, type Socket } from 'node:net';
import { DeviceUnreachable } from '../../../src/errors.ts';
import { every } from '../../../src/platform/time.ts';
import type { LinkOptions } from './link-options.ts';
import { type MediumHost, untilLost } from './medium.ts';
import { texts } from './texts.ts';

type TcpClient = Extract<LinkOptions, { kind: 'tcp_client' }>;
type TcpListen = Extract<LinkOptions, { kind: 'tcp_listen' }>;

const connect_timeout_ms = 10_000;
/** A vehicle sends every second. A router without vehicles may be silent for longer. */
const silence_max_ms = 15_000;
const silence_at_first_max_ms = 60_000;
const check_every_ms = 1_000;
const connections_max = 16;
/** Limits the wait to a second or two: older frames are not worth sending. */
const unsent_bytes_max = 16_384;

export async function runTcpClient({ host, port }: TcpClient, medium: MediumHost): Promise<void> {
  const peer = `${host}:${port}`;
  const socket = connect({ host, port });
  const ended = serveSocket(socket, peer, medium);
  socket.setTimeout(connect_timeout_ms, () => {
    socket.destroy(new Error(texts.connect_timeout(connect_timeout_ms / 1_000)));
  });
  socket.once('connect', () => {
    socket.setTimeout(0);
    medium.opened((bytes, to) => (to === undefined || to === peer) && write(socket, bytes));
  });
  const reason = await ended;
  if (!medium.signal.aborted) throw new DeviceUnreachable(texts.tcp_failed(peer, reason));
}

export async function runTcpListen({ host, port }: TcpListen, medium: MediumHost): Promise<void> {
  const sockets = new Map<string, Socket>();
  const connections = new Set<Promise<string>>();
  const server = createServer((socket) => {
    const peer = `${socket.remoteAddress ?? 'unknown'}:${socket.remotePort ?? 0}`;
    sockets.set(peer, socket);
    const ended = serveSocket(socket, peer, medium).finally(() => {
      sockets.delete(peer);
      connections.delete(ended);
    });
    connections.add(ended);
  });
  server.maxConnections = connections_max;
  const lost = new Promise<never>((_, reject) => {
    server.on('error', (error) => {
      reject(new DeviceUnreachable(texts.tcp_listen_failed(host, port, error.message), { cause: error }));
    });
  });
  lost.catch(() => undefined);
  try {
    await Promise.race([listening(server, { host, port }), lost]);
    medium.opened((bytes, peer) => {
      const to =
        peer === undefined ? [...sockets.values()] : [sockets.get(peer)].filter((each) => each !== undefined);
      return to.filter((socket) => write(socket, bytes)).length > 0;
    });
    await untilLost(lost, medium.signal);
  } finally {
    for (const socket of sockets.values()) socket.destroy();
    await closed(server);
    await Promise.all(connections);
  }
}

/** Reads a connection until it ends; resolves with the reason. Never rejects. */
async function serveSocket(socket: Socket, peer: string, medium: MediumHost): Promise<string> {
  const { signal } = medium;
  const stream = medium.stream(peer);
  const over = new AbortController();
  const begin_ms = performance.now();
  let reason: string = texts.closed_by_peer;
  const stop = (): void => void socket.destroy();
  socket.setNoDelay(true);
  socket.on('data', (chunk) => stream.push(chunk));
  socket.on('error', (error) => {
    reason = error.message;
  });
  signal.addEventListener('abort', stop, { once: true });
  if (signal.aborted) stop();
  every(check_every_ms, over.signal, () => {
    const received_ms = stream.received_ms();
    const silence_ms = performance.now() - (received_ms ?? begin_ms);
    const allowed_ms = received_ms === undefined ? silence_at_first_max_ms : silence_max_ms;
    if (silence_ms > allowed_ms) socket.destroy(new Error(texts.silent(allowed_ms / 1_000)));
  });
  await new Promise<void>((resolve) => {
    socket.once('close', () => resolve());
  });
  signal.removeEventListener('abort', stop);
  over.abort();
  stream.close();
  return reason;
}

function write(socket: Socket, bytes: Uint8Array): boolean {
  if (socket.destroyed || socket.connecting || socket.writableLength > unsent_bytes_max) return false;
  socket.write(bytes);
  return true;
}

async function listening(
  server: Server,
  { host, port }: { readonly host: string; readonly port: number },
): Promise<void> {
  await new Promise<void>((resolve) => {
    server.listen({ host, port }, resolve);
  });
}

async function closed(server: Server): Promise<void> {
  await new Promise<void>((resolve) => {
    server.close(() => resolve());
  });
}
