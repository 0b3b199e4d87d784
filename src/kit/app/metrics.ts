/** The daemon's figures for Prometheus. Loaded only when the configuration asks for them; nothing is measured twice. */
import { cpuUsage, memoryUsage } from 'node:process';
import { Registry, Counter, Histogram, Gauge } from 'prom-client';
import { type ReportParts, startTime } from './status-report.ts';
import { readTextUpTo, small_bytes_max } from '../../platform/bounded-file.ts';
import { dropReason } from '../../contract/drops.ts';
import { linkType } from '../../contract/kit.ts';
import { every } from '../../platform/time.ts';
import type { Acknowledged } from '../uplink/sender.ts';

export const prefix = 'kit_connector_';

export interface Sample {
  readonly value: number;
  readonly labels?: Readonly<Record<string, string>>;
}

export interface About {
  /** Without the prefix; with its unit, and `_total` for a counter. */
  readonly name: string;
  readonly help: string;
  readonly labels?: readonly string[];
}

type Read = () => readonly Sample[] | Promise<readonly Sample[]>;

/** A figure that goes up and down. What is not in the answer of `read` is not shown. */
export function gauge(registry: Registry, { name, help, labels = [] }: About, read: Read): void {
  const metric: Gauge = new Gauge({
    name: prefix + name,
    help,
    labelNames: labels,
    registers: [registry],
    async collect() {
      const samples = await read();
      metric.reset();
      for (const { labels: of = {}, value } of samples) metric.set(of, value);
    },
  });
}

/** A figure that only grows until the process ends, counted elsewhere. */
export function counter(registry: Registry, { name, help, labels = [] }: About, read: Read): void {
  const metric: Counter = new Counter({
    name: prefix + name,
    help,
    labelNames: labels,
    registers: [registry],
    async collect() {
      const samples = await read();
      metric.reset();
      for (const { labels: of = {}, value } of samples) metric.inc(of, value);
    },
  });
}

export function one(value: number): readonly Sample[] {
  return [{ value }];
}

/** Nothing is shown for what is not known. */
export function known(value: number | null | undefined): readonly Sample[] {
  return value === null || value === undefined ? [] : one(value);
}

export interface Metrics {
  readonly content_type: string;
  /** The text exposition format. */
  readonly scrape: () => Promise<string>;
}

/** Counts from now until `signal` aborts. */
export function openMetrics(parts: ReportParts, signal: AbortSignal): Metrics {
  const registry = new Registry();
  processMetrics(registry, parts);
  bufferMetrics(registry, parts);
  uplinkMetrics(registry, parts, signal);
  fleetMetrics(registry, parts);
  fileMetrics(registry, parts);
  return { content_type: registry.contentType, scrape: async () => registry.metrics() };
}

// Figures of the process: what it costs the gateway and its flash.

export function processMetrics(
  registry: Registry,
  { version, config, started, lag, clock }: ReportParts,
): void {
  gauge(registry, { name: 'info', help: 'Always 1; what runs here', labels: ['version', 'kit_id'] }, () => [
    { value: 1, labels: { version, kit_id: config.kit_id } },
  ]);
  gauge(registry, { name: 'start_time_seconds', help: 'UTC of the start, seconds since 1970' }, () =>
    one(startTime({ clock, started }) / 1_000),
  );
  gauge(registry, { name: 'clock_synchronized', help: '1: the clock was set from the network' }, () =>
    one(clock.stamp().synced ? 1 : 0),
  );
  gauge(registry, { name: 'resident_memory_bytes', help: 'Memory of the process in RAM' }, () =>
    one(memoryUsage.rss()),
  );
  counter(registry, { name: 'cpu_seconds_total', help: 'CPU time of the process, all threads' }, () => {
    const { user, system } = cpuUsage();
    return one((user + system) / 1e6);
  });
  gauge(
    registry,
    { name: 'event_loop_lag_seconds', help: 'How late the event loop is, lately', labels: ['figure'] },
    () => {
      const { mean_ms, p99_ms, max_ms } = lag.figures();
      return Object.entries({ mean: mean_ms, p99: p99_ms, max: max_ms }).map(([figure, ms]) => ({
        value: ms / 1_000,
        labels: { figure },
      }));
    },
  );
  counter(
    registry,
    { name: 'disk_written_bytes_total', help: 'Bytes that the process caused to be written to disks' },
    async () => known(await writtenBytes()),
  );
}

/** Absent where the kernel does not count. */
async function writtenBytes(): Promise<number | undefined> {
  const text = await readTextUpTo('/proc/self/io', small_bytes_max).catch(() => '');
  const written = /^write_bytes: (\d+)$/mu.exec(text)?.[1];
  return written === undefined ? undefined : Number(written);
}

