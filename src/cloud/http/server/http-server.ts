/** Listens for HTTP or HTTPS and WebSockets, with limits against slow and numerous requests. */
import { createServer, type RequestListener, type Server, type ServerOptions } from 'node:http';
import type { Socket } from 'node:net';
import { getRequestListener } from '@hono/node-server';
import { messageOf } from '../../../platform/errors.ts';
import { limitConnections } from '../../../platform/limit-connections.ts';
import { aborted, within } from '../../../platform/time.ts';
import { ConnectionGuard, type Share } from '../../../platform/connection-guard.ts';
import type { Gate } from '../../access/gate.ts';
import { isLocalProxy, networkOf } from '../../access/proxies.ts';
import { acceptSockets, type UpgradeParts } from '../../live/upgrade.ts';
import { createSecureServer, type TlsSource } from './secure-server.ts';
import { httpApp, type HttpParts } from '../http-app.ts';
import { texts } from '../../texts.ts';

/** Connections in all. */
const connections_max = 1_024;
/** From this many connections, a new one replaces the oldest that waits for the rest of a request. */
const pressure_connections = 768;
/** Per address. Proxies are exempt: a proxy on this machine, and the trusted ones of the configuration. */
export const address_connections_max = 64;
/** Requests that may wait behind the one under way; a connection that sends more is closed. */
const pipelined_max = 8;
const headers_timeout_ms = 10_000;
const request_timeout_ms = 15_000;
const keep_alive_ms = 15_000;
/** Interval of the check for these timeouts; it adds to them. */
const look_every_ms = 2_000;
/** A connection without traffic: the peer is gone, or holds the connection on purpose. */
const idle_ms = 60_000;
const header_bytes_max = 8 * 1024;
/** Responses in progress may finish within this time. */
const farewell_ms = 500;

export interface ListenAt {
  readonly host: string;
  /** 0: any free one. */
  readonly port: number;
}

export interface Listening {
  readonly url: string;
  /** Resolves when everything is closed, after the signal aborted. */
  readonly closed: Promise<void>;
}

/** `tls` left out: plain HTTP. */
export type ServeParts = HttpParts & UpgradeParts & { readonly tls?: TlsSource | undefined };

const server_options: ServerOptions = {
  headersTimeout: headers_timeout_ms,
  requestTimeout: request_timeout_ms,
  keepAliveTimeout: keep_alive_ms,
  connectionsCheckingInterval: look_every_ms,
  maxHeaderSize: header_bytes_max,
  // Clients that offer HTTP/2 (`Upgrade: h2c`) with a request are answered in HTTP/1.1, as RFC 9110 section 7.8 has it.
  shouldUpgradeCallback: ({ headers }) => headers.upgrade?.toLowerCase() === 'websocket',
};

/** Starts the server. Rejects when it cannot listen on the address or has no valid certificate. */
export async function serveHttp(at: ListenAt, parts: ServeParts): Promise<Listening> {
  const guard = new ConnectionGuard({
    pressure_connections,
    onFull: ({ name, connections_max: connections }) =>
      parts.log.warn({ address: name, connections }, texts.log_connections),
  });
  const connections = newConnections();
  // Probes in HTTP/1.0 name no host, which is that of the paths alone then: names are judged by the header.
  const listener = oneAfterTheOther(
    getRequestListener(httpApp(parts).fetch, { overrideGlobalObjects: false, hostname: 'localhost' }),
  );
  const { tls, log, signal } = parts;
  const answer: RequestListener = (request, response) => {
    // What else was in the packet for which the connection was closed.
    if (request.socket.destroyed) return;
    const asked_ms = performance.now();
    response.once('close', guard.request(connections.of(request.socket)).ended);
    response.once('finish', () =>
      parts.meter?.answered(
        request.method ?? '',
        response.statusCode,
        (performance.now() - asked_ms) / 1_000,
      ),
    );
    listener(request, response);
  };
  const server = tls
    ? await createSecureServer(server_options, answer, { tls, log, signal })
    : createServer(server_options, answer);
  server.on('connection', (socket: Socket) => {
    connections.note(socket);
    guard.open(socket, sharesOf(socket, parts.gate));
  });
  if (!tls) limitConnections(server);
  // A WebSocket stays open: it has its own limits.
  server.on('upgrade', ({ socket }) => {
    if (!socket.destroyed) guard.request(connections.of(socket));
  });
  server.maxConnections = connections_max;
  server.setTimeout(idle_ms);
  acceptSockets(server, parts);
  await listen(server, at);
  const address = server.address();
  const port = typeof address === 'object' && address ? address.port : at.port;
  const host = at.host.includes(':') ? `[${at.host}]` : at.host;
  return { url: `${tls ? 'https' : 'http'}://${host}:${port}`, closed: closeOnAbort(server, guard, signal) };
}

/** The shares of a new connection; none for one of a proxy, which carries many clients. */
function sharesOf({ remoteAddress }: Socket, gate: Pick<Gate, 'isTrusted'>): readonly Share[] {
  const name = networkOf(remoteAddress);
  if (isLocalProxy(name) || gate.isTrusted(remoteAddress ?? '')) return [];
  return [{ name, connections_max: address_connections_max }];
}

/**
 * Finds the TCP connection below a TLS socket: connections are counted from their first byte, before the handshake. Only address and
 * port of the peer link the two.
 */
function newConnections() {
  const byPeer = new Map<string, Socket>();
  const peerOf = ({ remoteAddress, remotePort }: Socket): string => `${remoteAddress} ${remotePort}`;
  return {
    note(connection: Socket): void {
      const peer = peerOf(connection);
      byPeer.set(peer, connection);
      connection.once('close', () => {
        if (byPeer.get(peer) === connection) byPeer.delete(peer);
      });
    },
    of: (socket: Socket): Socket => byPeer.get(peerOf(socket)) ?? socket,
  };
}

/** Serves the requests of each connection one after the other: Node.js begins all of a packet at once, and would hold all of their answers. */
function oneAfterTheOther(listener: ReturnType<typeof getRequestListener>): RequestListener {
  const waiting = new WeakMap<Socket, (() => void)[]>();
  return (request, response) => {
    const { socket } = request;
    const begin = (): void => void listener(request, response);
    const behind = waiting.get(socket);
    if (behind && behind.length >= pipelined_max) {
      socket.destroy();
      return;
    }
    response.once('close', () => {
      const next = socket.destroyed ? undefined : waiting.get(socket)?.shift();
      if (next) next();
      else waiting.delete(socket);
    });
    if (behind) {
      behind.push(begin);
      return;
    }
    waiting.set(socket, []);
    begin();
  };
}

async function listen(server: Server, { host, port }: ListenAt): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error) =>
      reject(new Error(texts.cannot_listen(host, port, messageOf(error)), { cause: error })),
    );
    server.listen(port, host, resolve);
  });
}

/** Closes the server. WebSockets close by themselves; remaining connections are destroyed after a timeout. */
async function closeOnAbort(server: Server, guard: ConnectionGuard, signal: AbortSignal): Promise<void> {
  await aborted(signal);
  const closed = new Promise<void>((resolve) => {
    server.close(() => resolve());
  });
  server.closeIdleConnections();
  await within(farewell_ms, closed);
  // The server tracks no TLS handshakes in progress: the guard closes them.
  server.closeAllConnections();
  guard.cutAll();
  await within(farewell_ms, closed);
}
