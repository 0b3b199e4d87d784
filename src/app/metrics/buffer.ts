/** Figures of the buffer: the books (accepted = delivered + buffered + quarantined + dropped), its lanes and its disk. */
import type { Registry } from 'prom-client';
import { dropReason } from '../../contract/drops.ts';
import { counter, gauge, one, type Sample } from './metric.ts';
import type { ReportParts } from '../status-report.ts';

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
