/** Listens for HTTP and WebSockets, with limits on everything that a stranger could make long or many. */
import { createServer, type Server } from 'node:http';
import { getRequestListener } from '@hono/node-server';
import { messageOf } from '../errors.ts';
import { aborted, within } from '../platform/time.ts';
import { acceptSockets, type UpgradeParts } from './live/upgrade.ts';
import { httpApp, type HttpParts } from './server/http-app.ts';

const headers_timeout_ms = 10_000;
const request_timeout_ms = 15_000;
const keep_alive_ms = 15_000;
/** How often connections are looked at that break these times; it adds to them. */
const look_every_ms = 2_000;
/** Nobody reads or writes: the other end is gone, or holds the connection on purpose. */
const idle_ms = 60_000;
const header_bytes_max = 8 * 1024;
const connections_max = 1_024;
/** Answers that are under way may end in this time. */
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

/** Rejects when the address cannot be listened on, with what to do about it. */
export async function serveHttp(at: ListenAt, parts: HttpParts & UpgradeParts): Promise<Listening> {
  const listener = getRequestListener(httpApp(parts).fetch, { overrideGlobalObjects: false });
  const server = createServer(
    {
      headersTimeout: headers_timeout_ms,
      requestTimeout: request_timeout_ms,
      keepAliveTimeout: keep_alive_ms,
      connectionsCheckingInterval: look_every_ms,
      maxHeaderSize: header_bytes_max,
      // Clients that offer HTTP/2 (`Upgrade: h2c`) with a request are answered in HTTP/1.1, as RFC 9110 section 7.8 has it.
      shouldUpgradeCallback: ({ headers }) => headers.upgrade?.toLowerCase() === 'websocket',
    },
    (request, response) => void listener(request, response),
  );
  server.maxConnections = connections_max;
  server.setTimeout(idle_ms);
  acceptSockets(server, parts);
  await listen(server, at);
  const address = server.address();
  const port = typeof address === 'object' && address ? address.port : at.port;
  const host = at.host.includes(':') ? `[${at.host}]` : at.host;
  return { url: `http://${host}:${port}`, closed: closeOnAbort(server, parts.signal) };
}

async function listen(server: Server, { host, port }: ListenAt): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error) =>
      reject(
        new Error(
          `the service cannot listen on ${host} port ${port} (${messageOf(error)}); choose another service.listen`,
          { cause: error },
        ),
      ),
    );
    server.listen(port, host, resolve);
  });
}

/** WebSockets say goodbye by themselves; what does not end in time is cut. */
async function closeOnAbort(server: Server, signal: AbortSignal): Promise<void> {
  await aborted(signal);
  const closed = new Promise<void>((resolve) => {
    server.close(() => resolve());
  });
  server.closeIdleConnections();
  await within(farewell_ms, closed);
  server.closeAllConnections();
  await within(farewell_ms, closed);
}
