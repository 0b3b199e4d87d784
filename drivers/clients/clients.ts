/** Lists the devices on the kit's local network from kernel tables and dnsmasq leases; sends nothing to find them. */
import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import { noFeeds } from '../../src/contract/feeds.ts';
import { defineDriver, type DriverHost } from '../../src/toolkit/driver/driver.ts';
import { DeviceUnreachable, FileRefused } from '../../src/platform/errors.ts';
import { readNeighbours } from '../../src/platform/linux/arp-table.ts';
import { sleep } from '../../src/platform/time.ts';
import { joinClients, mostOf } from './join.ts';
import { type Lan, readLan } from './lan.ts';
import { type Lease, parseLeases } from './leases.ts';
import { type ClientsOptions, clientsOptions } from './options.ts';
import { readTextUpTo } from '../../src/platform/bounded-file.ts';

const lease_file_bytes_max = 1_048_576;
/** The hub sends changes once a second and drops the values of a lost driver, so the empty list is kept this long before the driver ends. */
const final_report_ms = 1_500;

export const clients = defineDriver({
  name: 'clients',
  feeds: noFeeds,
  options: clientsOptions,
  run: runClients,
});

async function runClients(options: ClientsOptions, host: DriverHost<typeof noFeeds>): Promise<void> {
  const reported = { once: false, crowded: false };
  while (!host.signal.aborted) {
    const neighbours = await readNeighbours();
    const lan = await readLan(options, new Set(neighbours.map(({ mac }) => mac)));
    if (lan.links.length === 0) {
      if (reported.once) {
        host.reportKit({ clients: [] });
        await sleep(final_report_ms, host.signal);
      }
      if (host.signal.aborted) return;
      throw new DeviceUnreachable(noNetwork(options));
    }
    const { leases, unread } = await readLeases(options, lan);
    if (host.signal.aborted) return;
    const found = joinClients({ lan, neighbours, leases, own_ips: ownIps() }, options);
    const crowded = found.length > options.entries_max;
    if (crowded && !reported.crowded) {
      const facts = { found: found.length, entries_max: options.entries_max };
      host.log.warn(facts, texts.limit_exceeded);
    }
    if (!crowded && reported.crowded) {
      host.log.info({ found: found.length }, texts.within_limit);
    }
    host.reportKit({ clients: mostOf(found, options.entries_max) });
    host.reportStatus({
      clients: found.length,
      interfaces: lan.links.map((link) => link.name).join(', '),
      leases: leases.length,
      ...(unread.length > 0 ? { reason: texts.leases_unreadable(unread.join('; ')) } : {}),
    });
    reported.once = true;
    reported.crowded = crowded;
    await sleep(options.interval_s * 1_000, host.signal);
  }
}

function noNetwork({ interfaces }: ClientsOptions): string {
  return interfaces.length > 0 ? texts.interface_not_found(interfaces.join(' or ')) : texts.no_bridge;
}

/** Reads the leases of all files and lists the files that cannot be read. A missing file is not an error. */
async function readLeases(
  { leases, roots }: ClientsOptions,
  lan: Lan,
): Promise<{ readonly leases: readonly Lease[]; readonly unread: readonly string[] }> {
  const shared = lan.links.map(({ name }) => join(roots.var, `lib/NetworkManager/dnsmasq-${name}.leases`));
  const found: Lease[] = [];
  const unread: string[] = [];
  for (const file of [...leases, ...shared]) {
    const read = await readLeaseFile(file);
    if (typeof read === 'string') unread.push(`${file} (${read})`);
    else found.push(...read);
  }
  return { leases: found, unread };
}

/** Reads the leases of a file, or returns the reason why it cannot be read. */
async function readLeaseFile(file: string): Promise<readonly Lease[] | string> {
  try {
    return parseLeases(await readTextUpTo(file, lease_file_bytes_max));
  } catch (error) {
    if (error instanceof FileRefused) return error.message;
    const code = error instanceof Error && 'code' in error ? error.code : undefined;
    return code === 'ENOENT' ? [] : String(code ?? error);
  }
}

function ownIps(): ReadonlySet<string> {
  return new Set(
    Object.values(networkInterfaces()).flatMap((all) => all?.map(({ address }) => address) ?? []),
  );
}

// Sentences of the clients driver that people read; tests refer to them by name.

export const texts = {
  limit_exceeded: 'client limit exceeded; reporting the first ones (options.entries_max)',
  within_limit: 'client count back within the limit; reporting all',
  leases_unreadable: (files: string) => `cannot read ${files}`,
  interface_not_found: (names: string) => `interface ${names} not found; check options.interfaces`,
  no_bridge: 'no bridge with a hardware port found; set options.interfaces',
} as const;
