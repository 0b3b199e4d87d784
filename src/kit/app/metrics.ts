/** The daemon's figures for Prometheus. Loaded only when the configuration asks for them; nothing is measured twice. */
import { cpuUsage, memoryUsage } from 'node:process';
import { Registry, Counter, Histogram, Gauge } from 'prom-client';
import { type ReportParts, startTime } from './status-report.ts';
import { readTextUpTo, small_bytes_max } from '../../platform/bounded-file.ts';
import { dropReason } from '../../contract/drops.ts';
import { linkType } from '../../contract/kit.ts';
import { every } from '../../platform/time.ts';
import type { Acknowledged } from '../uplink/sender.ts';

const prefix = 'kit_connector_';

interface Sample {
  readonly value: number;
  readonly labels: Readonly<Record<string, string>>;
}

/** Nothing is shown for what is not known, nor for what is not among the samples. */
type Value = number | null | undefined | readonly Sample[];

/** `name`: without the prefix; with its unit, and `_total` for a counter. */
type Show = (name: string, help: string, read: () => Value | Promise<Value>, ...labels: string[]) => void;

interface Figures {
  readonly registry: Registry;
  /** A figure that goes up and down. */
  readonly gauge: Show;
  /** A figure that only grows until the process ends, counted elsewhere. */
  readonly counter: Show;
}

function openFigures(): Figures {
  const registry = new Registry();
  const show =
    (kind: 'gauge' | 'counter'): Show =>
    (name, help, read, ...labelNames) => {
      const settings = { name: prefix + name, help, labelNames, registers: [registry] };
      const collect = async (): Promise<void> => {
        const now = await read();
        metric.reset();
        if (typeof now === 'number') metric.inc(now);
        else for (const { labels, value } of now ?? []) metric.inc(labels, value);
      };
      const metric: Pick<Counter, 'inc' | 'reset'> =
        kind === 'gauge' ? new Gauge({ ...settings, collect }) : new Counter({ ...settings, collect });
    };
  return { registry, gauge: show('gauge'), counter: show('counter') };
}

export interface Metrics {
  readonly content_type: string;
  /** The text exposition format. */
  readonly scrape: () => Promise<string>;
}

/** Counts from now until `signal` aborts. */
export function openMetrics(parts: ReportParts, signal: AbortSignal): Metrics {
  const figures = openFigures();
  processMetrics(figures, parts);
  bufferMetrics(figures, parts);
  laneMetrics(figures, parts);
  uplinkMetrics(figures, parts, signal);
  driverMetrics(figures, parts);
  linkMetrics(figures, parts);
  workMetrics(figures, parts);
  fileMetrics(figures, parts);
  const { registry } = figures;
  return { content_type: registry.contentType, scrape: async () => registry.metrics() };
}

/** One sample for each value, by its name as the label. */
function by(label: string, values: Readonly<Record<string, number>>): readonly Sample[] {
  return Object.entries(values).map(([of, value]) => ({ value, labels: { [label]: of } }));
}

/** What the process costs the gateway and its flash. */
function processMetrics({ gauge, counter }: Figures, parts: ReportParts): void {
  const { version, config, started, lag, clock } = parts;
  const about = { value: 1, labels: { version, kit_id: config.kit_id } };
  gauge('info', 'Always 1; what runs here', () => [about], 'version', 'kit_id');
  gauge(
    'start_time_seconds',
    'UTC of the start, seconds since 1970',
    () => startTime({ clock, started }) / 1_000,
  );
  gauge('clock_synchronized', '1: the clock was set from the network', () => Number(clock.stamp().synced));
  gauge('resident_memory_bytes', 'Memory of the process in RAM', () => memoryUsage.rss());
  counter('cpu_seconds_total', 'CPU time of the process, all threads', () => {
    const { user, system } = cpuUsage();
    return (user + system) / 1e6;
  });
  const lagNow = (): Value => {
    const { mean_ms, p99_ms, max_ms } = lag.figures();
    return by('figure', { mean: mean_ms / 1_000, p99: p99_ms / 1_000, max: max_ms / 1_000 });
  };
  gauge('event_loop_lag_seconds', 'How late the event loop is, lately', lagNow, 'figure');
  counter('disk_written_bytes_total', 'Bytes that the process caused to be written to disks', writtenBytes);
}

/** Absent where the kernel does not count. */
async function writtenBytes(): Promise<number | undefined> {
  const text = await readTextUpTo('/proc/self/io', small_bytes_max).catch(() => '');
  const written = /^write_bytes: (\d+)$/mu.exec(text)?.[1];
  return written === undefined ? undefined : Number(written);
}

