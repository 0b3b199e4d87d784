/** The WAN links of the kit: which there are, what each is, its status, its figures and what it has carried. */
import { noFeeds } from '../../src/contract/feeds.ts';
import type { LinkCause, LinkStatus } from '../../src/contract/kit.ts';
import { defineDriver, type DriverHost, type DeviceReport } from '../../src/toolkit/driver/driver.ts';
import { texts } from './texts.ts';
import { beganAt, type TableLink } from './status.ts';
import { Caps, capWeakness } from './usage/cap.ts';
import { Wake } from '../../src/toolkit/device/wake.ts';
import { LinkTable, type LinkTableParts } from './link-table.ts';
import { Memory } from './usage/memory.ts';
import { type LinksOptions, linksOptions } from './options.ts';
import { Availability, type Boot, readBoot } from './probe/availability.ts';
import { Nat64 } from './probe/nat64.ts';
import { startProber } from './probe/prober.ts';
import { publicAddress, PublicAddresses } from './probe/public-addresses.ts';
import { Probing } from './probing.ts';
import { startChecker } from './checks/checker.ts';
import { openRouteSource, type RouteSource } from './routes/route-source.ts';
import { labelOf } from './checks/api.ts';
import { ownConnections } from '../../src/platform/linux/own-connections.ts';

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
  const file = host.stateFile('availability.json');
  const boot = readBoot(options.roots.proc);
  const availability = new Availability({ file, boot, signal, log: host.log });
  const wake = new Wake();
  try {
    const { roots, interval_s } = options;
    const names = [...Object.keys(options.wan), ...options.ignore];
    const source = await openRouteSource({ roots, signal, log: host.log, names, onChange: wake.trigger });
    // Other roots show another network than the one that this process is in.
    const connections = source.kind === 'netlink' ? await ownConnections() : () => [];
    const table = openTable({
      connections,
      options,
      host,
      signal,
      memory,
      boot,
      availability,
      source,
      onChange: wake.trigger,
    });
    const reporter = new Reporter(host);
    const caps = new Caps(host, memory);
    while (!signal.aborted) {
      const [mono_ms, wall_ms] = [performance.now(), Date.now()];
      const read = table.read({ mono_ms, wall_ms });
      reporter.report(read, mono_ms);
      const capped = read.flatMap(({ cap }) => cap ?? []);
      caps.report(capped, mono_ms);
      host.reportStatus({ routes: source.kind, order: orderOf(read) }, linkReports(read, options, wall_ms));
      memory.saveSometimes(mono_ms);
      await wake.wait(interval_s * 1_000, signal);
    }
  } finally {
    ending.abort();
    await Promise.all([availability.save(), memory.save()]);
  }
}

interface RunParts {
  readonly connections: LinkTableParts['connections'];
  readonly options: LinksOptions;
  readonly host: Host;
  readonly signal: AbortSignal;
  readonly memory: Memory;
  readonly boot: Boot;
  readonly availability: Availability;
  readonly source: RouteSource;
  readonly onChange: () => void;
}

function openTable({ options, host, signal, onChange, ...known }: RunParts): LinkTable {
  const { log } = host;
  const { probe, checks, public_ip } = options;
  return new LinkTable({
    ...known,
    options,
    log,
    nat64: new Nat64(onChange, signal),
    probing: new Probing({
      start: startProber,
      startChecker,
      tcp: probe.tcp,
      hasTargets: probe.targets.length > 0,
      hasChecks: checks.list.length > 0,
      timeout_ms: probe.timeout_ms,
      check_timeout_ms: checks.timeout_ms,
      signal,
      log,
      onChange,
    }),
    public_addresses: new PublicAddresses({
      ask: publicAddress,
      servers: public_ip.stun,
      refresh_ms: public_ip.refresh_min * ms_per_min,
      signal,
      onChange,
    }),
  });
}

const unexplained = { reason: null, cause: null };

/** Reports changes: reasons to the hub, changes of status to the log. */
class Reporter {
  readonly #host: Host;
  #reasons: ReadonlyMap<string, { readonly reason: string | null; readonly cause: LinkCause | null }> =
    new Map();
  readonly #statuses = new Map<string, { readonly status: LinkStatus; readonly since_ms: number }>();

  constructor(host: Host) {
    this.#host = host;
  }

  report(all: readonly TableLink[], mono_ms: number): void {
    const began = new Map(all.map((each) => [each.link.name, this.#beganAt(each, mono_ms)]));
    // Before the status, so that the event of a change carries its reason.
    this.#explain(all, (name) => mono_ms - (began.get(name) ?? mono_ms));
    for (const name of this.#statuses.keys()) if (!began.has(name)) this.#statuses.delete(name);
    for (const { link, reason } of all) {
      const since_ms = began.get(link.name) ?? mono_ms;
      this.#log({ link: link.name, since_ms, reason }, link.status ?? undefined);
    }
    this.#host.reportKit({ wans: all.map(({ link }) => link) });
  }

  #explain(all: readonly TableLink[], lastsOf: (name: string) => number): void {
    const reasons = new Map(all.map(({ link, reason, cause }) => [link.name, { reason, cause }]));
    for (const name of new Set([...reasons.keys(), ...this.#reasons.keys()])) {
      const now = reasons.get(name) ?? unexplained;
      const before = this.#reasons.get(name) ?? unexplained;
      const isSame = now.reason === before.reason && now.cause === before.cause;
      if (!isSame) this.#host.reportLink({ name, ...now, lasts_ms: lastsOf(name) });
    }
    this.#reasons = reasons;
  }

  #beganAt({ link, cause, since_ms }: TableLink, now_ms: number): number {
    const why = link.status === 'offline' ? cause : this.#reasons.get(link.name)?.cause;
    return beganAt(since_ms, why, { before_ms: this.#statuses.get(link.name)?.since_ms, now_ms });
  }

  #log({ link, since_ms, reason }: Seen, status: LinkStatus | undefined): void {
    const before = this.#statuses.get(link);
    if (status === undefined || status === before?.status) return;
    this.#statuses.set(link, { status, since_ms });
    const { log } = this.#host;
    const facts = reason === null ? { link, status } : { link, status, reason };
    if (before === undefined) log.info(facts, texts.link_added);
    else if (status === 'offline') log.warn(facts, texts.link_lost);
    else if (before.status === 'offline')
      log.info({ ...facts, down_s: Math.round((since_ms - before.since_ms) / 100) / 10 }, texts.link_back);
    else log.info(facts, texts.status_changed);
  }
}

/** One link as it was read. */
interface Seen {
  readonly link: string;
  /** When its status began. */
  readonly since_ms: number;
  readonly reason: string | null;
}

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
