/** Listens for HTTP or HTTPS and WebSockets, with limits against slow and numerous requests. */
import { createServer, type RequestListener, type Server, type ServerOptions } from 'node:http';
import { Server as SecureServer } from 'node:https';
import type { Socket } from 'node:net';
import { getRequestListener } from '@hono/node-server';
import { messageOf } from '../../../errors.ts';
import { limitConnections } from '../../../platform/http-server/limit-connections.ts';
import { aborted, within } from '../../../platform/time.ts';
import { ConnectionGuard } from '../../../platform/http-server/connection-guard.ts';
import { ClientRequests } from './client-requests.ts';
import { connections_max, pressure_connections, sharesOf } from './client-shares.ts';
import { acceptSockets, type UpgradeParts } from '../../live/upgrade.ts';
import { Pipeline } from './pipeline.ts';
import { connectionsBelow, createSecureServer, type TlsSource } from './secure-server.ts';
import { httpApp, type HttpParts } from '../http-app.ts';
import { texts } from '../../texts.ts';

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
  const clients = new ClientRequests(parts.gate);
  const pipeline = new Pipeline();
  const listener = getRequestListener(httpApp(parts).fetch, { overrideGlobalObjects: false });
  const { tls, log, signal } = parts;
  const answer: RequestListener = (request, response) => {
    // What else was in the packet for which the connection was closed.
    if (request.socket.destroyed) return;
    if (!clients.admit(request, response)) return;
    const asked_ms = performance.now();
    response.once('close', guard.request(connectionOf(request.socket)).ended);
    response.once('finish', () =>
      parts.meter?.answered(
        request.method ?? '',
        response.statusCode,
        (performance.now() - asked_ms) / 1_000,
      ),
    );
    pipeline.take(request.socket, response, () => void listener(request, response));
  };
  const server = tls
    ? await createSecureServer(server_options, answer, { tls, log, signal })
    : createServer(server_options, answer);
  const connectionOf =
    server instanceof SecureServer ? connectionsBelow(server) : (socket: Socket): Socket => socket;
  server.on('connection', (socket: Socket) => guard.open(socket, sharesOf(socket, parts.gate)));
  limitConnections(server, tls ? 'secureConnection' : 'connection');
  // A WebSocket stays open: it has its own limits.
  server.on('upgrade', ({ socket }) => guard.request(connectionOf(socket)));
  server.maxConnections = connections_max;
  server.setTimeout(idle_ms);
  acceptSockets(server, parts);
  await listen(server, at);
  const address = server.address();
  const port = typeof address === 'object' && address ? address.port : at.port;
  const host = at.host.includes(':') ? `[${at.host}]` : at.host;
  return { url: `${tls ? 'https' : 'http'}://${host}:${port}`, closed: closeOnAbort(server, guard, signal) };
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
