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

function makeMetrics(registers: Registry[]) {
  const requests = new Counter({
    name: 'kit_service_requests_total',
    help: 'requests by method and status',
    labelNames: ['method', 'status'] as const,
    registers,
  });
  const durations = new Histogram({
    name: 'kit_service_request_seconds',
    help: 'time to answer a request',
    buckets: request_buckets_s,
    registers,
  });
  const messages = new Counter({
    name: 'kit_service_messages_total',
    help: 'messages of kits that were stored or known already',
    registers,
  });
  const sockets = new Gauge({ name: 'kit_service_sockets', help: 'open WebSockets', registers });
  const attempts = new Counter({
    name: 'kit_service_webhook_attempts_total',
    help: 'deliveries of webhooks by outcome; dead: given up; disabled: failed for so long that the webhook was disabled',
    labelNames: ['outcome'] as const,
    registers,
  });
  const messages_of_webhooks = new Gauge({
    name: 'kit_service_webhook_messages',
    help: 'messages of all webhooks that wait or are dead',
    labelNames: ['state'] as const,
    registers,
  });
  const disabled = new Gauge({
    name: 'kit_service_webhooks_disabled',
    help: 'webhooks that are disabled',
    registers,
  });
  const kits = new Gauge({
    name: 'kit_service_kits',
    help: 'kits that have reported, by whether they are online',
    labelNames: ['online'] as const,
    registers,
  });
  const ready = new Gauge({
    name: 'kit_service_ready',
    help: '1 while messages and tasks get through, as /ready answers',
    registers,
  });
  const database = new Gauge({
    name: 'kit_service_database_up',
    help: '1 if the database answered this scrape',
    registers,
  });
  const webhooks = { attempts, messages: messages_of_webhooks, disabled };
  return { requests, durations, messages, sockets, kits, ready, database, webhooks };
}

function fileFigures(registers: Registry[]) {
  const bytes = new Counter({
    name: 'kit_service_files_bytes_total',
    help: 'bytes of files of kits that came whole',
    registers,
  });
  const kept = new Gauge({
    name: 'kit_service_files_kept_bytes',
    help: 'contents of files that are kept',
    registers,
  });
  return { bytes, kept };
}

function brokerCounter(registers: Registry[]) {
  return new Counter({
    name: 'kit_service_broker_events_total',
    help: 'sessions with the broker that began (connected), and messages that it delivered again (redelivered, AMQP only)',
    labelNames: ['event'] as const,
    registers,
  });
}

function attentionGauge(registers: Registry[]) {
  return new Gauge({
    name: 'kit_service_attention',
    help: '1 while the service works and something about it should not stay as it is; the log and /healthz have the sentence',
    labelNames: ['about'] as const,
    registers,
  });
}

export function openServiceMetrics(version: string): ServiceMetrics {
  const registry = new Registry();
  const registers = [registry];
  collectDefaultMetrics({ register: registry });
  const { requests, durations, messages, sockets, kits, ready, database, webhooks } = makeMetrics(registers);
  const attention = attentionGauge(registers);
  const broker = brokerCounter(registers);
  const files = fileFigures(registers);
  new Gauge({ name: 'kit_service_info', help: 'version', labelNames: ['version'] as const, registers }).set(
    { version },
    1,
  );
  return {
    meter: {
      answered(method, status, seconds) {
        requests.inc({ method, status: String(status) });
        durations.observe(seconds);
      },
      stored: (count) => messages.inc(count),
      sockets: (open) => sockets.set(open),
      broker: (event) => broker.inc({ event }),
      webhook: (outcome) => webhooks.attempts.inc({ outcome }),
      file: (bytes) => files.bytes.inc(bytes),
    },
    content_type: registry.contentType,
    async scrape(store, unready, open = []) {
      for (const about of attention_topics) attention.set({ about }, open.includes(about) ? 1 : 0);
      ready.set(unready === undefined ? 1 : 0);
      const known = await store.kits('*').catch(() => undefined);
      database.set(known ? 1 : 0);
      if (known) {
        const online = known.filter((kit) => isOnline(kit, Date.now())).length;
        kits.set({ online: 'true' }, online);
        kits.set({ online: 'false' }, known.length - online);
      }
      const kept_bytes = await store.fileBytes().catch(() => undefined);
      if (kept_bytes !== undefined) files.kept.set(kept_bytes);
      const receivers = (await store.webhooks().catch(() => undefined)) ?? [];
      for (const state of ['waiting', 'dead'] as const) {
        webhooks.messages.set(
          { state },
          receivers.reduce((sum, { counts }) => sum + counts[state], 0),
        );
      }
      webhooks.disabled.set(receivers.filter((each) => faultOf(each, Date.now()) !== null).length);
      return registry.metrics();
    },
  };
}
