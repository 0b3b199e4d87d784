/** The WAN links of the kit: which there are, what each is, its status, its figures and what it has carried. */
import { noFeeds } from '../../src/contract/feeds.ts';
import type { LinkStatus } from '../../src/contract/kit.ts';
import { defineDriver, type DriverHost } from '../../src/driver/driver.ts';
import { texts } from './texts.ts';
import { Wake } from './wake.ts';
import { LinkTable, type TableLink } from './link-table.ts';
import { Memory } from './usage/memory.ts';
import { type LinksOptions, linksOptions } from './options.ts';
import { openAvailability } from './probe/availability.ts';
import { readBoot } from './probe/boot.ts';
import { startProber } from './probe/prober.ts';
import { publicAddress } from './probe/public-address.ts';
import { Probing } from './probing.ts';
import { PublicAddresses } from './probe/public-addresses.ts';
import { openRouteSource } from './routes/route-source.ts';

export const links = defineDriver({
  name: 'links',
  feeds: noFeeds,
  options: linksOptions,
  run: runLinks,
});

type Host = DriverHost<typeof noFeeds>;

const ms_per_min = 60_000;

async function runLinks(options: LinksOptions, host: Host): Promise<void> {
  const ending = new AbortController();
  const signal = AbortSignal.any([host.signal, ending.signal]);
  const memory = new Memory(host.stateFile('links.json'), host.log, performance.now());
  const wake = new Wake();
  try {
    const source = await openRouteSource({
      roots: options.roots,
      signal,
      log: host.log,
      onChange: wake.trigger,
    });
    const boot = readBoot(options.roots.proc);
    const { probe, public_ip } = options;
    const availability = openAvailability({
      file: host.stateFile('availability.json'),
      boot,
      signal,
      log: host.log,
    });
    const table = new LinkTable({
      options,
      source,
      memory,
      boot,
      log: host.log,
      availability,
      probing: new Probing({
        start: startProber,
        targets: probe.targets,
        timeout_ms: probe.timeout_ms,
        signal,
        log: host.log,
        onChange: wake.trigger,
      }),
      public_addresses: new PublicAddresses({
        ask: publicAddress,
        servers: public_ip.stun,
        refresh_ms: public_ip.refresh_min * ms_per_min,
        signal,
        onChange: wake.trigger,
      }),
    });
    const reporter = new Reporter(host);
    while (!signal.aborted) {
      const mono_ms = performance.now();
      reporter.report(table.read({ mono_ms, wall_ms: Date.now() }), mono_ms);
      host.reportStatus({ routes: source.kind });
      memory.saveSometimes(mono_ms);
      await wake.wait(options.interval_s * 1_000, signal);
    }
  } finally {
    ending.abort();
    await memory.save();
  }
}

/** Reports changes: reasons to the hub, changes of status to the log. */
class Reporter {
  readonly #host: Host;
  #reasons: ReadonlyMap<string, string | null> = new Map();
  readonly #statuses = new Map<string, { readonly status: LinkStatus; readonly since_ms: number }>();

  constructor(host: Host) {
    this.#host = host;
  }

  report(all: readonly TableLink[], mono_ms: number): void {
    const reasons = new Map(all.map(({ link, reason }) => [link.name, reason]));
    // Before the status, so that the event of a change carries its reason.
    for (const name of new Set([...reasons.keys(), ...this.#reasons.keys()])) {
      const reason = reasons.get(name) ?? null;
      if (reason !== (this.#reasons.get(name) ?? null)) this.#host.reportLink({ name, reason });
    }
    this.#reasons = reasons;
    for (const name of this.#statuses.keys()) if (!reasons.has(name)) this.#statuses.delete(name);
    for (const { link, reason } of all)
      this.#log({ link: link.name, mono_ms, reason }, link.status ?? undefined);
    this.#host.reportKit({ wans: all.map(({ link }) => link) });
  }

  #log({ link, mono_ms, reason }: Seen, status: LinkStatus | undefined): void {
    const before = this.#statuses.get(link);
    if (status === undefined || status === before?.status) return;
    this.#statuses.set(link, { status, since_ms: mono_ms });
    const { log } = this.#host;
    const facts = reason === null ? { link, status } : { link, status, reason };
    if (before === undefined) log.info(facts, texts.link_added);
    else if (status === 'offline') log.warn(facts, texts.link_lost);
    else if (before.status === 'offline')
      log.info({ ...facts, down_s: (mono_ms - before.since_ms) / 1_000 }, texts.link_back);
    else log.info(facts, texts.status_changed);
  }
}

/** One link as it was read. */
interface Seen {
  readonly link: string;
  readonly mono_ms: number;
  readonly reason: string | null;
}
