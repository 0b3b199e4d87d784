/**
 * The figures of each kit for Prometheus, as the service knows them: a fleet behind NAT is seen by one scrape. Their number is limited,
 * and so are the labels: the kit, its link, the reason of a drop.
 */
import { Counter, Gauge, Registry } from 'prom-client';
import { dropReason } from '../contract/drops.ts';
import { turnEvery } from '../platform/time.ts';
import type { KitTelemetrySnapshot } from './api/resources.ts';
import { telemetrySnapshot } from './api/views.ts';
import type { StoredKit } from './stored/stored.ts';

/** Kits that are shown, those that were heard last; Prometheus keeps some 30 series of each. */
const kits_max = 5_000;
const kits_a_turn = 50;
const drop_reasons: ReadonlySet<string> = new Set(dropReason.options);

type Sample = readonly [labels: Readonly<Record<string, string>>, value: number | null | undefined];

/** A kit with its telemetry, read once. */
interface Seen extends StoredKit {
  readonly now: Pick<KitTelemetrySnapshot, 'online' | 'battery' | 'wans'>;
}

interface Figure {
  readonly name: string;
  readonly help: string;
  readonly label?: 'link' | 'reason';
  /** What is not known is not shown. */
  readonly samples: (kit: Seen) => readonly Sample[];
}

const one = (value: Sample[1]): readonly Sample[] => [[{}, value]];
/** Of a kit that is away nothing is known of them: the last values would look like those of now (fhemberger/mqtt_exporter#59). */
const ofLinks =
  (value: (link: KitTelemetrySnapshot['wans'][number]) => Sample[1]): Figure['samples'] =>
  ({ now }) =>
    now.online ? now.wans.map((link) => [{ link: link.name }, value(link)]) : [];
const seconds = (ms: number | null | undefined): number | null =>
  ms === null || ms === undefined ? null : ms / 1_000;

const figures: readonly Figure[] = [
  {
    name: 'online',
    help: '1 while the kit is connected',
    samples: ({ now }) => one(now.online ? 1 : 0),
  },
  {
    name: 'last_seen_timestamp_seconds',
    help: 'when it was heard last',
    samples: ({ heard_ms }) => one(seconds(heard_ms)),
  },
  {
    name: 'battery_percent',
    help: 'charge',
    samples: ({ now }) => one(now.battery),
  },
  {
    name: 'degraded_reasons',
    help: 'sentences of degraded_reasons',
    samples: ({ state, now }) => one(now.online ? state?.degraded.length : null),
  },
  {
    name: 'buffer_messages',
    help: 'messages that waited in its buffer, by its last report',
    samples: ({ state }) => one(state?.outbox.rows),
  },
  { name: 'buffer_bytes', help: 'their size', samples: ({ state }) => one(state?.outbox.bytes) },
  {
    name: 'buffer_oldest_timestamp_seconds',
    help: 'time of the oldest of them',
    samples: ({ state }) => one(state?.outbox.oldest ? seconds(Date.parse(state.outbox.oldest)) : null),
  },
  {
    name: 'messages_received_total',
    help: 'messages that were stored',
    samples: ({ counts }) => one(counts.received),
  },
  {
    name: 'messages_missing',
    help: 'messages that never came and were not reported as dropped',
    samples: ({ counts }) => one(counts.missing),
  },
  {
    name: 'messages_dropped',
    help: 'messages that the kit dropped lately, by reason; the count of a reason begins again after a day without any',
    label: 'reason',
    samples({ losses }) {
      const by_reason = Map.groupBy(losses.dropped, ({ reason }) =>
        drop_reasons.has(reason) ? reason : 'other',
      );
      return Array.from(by_reason, ([reason, all]) => [
        { reason },
        all.reduce((sum, { count }) => sum + count, 0),
      ]);
    },
  },
  {
    name: 'link_up',
    help: '1: online or on standby, 0: offline',
    label: 'link',
    samples: ofLinks(({ status }) => status && (status === 'offline' ? 0 : 1)),
  },
  {
    name: 'link_in_use',
    help: '1 while traffic uses it',
    label: 'link',
    samples: ofLinks(({ status }) => status && (status === 'online' ? 1 : 0)),
  },
  {
    name: 'link_latency_seconds',
    help: 'mean round trip of its probes',
    label: 'link',
    samples: ofLinks(({ latency_ms }) => seconds(latency_ms)),
  },
  {
    name: 'link_packet_loss_percent',
    help: 'probes without an answer',
    label: 'link',
    samples: ofLinks(({ packet_loss_pct }) => packet_loss_pct),
  },
];

/** The text exposition format. */
export async function kitMetrics(kits: readonly StoredKit[], now_ms: number): Promise<string> {
  const registry = new Registry();
  const registers = [registry];
  const shown = kits.toSorted((a, b) => (b.heard_ms ?? 0) - (a.heard_ms ?? 0)).slice(0, kits_max);
  const metrics = figures.map(({ name, help, label, samples }) => {
    const labelNames = label === undefined ? ['kit'] : ['kit', label];
    const about = { name: `kit_${name}`, help, labelNames, registers };
    const metric: Gauge | Counter = name.endsWith('_total') ? new Counter(about) : new Gauge(about);
    return { metric, samples };
  });
  const pause = turnEvery(kits_a_turn);
  for (const kit of shown) {
    const seen = { ...kit, now: telemetrySnapshot(kit, now_ms) };
    for (const { metric, samples } of metrics)
      for (const [labels, value] of samples(seen))
        if (typeof value === 'number') metric.inc({ kit: kit.kit_id, ...labels }, value);
    await pause();
  }
  new Gauge({
    name: 'kits_not_shown',
    help: `kits beyond the ${kits_max} that were heard last`,
    registers,
  }).set(kits.length - shown.length);
  return registry.metrics();
}