const none_dropped = Object.fromEntries(dropReason.options.map((reason) => [reason, 0]));

/** The books: accepted = delivered + buffered + quarantined + dropped. */
function bufferMetrics({ gauge, counter }: Figures, { outbox }: ReportParts): void {
  const books = (): ReturnType<typeof outbox.ledgerOfRun> => outbox.ledgerOfRun();
  const accepted = 'Messages of this run, and what an earlier one left in the buffer';
  counter('messages_accepted_total', accepted, () => books().accepted);
  counter('messages_delivered_total', 'Messages that the broker has', () => books().delivered);
  // Every reason from the start on: an increase from nothing would not be seen by those who watch.
  const dropped = (): Value => by('reason', { ...none_dropped, ...books().dropped });
  counter('messages_dropped_total', 'Messages that were given up', dropped, 'reason');
  gauge('messages_buffered', 'Messages that wait for delivery', () => books().buffered);
  gauge('messages_quarantined', 'Messages that the broker refuses for good', () => books().quarantined);
  const balanced = '1: accepted = delivered + buffered + quarantined + dropped';
  gauge('books_balanced', balanced, () => Number(books().balanced));
}

/** The lanes of the buffer and its disk. */
function laneMetrics({ gauge }: Figures, { outbox, clock }: ReportParts): void {
  const byLane = (figure: 'rows' | 'bytes') => (): Value =>
    Array.from(outbox.depth(), ([lane, depth]) => ({ value: depth[figure], labels: { lane } }));
  gauge('buffer_messages', 'Messages that wait, on disk', byLane('rows'), 'lane');
  gauge('buffer_bytes', 'Bytes of their bodies', byLane('bytes'), 'lane');
  // While the file cannot be read, its figures are not known.
  const inspect = async () => outbox.inspect().catch(() => undefined);
  const ages = async (): Promise<Value> => {
    const now_ms = clock.stamp().time_ms;
    return Object.entries((await inspect())?.lanes ?? {}).flatMap(([lane, { oldest_ms }]) =>
      oldest_ms === null ? [] : [{ value: Math.max(0, now_ms - oldest_ms) / 1_000, labels: { lane } }],
    );
  };
  gauge('buffer_oldest_age_seconds', 'Age of the oldest message that waits on disk', ages, 'lane');
  gauge('buffer_file_bytes', 'Size of the buffer file', async () => (await inspect())?.file_bytes);
  gauge('disk_free_bytes', 'Free on the disk of the buffer', async () => (await inspect())?.disk_free_bytes);
  const disk_ok = '1: the disk takes messages; 0: they are kept in memory';
  gauge('disk_ok', disk_ok, () => Number(outbox.health().state === 'ok'));
}

/** From a broker on the same network to one behind a geostationary satellite that is congested. */
const puback_buckets_s = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];
const look_every_ms = 1_000;

/** The connection to the broker: whether it is there, how fast it answers, and what it carried over which link. */
function uplinkMetrics(
  { registry, gauge, counter }: Figures,
  { uplink, uplink_events, hub }: ReportParts,
  signal: AbortSignal,
): void {
  gauge('uplink_connected', '1: the broker is connected', () => Number(uplink.online));
  const in_flight = 'Messages that were sent and are not yet acknowledged';
  gauge('uplink_in_flight', in_flight, () => uplink.status().in_flight);
  gauge('uplink_round_trip_seconds', 'Shortest time between message and PUBACK lately', () => {
    const { rtt_ms } = uplink.status();
    return rtt_ms === null ? null : rtt_ms / 1_000;
  });
  const offlineSeconds = offlineMeter(() => uplink.online, signal);
  counter('uplink_offline_seconds_total', 'Time without the broker since the start', offlineSeconds);
  const puback = new Histogram({
    name: `${prefix}puback_seconds`,
    help: 'Time between a message and its PUBACK',
    buckets: puback_buckets_s,
    registers: [registry],
  });
  const sent = new Counter({
    name: `${prefix}uplink_sent_bytes_total`,
    help: 'Bytes of MQTT messages that the broker acknowledged, by the type of the link in use',
    labelNames: ['link_type'],
    registers: [registry],
  });
  for (const link_type of [...linkType.options, 'unknown']) sent.inc({ link_type }, 0);
  const count = ({ bytes, delay_ms }: Acknowledged): void => {
    puback.observe(delay_ms / 1_000);
    const link = hub.links().find(({ status }) => status === 'online');
    sent.inc({ link_type: link?.type ?? 'unknown' }, bytes);
  };
  uplink_events.on('acknowledged', count);
  signal.addEventListener('abort', () => uplink_events.off('acknowledged', count), { once: true });
}

