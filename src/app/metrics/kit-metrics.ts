/** Figures of what the kit serves: drivers, assets, links and tasks. */
import type { Registry } from 'prom-client';
import { counter, gauge, type Sample } from './metric.ts';
import type { ReportParts } from '../status-report.ts';

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
