/** Figures of the process: what it costs the gateway and its flash. */
import { cpuUsage, memoryUsage } from 'node:process';
import type { Registry } from 'prom-client';
import { counter, gauge, known, one } from './metric.ts';
import { type ReportParts, startTime } from '../status-report.ts';
import { readTextUpTo, small_bytes_max } from '../../platform/bounded-file.ts';

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
