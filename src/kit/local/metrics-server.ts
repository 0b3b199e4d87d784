/** Answers /healthz and /metrics on a TCP port, for the tools that watch this machine. */
import { createHash, timingSafeEqual } from 'node:crypto';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { Server as SecureServer } from 'node:https';
import type { Socket } from 'node:net';
import { messageOf } from '../../platform/errors.ts';
import { ConnectionGuard, noteRequests } from '../../platform/connection-guard.ts';
import { limitConnections } from '../../platform/limit-connections.ts';
import { aborted } from '../../platform/time.ts';
import { type Answer, answerBy, type ExchangeRequest, NotAnswered, type Routes, text } from './exchange.ts';
import { texts } from './texts.ts';

export interface MetricsPage {
  readonly content_type: string;
  readonly scrape: () => Promise<string>;
  /** The figures of each kit, of a service for many. */
  readonly scrapeKits?: () => Promise<string>;
  /** Undefined while every part makes progress, else which one does not. */
  readonly check: (ms: number) => Promise<string | undefined>;
  /** One line with the state of the kit. */
  readonly summary: () => string;
}

/** Watchers give up after some seconds; the daemon is ill before that. */
const check_ms = 2_000;
const request_ms = 10_000;
const connections_max = 16;
/** From this many on, the oldest connection without a request gives way to a new one. */
const pressure_connections = 12;

export interface MetricsPlace {
  readonly listen: { readonly host: string; readonly port: number };
  /** Asked for by figures, and by the sentence of `/healthz`; undefined: anyone may read them. */
  readonly token?: string | undefined;
  /** Left out: plain HTTP. */
  readonly secure?: ((listener: RequestListener) => Promise<SecureServer>) | undefined;
}

/**
 * Listens at `listen` (`127.0.0.1:9464`) until `signal` aborts. Rejects when the address is taken. A kit that is offline is
 * healthy: `/healthz` answers 503 only when a part of the daemon makes no progress.
 */
export async function serveMetrics(
  { listen, token, secure }: MetricsPlace,
  page: MetricsPage,
  signal: AbortSignal,
): Promise<{ readonly port: number; readonly closed: Promise<void> }> {
  const listener = answerBy(metricsRoutes(page, token), refusal);
  const server: Server | SecureServer = secure ? await secure(listener) : createServer(listener);
  server.requestTimeout = request_ms;
  server.maxConnections = connections_max;
  const guard = new ConnectionGuard({ pressure_connections, onFull: () => undefined });
  server.on('connection', (socket: Socket) => guard.open(socket, []));
  noteRequests(server, guard);
  if (!secure) limitConnections(server);
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error) =>
      reject(
        new Error(
          `metrics.listen ${listen.host}:${listen.port} cannot be used: ${messageOf(error)}; choose another port`,
          { cause: error },
        ),
      ),
    );
    server.listen(listen.port, listen.host, resolve);
  });
  const address = server.address();
  const closed = (async () => {
    await aborted(signal);
    await new Promise<void>((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
  })();
  return { port: typeof address === 'object' && address ? address.port : listen.port, closed };
}

function metricsRoutes(
  { content_type, scrape, scrapeKits, check, summary }: MetricsPage,
  token: string | undefined,
): Routes {
  const figures = (read: () => Promise<string>) => async (asked: ExchangeRequest) => {
    if (!isAllowed(asked, token)) throw new NotAnswered(401, texts.token_missing);
    return { content_type, content: await read() };
  };
  return {
    ...(scrapeKits && { 'GET /metrics/kits': figures(scrapeKits) }),
    'GET /metrics': figures(scrape),
    'GET /healthz': async (asked) => {
      const fault = await check(check_ms);
      // Probes of Kubernetes and of load balancers send no token.
      if (!isAllowed(asked, token)) return fault === undefined ? text('ok\n') : text('unhealthy\n', 503);
      return fault === undefined ? text(`ok: ${summary()}\n`) : text(`${fault}\n`, 503);
    },
  };
}

function isAllowed({ headers }: ExchangeRequest, token: string | undefined): boolean {
  if (token === undefined) return true;
  const [, given = ''] = /^bearer +(\S+)$/iu.exec(headers.authorization ?? '') ?? [];
  return timingSafeEqual(digestOf(given), digestOf(token));
}

function digestOf(word: string): Buffer {
  return createHash('sha256').update(word).digest();
}

function refusal(error: unknown): Answer {
  const status = error instanceof NotAnswered ? error.status : 500;
  const answer = text(`${messageOf(error)}\n`, status);
  return status === 401 ? { ...answer, headers: { 'www-authenticate': 'Bearer' } } : answer;
}
