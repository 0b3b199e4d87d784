/** Answers /healthz and /metrics on a TCP port of the loopback, for the tools that watch this machine. */
import { createServer } from 'node:http';
import type { Socket } from 'node:net';
import { messageOf } from '../../platform/errors.ts';
import { ConnectionGuard, noteRequests } from '../../platform/connection-guard.ts';
import { limitConnections } from '../../platform/limit-connections.ts';
import { aborted } from '../../platform/time.ts';
import { type Answer, answerBy, NotAnswered, type Routes, text } from './exchange.ts';

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

/**
 * Listens at `listen` (`127.0.0.1:9464`) until `signal` aborts. Rejects when the address is taken. A kit that is offline is
 * healthy: `/healthz` answers 503 only when a part of the daemon makes no progress.
 */
export async function serveMetrics(
  listen: { readonly host: string; readonly port: number },
  page: MetricsPage,
  signal: AbortSignal,
): Promise<{ readonly port: number; readonly closed: Promise<void> }> {
  const server = createServer({ requestTimeout: request_ms }, answerBy(metricsRoutes(page), refusal));
  server.maxConnections = connections_max;
  const guard = new ConnectionGuard({ pressure_connections, onFull: () => undefined });
  server.on('connection', (socket: Socket) => guard.open(socket, []));
  noteRequests(server, guard);
  limitConnections(server);
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

function metricsRoutes({ content_type, scrape, scrapeKits, check, summary }: MetricsPage): Routes {
  return {
    ...(scrapeKits && {
      'GET /metrics/kits': async () => ({ content_type, content: await scrapeKits() }),
    }),
    'GET /metrics': async () => ({ content_type, content: await scrape() }),
    'GET /healthz': async () => {
      const fault = await check(check_ms);
      return fault === undefined ? text(`ok: ${summary()}\n`) : text(`${fault}\n`, 503);
    },
  };
}

function refusal(error: unknown): Answer {
  return text(`${messageOf(error)}\n`, error instanceof NotAnswered ? error.status : 500);
}
