/** Names a link that is open and receives bytes, but none of MAVLink: another baud rate, or another device. */
import type { DeviceReport } from '../../../src/driver/driver.ts';
import { addressOf, type Link } from './link.ts';
import type { LinkOptions } from './link-options.ts';
import { texts } from './texts.ts';

/** Longer than any frame: a link that is opened in the middle of one skips less. */
const foreign_bytes_min = 300;

/** Returns a function that replaces the report of such a link. */
export function withForeignBytes(
  options: readonly LinkOptions[],
  links: readonly Pick<Link, 'name' | 'stats'>[],
): (report: DeviceReport) => DeviceReport {
  const foreign = new Map(
    links.flatMap(({ name, stats }) => {
      const { up, frames, bytes_skipped } = stats();
      if (!up || frames > 0 || bytes_skipped < foreign_bytes_min) return [];
      const link = options.find((each) => (each.name ?? addressOf(each)) === name);
      return [[name, texts.foreign_bytes[link?.kind === 'serial' ? 'serial' : 'network']] as const];
    }),
  );
  return (report) => {
    const reason = foreign.get(report.name);
    return reason === undefined || report.reason !== null ? report : { ...report, state: 'offline', reason };
  };
}
