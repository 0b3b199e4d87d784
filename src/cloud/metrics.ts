/** The figures of the standalone service for Prometheus. Loaded only where the configuration asks for them. */
import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client';
import { type AttentionTopic, attention_topics } from './attention.ts';
import { isOnline } from './api/views.ts';
import type { Store } from './store/sql-store.ts';
import { faultOf } from './webhooks/enqueue.ts';

/** Counts what the service does; called on the way of every request and message. */
export interface Meter {
  readonly answered: (method: string, status: number, seconds: number) => void;
  readonly stored: (messages: number) => void;
  readonly sockets: (open: number) => void;
  /** `connected`: a session with the broker began; `redelivered`: it delivered a message again (AMQP). */
  readonly broker: (event: 'connected' | 'redelivered') => void;
  readonly webhook: (outcome: 'delivered' | 'failed' | 'dead' | 'disabled') => void;
  /** A file of a kit is here, whole. */
  readonly file: (bytes: number) => void;
}

export interface ServiceMetrics {
  readonly meter: Meter;
  readonly content_type: string;
  /** The text exposition format. `unready`: why messages and tasks do not get through; undefined: they do. */
  readonly scrape: (
    store: Pick<Store, 'kits' | 'webhooks' | 'fileBytes'>,
    unready: string | undefined,
    attention?: readonly AttentionTopic[],
  ) => Promise<string>;
}

const request_buckets_s = [0.005, 0.02, 0.1, 0.5, 2, 10];

/** By their names behind `kit_service_`, each with its label. */
function figuresIn(registry: Registry) {
  const about = (name: string, help: string, labelNames: string[] = []) => ({
    name: `kit_service_${name}`,
    help,
    labelNames,
    registers: [registry],
  });
  const counter = (...of: Parameters<typeof about>) => new Counter(about(...of));
  const gauge = (...of: Parameters<typeof about>) => new Gauge(about(...of));
  return {
    requests: counter('requests_total', 'requests by method and status', ['method', 'status']),
    durations: new Histogram({
      ...about('request_seconds', 'time to answer a request'),
      buckets: request_buckets_s,
    }),
    messages: counter('messages_total', 'messages of kits that were stored or known already'),
    sockets: gauge('sockets', 'open WebSockets'),
    attempts: counter(
      'webhook_attempts_total',
      'deliveries of webhooks by outcome; dead: given up; disabled: failed for so long that the webhook was disabled',
      ['outcome'],
    ),
    webhook_messages: gauge('webhook_messages', 'messages of all webhooks that wait or are dead', ['state']),
    disabled: gauge('webhooks_disabled', 'webhooks that are disabled'),
    kits: gauge('kits', 'kits that have reported, by whether they are online', ['online']),
    ready: gauge('ready', '1 while messages and tasks get through, as /ready answers'),
    database: gauge('database_up', '1 if the database answered this scrape'),
    attention: gauge(
      'attention',
      '1 while the service works and something about it should not stay as it is; the log and /healthz have the sentence',
      ['about'],
    ),
    broker: counter(
      'broker_events_total',
      'sessions with the broker that began (connected), and messages that it delivered again (redelivered, AMQP only)',
      ['event'],
    ),
    file_bytes: counter('files_bytes_total', 'bytes of files of kits that came whole'),
    files_kept: gauge('files_kept_bytes', 'contents of files that are kept'),
    info: gauge('info', 'version', ['version']),
  };
}

export function openServiceMetrics(version: string): ServiceMetrics {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const figures = figuresIn(registry);
  figures.info.set({ version }, 1);
  return {
    meter: {
      answered(method, status, seconds) {
        figures.requests.inc({ method, status: String(status) });
        figures.durations.observe(seconds);
      },
      stored: (count) => figures.messages.inc(count),
      sockets: (open) => figures.sockets.set(open),
      broker: (event) => figures.broker.inc({ event }),
      webhook: (outcome) => figures.attempts.inc({ outcome }),
      file: (bytes) => figures.file_bytes.inc(bytes),
    },
    content_type: registry.contentType,
    async scrape(store, unready, open = []) {
      for (const about of attention_topics) figures.attention.set({ about }, open.includes(about) ? 1 : 0);
      figures.ready.set(unready === undefined ? 1 : 0);
      const known = await store.kits('*').catch(() => undefined);
      figures.database.set(known ? 1 : 0);
      if (known) {
        const online = known.filter((kit) => isOnline(kit, Date.now())).length;
        figures.kits.set({ online: 'true' }, online);
        figures.kits.set({ online: 'false' }, known.length - online);
      }
      const kept_bytes = await store.fileBytes().catch(() => undefined);
      if (kept_bytes !== undefined) figures.files_kept.set(kept_bytes);
      const receivers = (await store.webhooks().catch(() => undefined)) ?? [];
      for (const state of ['waiting', 'dead'] as const) {
        figures.webhook_messages.set(
          { state },
          receivers.reduce((sum, { counts }) => sum + counts[state], 0),
        );
      }
      figures.disabled.set(receivers.filter((each) => faultOf(each, Date.now()) !== null).length);
      return registry.metrics();
    },
  };
}