/** Adds up the time offline; an outage shorter than a look may not be seen. */
function offlineMeter(isOnline: () => boolean, signal: AbortSignal): () => number {
  let offline_ms = 0;
  let looked_ms = performance.now();
  const look = (): void => {
    const now_ms = performance.now();
    if (!isOnline()) offline_ms += now_ms - looked_ms;
    looked_ms = now_ms;
  };
  every(look_every_ms, signal, look);
  return () => {
    look();
    return offline_ms / 1_000;
  };
}

/** What the kit serves and does: assets and tasks. */
function workMetrics({ gauge, counter }: Figures, { hub, tasks }: ReportParts): void {
  const assets = (): Value => countBy(hub.assets(), ({ type, status }) => ({ type, status }));
  gauge('assets', 'Assets of the kit', assets, 'type', 'status');
  const open = (): Value => {
    const { pending, running } = tasks.stats();
    return by('state', { pending, running });
  };
  gauge('tasks_open', 'Tasks that are not over', open, 'state');
  const ended = (): Value => {
    const { completed, failed, unreadable } = tasks.stats();
    return by('state', { completed, failed, unreadable });
  };
  counter('tasks_ended_total', 'Tasks that are over, since the start', ended, 'state');
}

function fileMetrics({ gauge, counter }: Figures, { files }: ReportParts): void {
  gauge('files', 'Files that wait for the cloud', () => files.view().kept.files);
  gauge('files_bytes', 'Their size', () => files.view().kept.bytes);
  const ends = (): Value => {
    const { uploaded, dropped } = files.view();
    return by('how', { uploaded, ...dropped });
  };
  counter('files_ended_total', 'Files that wait no longer, by how they ended', ends, 'how');
  counter('files_sent_bytes_total', 'Bytes of files that were sent', () => files.view().sent_bytes);
}

function driverMetrics({ gauge, counter }: Figures, { hub, clock }: ReportParts): void {
  const each = (figure: (view: ReturnType<typeof hub.drivers>[number]) => number) => (): Value =>
    hub.drivers().map((view) => ({ value: figure(view), labels: { name: view.name, driver: view.driver } }));
  const labels = ['name', 'driver'];
  const up = each(({ state }) => Number(state === 'up'));
  const since_s = each(({ since }) => Math.max(0, clock.stamp().time_ms - Date.parse(since)) / 1_000);
  const failures = each((view) => view.failures);
  const runs = each((view) => view.runs);
  gauge('driver_up', '1: the driver receives data from its devices', up, ...labels);
  gauge('driver_state_seconds', 'Since the driver went up or down', since_s, ...labels);
  counter('driver_failures_total', 'Runs of the driver that ended with an error', failures, ...labels);
  counter('driver_starts_total', 'Runs of the driver, the first one counted', runs, ...labels);
}

function linkMetrics({ gauge }: Figures, { hub }: ReportParts): void {
  type Link = ReturnType<typeof hub.links>[number];
  const show = (name: string, help: string, figure: (link: Link) => number | null | undefined): void =>
    gauge(
      name,
      help,
      () =>
        hub.links().flatMap((link) => {
          const value = figure(link);
          const labels = { link: link.name, type: link.type ?? 'unknown' };
          return value === null || value === undefined ? [] : [{ value, labels }];
        }),
      'link',
      'type',
    );
  show('link_up', '1: the link carries traffic or could', ({ status }) =>
    status === undefined || status === null ? null : Number(status !== 'offline'),
  );
  show('link_latency_seconds', 'Round trip over the link', ({ latency_ms }) =>
    typeof latency_ms === 'number' ? latency_ms / 1_000 : null,
  );
  show('link_loss_ratio', 'Probes over the link that were lost, 0 to 1', ({ packet_loss_pct }) =>
    typeof packet_loss_pct === 'number' ? packet_loss_pct / 100 : null,
  );
  show('link_receive_bits_per_second', 'Rate of the link', ({ rx_bps }) => rx_bps);
  show('link_transmit_bits_per_second', 'Rate of the link', ({ tx_bps }) => tx_bps);
}

function countBy<T>(
  things: readonly T[],
  labelsOf: (thing: T) => Readonly<Record<string, string>>,
): readonly Sample[] {
  const counts = new Map<string, { value: number; readonly labels: Readonly<Record<string, string>> }>();
  for (const thing of things) {
    const labels = labelsOf(thing);
    const key = Object.values(labels).join(' ');
    const known = counts.get(key) ?? { value: 0, labels };
    known.value += 1;
    counts.set(key, known);
  }
  return [...counts.values()];
}
