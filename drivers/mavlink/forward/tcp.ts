/** Endpoints over TCP: stations that connect, or one station that is connected to. */
import { connect, createServer, type Socket } from 'node:net';
import { DeviceUnreachable } from '../../../src/platform/errors.ts';
import { every } from '../../../src/platform/time.ts';
import { silenceSince } from '../../../src/platform/stalls.ts';
import { readPaced, serveTcp } from '../links/sockets.ts';
import type { EndpointOptions } from '../options.ts';
import { type EndpointHost, type Relay, texts } from './endpoint-host.ts';

type TcpListen = Extract<EndpointOptions, { kind: 'tcp_listen' }>;
type TcpClient = Extract<EndpointOptions, { kind: 'tcp_client' }>;

/** Of one connection; ten seconds of a telemetry radio. Frames beyond it are dropped whole. */
const unsent_bytes_max = 65_536;
/** A connection that accepts nothing for this long is closed: it would keep its place forever. */
const stalled_max_ms = 30_000;
const check_every_ms = 1_000;
const connect_timeout_ms = 4_000;
const keepalive_ms = 10_000;

export async function runTcpListen({ host, port, clients_max }: TcpListen, on: EndpointHost): Promise<void> {
  const clients = new Set<Client>();
  const ended = new Set<Promise<string>>();
  const server = createServer((socket) => {
    const client = new Client(socket, `${socket.remoteAddress ?? 'unknown'}:${socket.remotePort ?? 0}`, on);
    clients.add(client);
    const end = client.ended.finally(() => {
      clients.delete(client);
      ended.delete(end);
    });
    ended.add(end);
  });
  server.maxConnections = clients_max;
  server.on('drop', () => on.refused());
  try {
    await serveTcp(server, {
      own: { host, port },
      signal: on.signal,
      opened: () =>
        on.opened(
          (bytes) => {
            if (clients.size === 0) on.tally.drop('no_peer');
            for (const client of clients) client.relay(bytes);
          },
          [port],
        ),
      closing() {
        on.closed();
        for (const client of clients) client.close();
      },
      fault: (error) => new DeviceUnreachable(error.message, { cause: error }),
    });
  } finally {
    await Promise.all(ended);
  }
}

export async function runTcpClient({ host, port }: TcpClient, on: EndpointHost): Promise<void> {
  const socket = connect({ host, port });
  const stop = (): void => void socket.destroy();
  on.signal.addEventListener('abort', stop, { once: true });
  if (on.signal.aborted) stop();
  socket.setTimeout(connect_timeout_ms, () => {
    socket.destroy(new Error(texts.connect_timeout(connect_timeout_ms / 1_000)));
  });
  let reason: string = texts.closed_by_peer;
  try {
    await new Promise<void>((resolve) => {
      socket.once('connect', resolve);
      socket.once('close', resolve);
      socket.on('error', (error) => {
        reason = error.message;
      });
    });
    socket.setTimeout(0);
    if (!socket.destroyed) {
      const client = new Client(socket, `${host}:${port}`, on);
      on.opened(client.relay, [socket.localPort ?? 0]);
      reason = await client.ended;
    }
  } finally {
    on.signal.removeEventListener('abort', stop);
    on.closed();
  }
  if (!on.signal.aborted) throw new DeviceUnreachable(reason);
}

/** One connected station. */
class Client {
  /** Resolves with the reason when the connection has ended. */
  readonly ended: Promise<string>;
  readonly #socket: Socket;
  readonly #on: EndpointHost;
  #corked = false;

  constructor(socket: Socket, name: string, on: EndpointHost) {
    this.#socket = socket;
    this.#on = on;
    this.ended = this.#serve(name);
  }

  /** Writes a frame, or drops it if the station does not read; frames of one turn of the event loop are written together. */
  readonly relay: Relay = (bytes) => {
    const socket = this.#socket;
    if (socket.destroyed || socket.writableLength > unsent_bytes_max) {
      this.#on.tally.drop('slow');
      return;
    }
    if (!this.#corked) {
      this.#corked = true;
      socket.cork();
      process.nextTick(() => {
        this.#corked = false;
        socket.uncork();
      });
    }
    socket.write(bytes);
    this.#on.tally.to_stations += 1;
  };

  close(): void {
    this.#socket.destroy();
  }

  async #serve(name: string): Promise<string> {
    const socket = this.#socket;
    const on = this.#on;
    let reason: string = texts.closed_by_peer;
    const over = new AbortController();
    const stream = on.stream(name, over.signal);
    socket.setNoDelay(true);
    socket.setKeepAlive(true, keepalive_ms);
    readPaced(socket, stream);
    socket.on('error', (error) => {
      reason = error.message;
    });
    let written = 0;
    let moved_ms = performance.now();
    every(check_every_ms, over.signal, () => {
      const sent = socket.bytesWritten - socket.writableLength;
      if (sent !== written || socket.writableLength === 0) moved_ms = performance.now();
      written = sent;
      if (silenceSince(moved_ms) <= stalled_max_ms) return;
      socket.destroy(new Error(texts.stalled(stalled_max_ms / 1_000)));
    });
    on.joined(name);
    await new Promise<void>((resolve) => {
      if (socket.closed) resolve();
      else socket.once('close', () => resolve());
    });
    over.abort();
    on.left(name, reason);
    return reason;
  }
}