// Figures of the buffer: the books (accepted = delivered + buffered + quarantined + dropped), its lanes and its disk.

export function bufferMetrics(registry: Registry, parts: ReportParts): void {
  books(registry, parts);
  lanesAndDisk(registry, parts);
}

const none_dropped = Object.fromEntries(dropReason.options.map((reason) => [reason, 0]));

function books(registry: Registry, { outbox }: ReportParts): void {
  counter(
    registry,
    {
      name: 'messages_accepted_total',
      help: 'Messages of this run, and what an earlier one left in the buffer',
    },
    () => one(outbox.ledgerOfRun().accepted),
  );
  counter(registry, { name: 'messages_delivered_total', help: 'Messages that the broker has' }, () =>
    one(outbox.ledgerOfRun().delivered),
  );
  counter(
    registry,
    { name: 'messages_dropped_total', help: 'Messages that were given up', labels: ['reason'] },
    // Every reason from the start on: an increase from nothing would not be seen by those who watch.
    () => {
      const dropped = { ...none_dropped, ...outbox.ledgerOfRun().dropped };
      return Object.entries(dropped).map(([reason, value]) => ({ value, labels: { reason } }));
    },
  );
  gauge(registry, { name: 'messages_buffered', help: 'Messages that wait for delivery' }, () =>
    one(outbox.ledgerOfRun().buffered),
  );
  gauge(registry, { name: 'messages_quarantined', help: 'Messages that the broker refuses for good' }, () =>
    one(outbox.ledgerOfRun().quarantined),
  );
  gauge(
    registry,
    { name: 'books_balanced', help: '1: accepted = delivered + buffered + quarantined + dropped' },
    () => one(outbox.ledgerOfRun().balanced ? 1 : 0),
  );
}

function lanesAndDisk(registry: Registry, { outbox, clock }: ReportParts): void {
  const byLane = (figure: 'rows' | 'bytes') => (): readonly Sample[] =>
    Array.from(outbox.depth(), ([lane, depth]) => ({ value: depth[figure], labels: { lane } }));
  const lanes = { labels: ['lane'] };
  gauge(registry, { name: 'buffer_messages', help: 'Messages that wait, on disk', ...lanes }, byLane('rows'));
  gauge(registry, { name: 'buffer_bytes', help: 'Bytes of their bodies', ...lanes }, byLane('bytes'));
  // While the file cannot be read, its figures are not known.
  const inspect = async () => outbox.inspect().catch(() => undefined);
  gauge(
    registry,
    { name: 'buffer_oldest_age_seconds', help: 'Age of the oldest message that waits on disk', ...lanes },
    async () => {
      const now_ms = clock.stamp().time_ms;
      return Object.entries((await inspect())?.lanes ?? {}).flatMap(([lane, { oldest_ms }]) =>
        oldest_ms === null ? [] : [{ value: Math.max(0, now_ms - oldest_ms) / 1_000, labels: { lane } }],
      );
    },
  );
  gauge(registry, { name: 'buffer_file_bytes', help: 'Size of the buffer file' }, async () => {
    const found = await inspect();
    return found ? one(found.file_bytes) : [];
  });
  gauge(registry, { name: 'disk_free_bytes', help: 'Free on the disk of the buffer' }, async () => {
    const found = await inspect();
    return found ? one(found.disk_free_bytes) : [];
  });
  gauge(registry, { name: 'disk_ok', help: '1: the disk takes messages; 0: they are kept in memory' }, () =>
    one(outbox.health().state === 'ok' ? 1 : 0),
  );
}

// Figures of the connection to the broker: whether it is there, how fast it answers, and what it carried over which link.

/** From a broker on the same network to one behind a geostationary satellite that is congested. */
const puback_buckets_s = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];
const look_every_ms = 1_000;

