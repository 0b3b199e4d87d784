/** Serves the metrics of a running daemon. A port that another program uses is retried until it is free. */
import type { RequestListener } from 'node:http';
import type { App } from '../../kit/app/app.ts';
import type { Config } from '../../kit/config/config.ts';
import { tlsSource } from '../../kit/config/service-tls.ts';
import { messageOf } from '../../platform/errors.ts';
import { serveMetrics } from '../../kit/local/metrics-server.ts';
import type { Log } from '../../platform/log/log.ts';
import { sleep } from '../../platform/time.ts';
import { texts } from '../texts.ts';

export const metrics_retry_ms = 10_000;

type MetricsConfig = NonNullable<Config['metrics']>;

interface MetricsPlace extends Partial<MetricsConfig> {
  readonly listen: MetricsConfig['listen'];
  readonly log: Pick<Log, 'info' | 'warn' | 'error'>;
  readonly signal: AbortSignal;
  /** Receives why the endpoint is not served; undefined: it is served. */
  readonly onFault?: (reason: string | undefined) => void;
}

/** Resolves after the first attempt; `closed` when the endpoint is closed. A port in use costs only the metrics. */
export async function keepMetrics(
  app: Pick<App, 'openMetrics'> & { readonly vitals: Pick<App['vitals'], 'check' | 'summary'> },
  { listen, token, tls, log, signal, onFault }: MetricsPlace,
  retry_ms = metrics_retry_ms,
): Promise<{ readonly closed: Promise<void> }> {
  const { check, summary } = app.vitals;
  const page = { ...(await app.openMetrics()), check, summary };
  const secured = tlsSource(tls);
  const secure =
    secured &&
    (async (listener: RequestListener) =>
      (await import('../../cloud/http/server/secure-server.ts')).createSecureServer({}, listener, {
        tls: secured,
        log,
        signal,
      }));
  let missed_ms: number | undefined;
  const attempt = async (): Promise<{ readonly closed: Promise<void> } | undefined> => {
    try {
      const served = await serveMetrics({ listen, token, secure }, page, signal);
      const down_s = missed_ms === undefined ? undefined : (performance.now() - missed_ms) / 1_000;
      onFault?.(undefined);
      if (down_s !== undefined) log.info({ down_s }, texts.metrics_restored);
      return served;
    } catch (error) {
      const reason = messageOf(error);
      if (missed_ms === undefined) log.error({ reason }, no_metrics);
      onFault?.(reason);
      missed_ms ??= performance.now();
      return undefined;
    }
  };
  const first = await attempt();
  if (first) return first;
  const closed = (async () => {
    while (!signal.aborted) {
      await sleep(retry_ms, signal);
      if (signal.aborted) return;
      const served = await attempt();
      if (served) return served.closed;
    }
  })();
  return { closed };
}
const no_metrics = texts.metrics_unavailable;
