/** `kit-connector service`: the Kit, Asset and Telemetry Service on its own, for many kits. */
import { tlsSource } from '../kit/config/service-tls.ts';
import { renewal } from '../kit/config/broker.ts';
import type { MetricsConfig } from '../kit/config/metrics.ts';
import { readStandalone } from '../kit/config/standalone.ts';
import { StorageUnavailable } from '../platform/errors.ts';
import { createLog, type Log } from '../platform/log/log.ts';
import { aborted } from '../platform/time.ts';
import { server_round_ms } from '../cloud/history/keeper.ts';
import { pageOnDemand } from '../cloud/http/page/page-files.ts';
import type { ServiceMetrics } from '../cloud/metrics.ts';
import { type StandaloneService, startStandalone } from '../cloud/standalone.ts';
import { nameOf, openStore } from '../cloud/open-store.ts';
import { keepMetrics } from './daemon/metrics.ts';
import { addFirstKey, firstKeyOf } from './service/first-key.ts';
import { logOutput, nameProcess, refuseUnverifiedTls } from './daemon/process.ts';
import { exit, type Shell } from './terminal/shell.ts';
import { texts } from './texts.ts';
import { version } from './version.ts';

/** In lists of processes, and in the journal. */
const identifier = 'kit-connector-service';

export async function service({ config: file }: { readonly config: string }, shell: Shell): Promise<number> {
  refuseUnverifiedTls(shell.env);
  await nameProcess(identifier);
  const config = await readStandalone(file, shell.env['CREDENTIALS_DIRECTORY']);
  const first_key = firstKeyOf(file, config);
  const log = createLog({ ...config.log, ...(await logOutput({ identifier }, shell)) });
  for (const warning of config.warnings) log.warn({ file }, warning);
  shell.onCrash((err) => log.fatal({ err }, texts.internal_error));
  const { retention } = config;
  const service_log = log.child({ part: 'service' });
  const keepsHistory = retention !== undefined;
  const opened = await openStore(config.database, {
    keepsHistory,
    error: (facts, sentence) => service_log.error(facts, sentence),
  });
  await addFirstKey(opened.store, first_key, log);
  const metrics = config.metrics && (await import('../cloud/metrics.ts')).openServiceMetrics(version());
  const running = await startStandalone({
    ...config,
    ...opened,
    renew: renewal(config.broker),
    history: retention && { retention, every_ms: server_round_ms, divides_all: false },
    tls: tlsSource(config.tls),
    meter: metrics?.meter,
    page: pageOnDemand(),
    version: version(),
    log: service_log,
  });
  log.info(
    {
      url: running.url,
      broker: config.broker?.url ?? config.amqp?.urls.join(', '),
      database: nameOf(config.database),
    },
    'service started',
  );
  const served =
    metrics && config.metrics && (await serveFigures(metrics, running, { ...config.metrics, log, shell }));
  await runUntilEnd(running, shell.signal);
  await served?.closed;
  log.info({}, 'service stopped');
  return exit.ok;
}

/**
 * Rejects when another version has excluded this one. systemd starts it again, perhaps with the program that was installed meanwhile; the same
 * one then refuses to start.
 */
async function runUntilEnd({ excluded, stop }: StandaloneService, signal: AbortSignal): Promise<void> {
  const reason = await Promise.race([aborted(signal), excluded]);
  await stop();
  if (reason !== undefined) throw new StorageUnavailable(reason);
}

/** Serves /metrics and /healthz. */
async function serveFigures(
  metrics: ServiceMetrics,
  { store, unready, url, attention }: StandaloneService,
  { log, shell, ...place }: MetricsConfig & { readonly log: Log; readonly shell: Shell },
): Promise<{ readonly closed: Promise<void> }> {
  const { content_type, scrape } = metrics;
  const { kitMetrics } = await import('../cloud/kit-metrics.ts');
  const page = {
    openMetrics: async () => ({
      content_type,
      scrape: async () => scrape(store, await unready(), attention.topics),
      scrapeKits: async () => kitMetrics(await store.kits('*'), Date.now()),
    }),
    vitals: { check: unready, summary: () => [url, ...attention.sentences].join('; ') },
  };
  return keepMetrics(page, { ...place, log, signal: shell.signal });
}