export function uplinkMetrics(
  registry: Registry,
  { uplink, uplink_events, hub }: ReportParts,
  signal: AbortSignal,
): void {
  gauge(registry, { name: 'uplink_connected', help: '1: the broker is connected' }, () =>
    one(uplink.online ? 1 : 0),
  );
  gauge(
    registry,
    { name: 'uplink_in_flight', help: 'Messages that were sent and are not yet acknowledged' },
    () => one(uplink.status().in_flight),
  );
  gauge(
    registry,
    { name: 'uplink_round_trip_seconds', help: 'Shortest time between message and PUBACK lately' },
    () => {
      const { rtt_ms } = uplink.status();
      return known(rtt_ms === null ? null : rtt_ms / 1_000);
    },
  );
  const offlineSeconds = offlineMeter(() => uplink.online, signal);
  counter(
    registry,
    { name: 'uplink_offline_seconds_total', help: 'Time without the broker since the start' },
    () => one(offlineSeconds()),
  );
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

// Figures of the files for the cloud.

function fileMetrics(registry: Registry, { files }: ReportParts): void {
  gauge(registry, { name: 'files', help: 'Files that wait for the cloud' }, () =>
    one(files.view().kept.files),
  );
  gauge(registry, { name: 'files_bytes', help: 'Their size' }, () => one(files.view().kept.bytes));
  counter(
    registry,
    { name: 'files_ended_total', help: 'Files that wait no longer, by how they ended', labels: ['how'] },
    () => {
      const { uploaded, dropped } = files.view();
      const ends = Object.entries({ uploaded, ...dropped });
      return ends.map(([how, value]) => ({ value, labels: { how } }));
    },
  );
  counter(registry, { name: 'files_sent_bytes_total', help: 'Bytes of files that were sent' }, () =>
    one(files.view().sent_bytes),
  );
}

// Figures of what the kit serves: drivers, assets, links and tasks.

export function fleetMetrics(registry: Registry, parts: ReportParts): void {
  driverMetrics(registry, parts);
  linkMetrics(registry, parts);
  gauge(registry, { name: 'assets', help: 'Assets of the kit', labels: ['type', 'status'] }, () =>
    countBy(parts.hub.assets(), ({ type, status }) => ({ type, status })),
  );
  gauge(registry, { name: 'tasks_open', help: 'Tasks that are not over', labels: ['state'] }, () => {
    const { pending, running } = parts.tasks.stats();
    return [
      { value: pending, labels: { state: 'pending' } },
      { value: running, labels: { state: 'running' } },
    ];
  });
  counter(
    registry,
    { name: 'tasks_ended_total', help: 'Tasks that are over, since the start', labels: ['state'] },
    () => {
      const { completed, failed, unreadable } = parts.tasks.stats();
      return [
        { value: completed, labels: { state: 'completed' } },
        { value: failed, labels: { state: 'failed' } },
        { value: unreadable, labels: { state: 'unreadable' } },
      ];
    },
  );
}

function driverMetrics(registry: Registry, { hub, clock }: ReportParts): void {
  const labels = ['name', 'driver'];
  const each = (figure: (view: ReturnType<typeof hub.drivers>[number]) => number) => (): readonly Sample[] =>
    hub.drivers().map((view) => ({ value: figure(view), labels: { name: view.name, driver: view.driver } }));
  gauge(
    registry,
    { name: 'driver_up', help: '1: the driver receives data from its devices', labels },
    each(({ state }) => (state === 'up' ? 1 : 0)),
  );
  gauge(
    registry,
    { name: 'driver_state_seconds', help: 'Since the driver went up or down', labels },
    each(({ since }) => Math.max(0, clock.stamp().time_ms - Date.parse(since)) / 1_000),
  );
  counter(
    registry,
    { name: 'driver_failures_total', help: 'Runs of the driver that ended with an error', labels },
    each(({ failures }) => failures),
  );
  counter(
    registry,
    { name: 'driver_starts_total', help: 'Runs of the driver, the first one counted', labels },
    each(({ runs }) => runs),
  );
}

function linkMetrics(registry: Registry, { hub }: ReportParts): void {
  const labels = ['link', 'type'];
  type Link = ReturnType<typeof hub.links>[number];
  const each = (figure: (link: Link) => number | null | undefined) => (): readonly Sample[] =>
    hub.links().flatMap((link) => {
      const value = figure(link);
      const of = { link: link.name, type: link.type ?? 'unknown' };
      return value === null || value === undefined ? [] : [{ value, labels: of }];
    });
  gauge(
    registry,
    { name: 'link_up', help: '1: the link carries traffic or could', labels },
    each(({ status }) => (status === undefined || status === null ? null : status === 'offline' ? 0 : 1)),
  );
  gauge(
    registry,
    { name: 'link_latency_seconds', help: 'Round trip over the link', labels },
    each(({ latency_ms }) => (typeof latency_ms === 'number' ? latency_ms / 1_000 : null)),
  );
  gauge(
    registry,
    { name: 'link_loss_ratio', help: 'Probes over the link that were lost, 0 to 1', labels },
    each(({ packet_loss_pct }) => (typeof packet_loss_pct === 'number' ? packet_loss_pct / 100 : null)),
  );
  gauge(
    registry,
    { name: 'link_receive_bits_per_second', help: 'Rate of the link', labels },
    each(({ rx_bps }) => rx_bps),
  );
  gauge(
    registry,
    { name: 'link_transmit_bits_per_second', help: 'Rate of the link', labels },
    each(({ tx_bps }) => tx_bps),
  );
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
