/** The links as status and doctor show devices: what was asked, why there is no answer, and when it is asked again. Pure. */
import type { DeviceReport } from '../../src/driver/driver.ts';
import { capWeakness } from './caps.ts';
import { labelOf } from './checks/api.ts';
import type { TableLink } from './link-table.ts';
import type { LinksOptions } from './options.ts';
import type { LinkCause } from '../../src/contract/kit.ts';
import { texts } from './texts.ts';

/** One for each link. Without targets and checks an offline link is looked at with the next report. */
export function linkReports(
  all: readonly TableLink[],
  options: LinksOptions,
  now_ms: number,
): readonly DeviceReport[] {
  const asked = [...options.probe.targets.map(({ ip }) => ip), ...options.checks.list.map(labelOf)];
  const tried = asked.length === 0 ? texts.not_asked : texts.probes_of(asked.join(', '));
  const interval_s =
    asked.length === 0 ? options.interval_s : Math.max(options.interval_s, options.probe.interval_s);
  return all.map(({ link, reason, cause, cap, weakness: dead_in_use }) => {
    const isOffline = link.status === 'offline';
    const weakness = dead_in_use ?? capWeakness(cap);
    return {
      name: link.name,
      tried,
      asset_key: null,
      state: link.status ? (isOffline ? 'offline' : 'online') : 'starting',
      reason: isOffline ? withRemedy(reason, cause) : null,
      tried_at: isOffline ? new Date(now_ms).toISOString() : null,
      next_try_at: isOffline ? new Date(now_ms + interval_s * 1_000).toISOString() : null,
      ...(weakness === undefined ? {} : { weakness }),
    };
  });
}

/** The links that can carry traffic, the one in use first, then in the order of failover. */
export function orderOf(all: readonly TableLink[]): string | null {
  const able = all.filter(({ link }) => link.status === 'online' || link.status === 'standby');
  return able.map(({ link }) => link.name).join(', ') || null;
}

/** As the sentences of all devices: what is wrong, and after the last semicolon what to do. */
function withRemedy(reason: string | null, cause: LinkCause | null): string | null {
  const remedy = cause === null ? undefined : remedies.get(cause);
  return reason === null || remedy === undefined ? reason : `${reason}; ${remedy}`;
}

const remedies: ReadonlyMap<string, string> = new Map(Object.entries(texts.remedies));
