/** Puts together, at each reading, what is known of every WAN link. */
import { join } from 'node:path';
import type { DataCap } from '../../src/contract/feeds.ts';
import { type Link, type LinkStatus, wans_max } from '../../src/contract/kit.ts';
import type { DriverLog } from '../../src/toolkit/driver/driver.ts';
import { DeviceUnreachable } from '../../src/platform/errors.ts';
import {
  ownPublicAddress,
  interfaceFault,
  judge,
  type LinkFacts,
  type LinkState,
  type TableLink,
} from './status.ts';
import { texts } from './texts.ts';
import { calendar, monthStart } from './usage/calendar.ts';
import { isTunnel, typeByName, typeOf, findWans, type Wan, readPppoe } from './interfaces/inventory.ts';
import { Ledger } from './usage/ledger.ts';
import type { Memory } from './usage/memory.ts';
import type { LinksOptions, WanOptions } from './options.ts';
import type { Availability, Boot, Moment } from './probe/availability.ts';
import { no_reading, type ProbeReading, type ProbeTarget } from './probe/course.ts';
import type { Nat64 } from './probe/nat64.ts';
import { type Check, labelOf } from './checks/api.ts';
import type { Asked, Probing } from './probing.ts';
import type { PublicAddresses } from './probe/public-addresses.ts';
import type { RouteSource } from './routes/route-source.ts';
import {
  carriersOfTunnel,
  failoverOrder,
  familiesOf,
  type Family,
  refusedFamilies,
  refusesTraffic,
  routedInterfaces,
  type Routing,
  selectedInterfaces,
  serverOnly,
} from './routes/routing.ts';
import { DeadRoutes, type RoutedLink } from './dead-route.ts';
import { arphrd, Interfaces, type Nature } from './interfaces/sysfs.ts';
import { type CapReading, capOf } from './usage/cap.ts';
import { empty_ledger, type UsageLedger, usageOf } from './usage/usage.ts';
import type { OwnConnection } from '../../src/platform/linux/own-connections.ts';
import { isPublicIp } from '../../src/platform/public-ip.ts';

export interface LinkTableParts {
  readonly options: LinksOptions;
  readonly source: RouteSource;
  readonly memory: Memory;
  readonly probing: Probing;
  readonly availability: Availability;
  readonly public_addresses: PublicAddresses;
  readonly nat64: Nat64;
  /** Of this process, that are answered. */
  readonly connections: () => readonly OwnConnection[];
  readonly boot: Boot;
  readonly log: DriverLog;
}

/** What one reading of the machine shows. */
interface Snapshot {
  readonly at: Moment;
  readonly day: string | null;
  readonly routing: Routing;
  readonly routed: ReadonlySet<number>;
  readonly selected: readonly number[];
  /** Carry a tunnel that has all of the traffic. */
  readonly below_tunnel: readonly number[];
  readonly traffic: LinkFacts['traffic'];
  readonly isRefused: boolean;
  /** PPP interfaces over Ethernet. */
  readonly pppoe: ReadonlySet<string>;
  /** Of all interfaces. */
  readonly names: readonly string[];
  readonly isTunnelIndex: (ifindex: number) => boolean;
  /** Asked of the kernel at most once, and only where it matters. */
  readonly connections: () => readonly OwnConnection[];
  /** What can be asked over an interface. */
  readonly askedOver: (ifindex: number) => Asked;
}

/** What one reading shows of a link. */
interface LinkReading {
  readonly name: string;
  readonly status: LinkStatus | undefined;
  readonly probed: ProbeReading | null;
  readonly at: Moment;
}

/** As long as DHCP and router advertisements usually take, one after the other. */
const settle_ms = 15_000;
const settling: LinkState = { status: undefined, reason: texts.first_probes };

export class LinkTable {
  readonly #parts: LinkTableParts;
  readonly #interfaces: Interfaces;
  readonly #dayOf: (wall_ms: number) => string | null;
  readonly #ledger: Ledger;
  readonly #dead_routes: DeadRoutes;
  readonly #offline = new Set<string>();
  /** Since when a link could carry traffic and nothing that is configured can be asked over it. */
  readonly #assumed = new Map<string, number>();
  /** Interfaces by the alternative names of the configuration, also while they are away. */
  readonly #named = new Map<string, string>();
  /** Options by interface. */
  #wan: ReadonlyMap<string, WanOptions> = new Map();
  #left_out = '';

  constructor(parts: LinkTableParts) {
    const { options, memory, boot } = parts;
    this.#parts = parts;
    this.#interfaces = new Interfaces(options.roots.sys, parts.log);
    this.#dayOf = calendar(options.usage.zone);
    this.#dead_routes = new DeadRoutes(parts.log, options.failover_s * 1_000);
    this.#ledger = new Ledger({
      memory,
      boot,
      interval_ms: options.interval_s * 1_000,
      month_starts_on: options.usage.month_starts_on,
    });
  }

  /** All links, those in use first. Throws `DeviceUnreachable` when the kernel does not list its interfaces. */
  read(at: Moment): readonly TableLink[] {
    const { options, source, memory, probing } = this.#parts;
    const natures = this.#interfaces.natures();
    if (!natures) {
      const path = join(options.roots.sys, 'class/net');
      throw new DeviceUnreachable(texts.sys_unreadable(path));
    }
    const routing = source.read(natures);
    const byIndex = new Map([...natures.values()].map((nature) => [nature.ifindex, nature]));
    const isTunnelIndex = (ifindex: number): boolean => {
      const nature = byIndex.get(ifindex);
      return nature !== undefined && isTunnel(nature);
    };
    const nameOf = (ifindex: number | undefined): string | undefined =>
      ifindex === undefined ? undefined : byIndex.get(ifindex)?.name;
    for (const name of memory.followRenames(this.#parts.boot.id, nameOf)) this.#offline.delete(name);
    const realName = (name: string): string => this.#realName(name, natures, nameOf(routing.named.get(name)));
    this.#wan = new Map(Object.entries(options.wan).map(([name, wan]) => [realName(name), wan]));
    const stateOf = remembering((name: string) => this.#interfaces.state(name));
    const pppoe = readPppoe(options.roots.proc, natures, stateOf);
    const carriers = carriersOfTunnel(routing, isTunnelIndex);
    const below_tunnel = serverOnly(routing, carriers);
    const routed = routedInterfaces(routing, carriers);
    const selected = selectedInterfaces(routing, isTunnelIndex, carriers);
    const order = failoverOrder(routing, isTunnelIndex, selected);
    const { wans, left_out } = findWans({
      natures,
      stateOf,
      routed,
      order,
      pppoe,
      configured: [...this.#wan.keys()],
      ignored: options.ignore.map(realName),
      remembered: memory.newestFirst(),
    });
    this.#logLeftOut(left_out);
    const snapshot: Snapshot = {
      at,
      day: this.#dayOf(at.wall_ms),
      routing,
      routed,
      selected,
      below_tunnel,
      traffic: selected.length > 0 ? 'carried' : refusesTraffic(routing) ? 'refused' : 'unrouted',
      isRefused: isEachOf(refusedFamilies(routing), options.probe.targets),
      pppoe: pppoe.links,
      names: [...natures.values()].filter(({ kind }) => kind !== arphrd.loopback).map(({ name }) => name),
      isTunnelIndex,
      connections: once(this.#parts.connections),
      askedOver: remembering((ifindex: number) => this.#askedOver(ifindex, routing, at.mono_ms)),
    };
    this.#remember(wans, snapshot);
    probing.follow(wans.flatMap((wan) => this.#probed(wan, snapshot)));
    const links = wans.map((wan) => ({ wan, known: this.#linkOf(wan, snapshot) }));
    const listed = new Set(wans.map(({ name }) => name));
    this.#ledger.endReading(byIndex.keys(), listed);
    for (const name of this.#offline) if (!listed.has(name)) this.#offline.delete(name);
    for (const name of this.#assumed.keys()) if (!listed.has(name)) this.#assumed.delete(name);
    this.#parts.public_addresses.keepOnly(listed);
    return this.#dead_routes.explain(inOrder(links, order), at.mono_ms);
  }

  /** A name of the configuration may be an alternative name of the interface. */
  #realName(name: string, natures: ReadonlyMap<string, Nature>, named: string | undefined): string {
    if (natures.has(name)) return name;
    if (named !== undefined) this.#named.set(name, named);
    return this.#named.get(name) ?? name;
  }

  #remember(wans: readonly Wan[], { at, day, pppoe }: Snapshot): void {
    const seen_ms = day === null ? null : at.wall_ms;
    const { options, memory } = this.#parts;
    const known = wans.map(({ name }) => name);
    const evident = wans.filter(({ isEvident }) => isEvident);
    for (const { name, present } of evident) {
      if (present) memory.update(name, typeOf(present.nature, pppoe), { seen_ms });
    }
    const hidden = memory
      .names()
      .filter(
        (name) =>
          !known.includes(name) && !options.ignore.some((each) => (this.#named.get(each) ?? each) === name),
      );
    // What stands below another link for now is not listed, and comes back when that link goes.
    const kept = new Set([...known, ...hidden.filter((name) => !this.#isMember(name))]);
    memory.prune(kept, new Set([...evident.map(({ name }) => name), ...this.#wan.keys()]), seen_ms);
  }

  /** Once for each set of them. */
  #logLeftOut(left_out: readonly string[]): void {
    const names = left_out.toSorted().join(', ');
    if (names !== this.#left_out && names !== '')
      this.#parts.log.warn(
        { interfaces: left_out, max: wans_max, remedy: texts.ignore_some },
        texts.too_many,
      );
    this.#left_out = names;
  }

  #isMember(name: string): boolean {
    return this.#interfaces.state(name).hasMaster;
  }

  #typeOf({ name, present }: Wan, pppoe: ReadonlySet<string>) {
    const { memory } = this.#parts;
    const configured = this.#wan.get(name)?.type;
    if (configured) return configured;
    if (present) return typeOf(present.nature, pppoe);
    return memory.get(name)?.type ?? typeByName(name);
  }

  #probed(wan: Wan, snapshot: Snapshot) {
    const { routing, pppoe } = snapshot;
    const { options } = this.#parts;
    const { probe, checks } = options;
    if (!wan.present) return [];
    const addresses = this.#addressesOf(wan.present.nature.ifindex, routing);
    // A verdict from before an outage of the interface does not apply to the link after it.
    if (interfaceFault(wan.present.state, addresses) !== null) return [];
    const isMetered = this.#wan.get(wan.name)?.metered ?? this.#typeOf(wan, pppoe) === 'cellular';
    const pace = isMetered ? 'metered_interval_s' : 'interval_s';
    const interval_ms = probe[pace] * 1_000;
    const check_interval_ms = checks[pace] * 1_000;
    const { ifindex } = wan.present.nature;
    const asked = snapshot.askedOver(ifindex);
    return [{ name: wan.name, ifindex, asked, interval_ms, check_interval_ms }];
  }

  /** What can be asked over a link: of the families that it has, and IPv4 through the translation of its network where there is one. */
  #askedOver(ifindex: number, routing: Routing, mono_ms: number): Asked {
    const { options, nat64 } = this.#parts;
    const families = familiesOf(ifindex, routing);
    const over = (ip: string): string | null => {
      const family = ip.includes(':') ? 6 : 4;
      if (families.includes(family)) return ip;
      return family === 4 && families.includes(6) ? nat64.translated(ip, mono_ms) : null;
    };
    const targets = options.probe.targets.flatMap(({ ip, port }) => {
      const by = over(ip);
      return by === null ? [] : [{ ip: by, port }];
    });
    return { families, targets, checks: options.checks.list.flatMap((check) => checkOver(check, over)) };
  }

  #linkOf(wan: Wan, snapshot: Snapshot): RoutedLink {
    const { options, availability, probing } = this.#parts;
    const { name, present } = wan;
    const type = this.#typeOf(wan, snapshot.pppoe);
    const ifindex = present?.nature.ifindex;
    const addresses = this.#addressesOf(ifindex, snapshot.routing);
    const { isSelected, isBelowTunnel } = routesOf(ifindex, snapshot);
    const probed = withConnections(evidenceOf(probing.read(name), isBelowTunnel), present, snapshot);
    const { status, reason, cause = null } = this.#judge(wan, snapshot, probed);
    this.#noteAvailability({ name, status, probed, at: snapshot.at });
    const tally = this.#ledger.take(wan, type, snapshot);
    const counted = wan.counted_on === null ? tally.usage : empty_ledger;
    const usage = usageOf(counted, snapshot.day, options.usage.month_starts_on);
    const link: Link = {
      name,
      type,
      status,
      isp: this.#wan.get(name)?.isp,
      ip: this.#ip({ name, ifindex, addresses, isUsable: status !== 'offline' }, snapshot.at),
      ...tally.rates,
      ...tally.peaks,
      ...figures(probed, status),
      availability_pct: availability.pct(name),
      usage,
    };
    return {
      link,
      cause,
      since_ms: probed?.reachable === (status !== 'offline') ? probed.since_ms : null,
      weakness: null,
      isSelected,
      isBalanced: this.#isBalanced(name),
      cap: this.#capOf(name, { usage, days: counted.days, day: snapshot.day }),
      reason: this.#reasonOf(wan, snapshot, [
        reason,
        status === 'offline' ? null : (probed?.note ?? null),
        unknownOf(counted, snapshot.day, options.usage.month_starts_on),
      ]),
    };
  }

  #reasonOf({ name, present, counted_on }: Wan, { names, day }: Snapshot, known: readonly (string | null)[]) {
    const wasNeverThere = present === null && this.#parts.memory.get(name) === undefined;
    const notes = [
      ...known,
      wasNeverThere ? texts.name_matches_nothing(names) : null,
      counted_on === null ? null : texts.counted_on(counted_on),
      day === null ? texts.clock_not_set : null,
    ];
    return notes.filter(Boolean).join('; ') || null;
  }

  #isBalanced(name: string): boolean {
    return this.#wan.get(name)?.balanced ?? false;
  }

  #capOf(name: string, counted: Pick<CapReading, 'usage' | 'days' | 'day'>): DataCap | null {
    const { options } = this.#parts;
    const { cap_gb, cap_warn_pct = 80 } = this.#wan.get(name) ?? {};
    if (cap_gb === undefined) return null;
    const { month_starts_on } = options.usage;
    return capOf({ ...counted, name, limits: { cap_gb, warn_pct: cap_warn_pct }, month_starts_on });
  }

  #addressesOf(ifindex: number | undefined, { addresses }: Routing): readonly string[] | null {
    if (addresses === null) return null;
    return ifindex === undefined ? [] : (addresses.get(ifindex) ?? []);
  }

  #judge({ name, present }: Wan, snapshot: Snapshot, probed: ProbeReading | null): LinkState {
    const ifindex = present?.nature.ifindex;
    const { isSelected, ...routes } = routesOf(ifindex, snapshot);
    const facts = this.#askedFacts(ifindex, snapshot);
    const verdict = judge({
      ...routes,
      traffic: snapshot.traffic,
      isRefused: snapshot.isRefused,
      state: present?.state ?? null,
      addresses: this.#addressesOf(ifindex, snapshot.routing),
      isSelected: isSelected || this.#isBalanced(name),
      ...facts,
      ...probeFacts(probed),
    });
    const isAssumed = verdict.status !== 'offline' && facts.asked.length === 0 && facts.missing.length > 0;
    return this.#heldOffline(name, this.#isSettling(name, isAssumed, snapshot.at) ? settling : verdict);
  }

  /** What is asked over a link, and the families of what is configured that it lacks. */
  #askedFacts(ifindex: number | undefined, { askedOver }: Snapshot): Pick<LinkFacts, 'asked' | 'missing'> {
    const { probe, checks } = this.#parts.options;
    if (ifindex === undefined) return { asked: labelsOf(probe.targets, checks.list), missing: [] };
    const { families, targets, checks: asked_checks } = askedOver(ifindex);
    const configured = [...probe.targets.map(({ ip }) => ip), ...checks.list.map(askedOf)];
    const missing = ([4, 6] as const).filter(
      (family) => !families.includes(family) && configured.some((ip) => ip.includes(':') === (family === 6)),
    );
    return { asked: labelsOf(targets, asked_checks), missing };
  }

  /** The family that can be asked may come a little later than the other: until then nothing is assumed. */
  #isSettling(name: string, isAssumed: boolean, { mono_ms }: Moment): boolean {
    const since_ms = this.#assumed.get(name) ?? mono_ms;
    if (isAssumed) this.#assumed.set(name, since_ms);
    else this.#assumed.delete(name);
    return isAssumed && mono_ms - since_ms < settle_ms;
  }

  /** A link that comes back stays offline until it answers. */
  #heldOffline(name: string, verdict: LinkState): LinkState {
    if (verdict.status === undefined && this.#offline.has(name))
      return { status: 'offline', reason: verdict.reason, cause: 'no_answer' };
    if (verdict.status === 'offline') this.#offline.add(name);
    else this.#offline.delete(name);
    return verdict;
  }

  #noteAvailability({ name, status, probed, at }: LinkReading): void {
    const { options, availability } = this.#parts;
    if (options.probe.targets.length + options.checks.list.length === 0) return;
    const reachable = status === 'offline' ? false : (probed?.reachable ?? null);
    const since_ms = probed?.reachable === reachable ? probed.since_ms : at.mono_ms;
    availability.note({ link: name, reachable, at, since_ms: since_ms ?? undefined });
  }

  /** The address that others see; the interface's own if that is a public one. */
  #ip(
    link: {
      readonly name: string;
      readonly ifindex: number | undefined;
      readonly addresses: readonly string[] | null;
      readonly isUsable: boolean;
    },
    at: Moment,
  ): string | null {
    const { name, ifindex, addresses } = link;
    if (ifindex === undefined) return null;
    const own = addresses === null ? null : ownPublicAddress(addresses);
    if (!link.isUsable) return own;
    return this.#parts.public_addresses.of({ name, ifindex, addresses: addresses ?? [] }, at.mono_ms) ?? own;
  }
}

/** In the billing month in which some bytes are not known. */
function unknownOf({ unknown_on }: UsageLedger, day: string | null, month_starts_on: number): string | null {
  if (unknown_on === undefined || day === null || unknown_on < monthStart(day, month_starts_on)) return null;
  return texts.bytes_unknown(unknown_on);
}

/** How the kernel's tables see an interface. */
function routesOf(ifindex: number | undefined, { routed, selected, below_tunnel }: Snapshot) {
  if (ifindex === undefined) return { isRouted: false, isSelected: false, isBelowTunnel: false };
  return {
    isRouted: routed.has(ifindex),
    isSelected: selected.includes(ifindex),
    isBelowTunnel: below_tunnel.includes(ifindex),
  };
}

function probeFacts(
  probed: ProbeReading | null,
): Pick<LinkFacts, 'reachable' | 'probe_reason' | 'decided_by'> {
  const { reachable = null, reason = null, decided_by = 'probes' } = probed ?? {};
  return { reachable, probe_reason: reason, decided_by };
}

/** Only the server of a tunnel can be reached over the link that carries it: that nothing else answers is no evidence. */
function evidenceOf(probed: ProbeReading | null, isBelowTunnel: boolean): ProbeReading | null {
  return isBelowTunnel && probed?.reachable !== true ? null : probed;
}

/**
 * A link that the kit's own connections are answered over is not unreachable, whatever the probes met: they are filtered, or answered
 * by something else. What came through a tunnel came over the one link that unmarked traffic uses.
 */
function withConnections(
  probed: ProbeReading | null,
  present: Wan['present'],
  { routing, selected, isTunnelIndex, connections }: Snapshot,
): ProbeReading | null {
  if (!present || probed?.reachable !== false) return probed;
  const { ifindex, kind } = present.nature;
  const own = routing.addresses?.get(ifindex) ?? [];
  const silent_since_ms = probed.silent_ms ?? probed.since_ms ?? Number.NEGATIVE_INFINITY;
  const isOnlyWay = selected.length === 1 && selected[0] === ifindex;
  const isAnswered = connections().some((each) => {
    if (each.received_ms <= silent_since_ms) return false;
    if (isTunnelIndex(each.ifindex)) return isOnlyWay;
    // A neighbour on the wire of the link, as its modem, is no evidence.
    const isBeyond = each.hasRouter || kind !== arphrd.ethernet || isPublicIp(each.remote_ip);
    return each.ifindex === ifindex && own.includes(each.local_ip) && isBeyond;
  });
  return isAnswered ? { ...no_reading, reachable: true, note: texts.only_connections_answer } : probed;
}

function once<T>(ask: () => T): () => T {
  let answer: { readonly value: T } | undefined;
  return () => (answer ??= { value: ask() }).value;
}

function labelsOf(targets: readonly ProbeTarget[], checks: readonly Check[]): readonly string[] {
  return [...targets.map(({ ip }) => ip), ...checks.map(labelOf)];
}

/** The address that a check asks first: its name server, or its server. */
function askedOf(check: Check): string {
  return check.kind === 'dns' ? check.server : (check.ip ?? check.resolver ?? '');
}

/** The check with the addresses by which it is asked over a link; none where it cannot be. */
function checkOver(check: Check, over: (ip: string) => string | null): readonly Check[] {
  const by = over(askedOf(check));
  if (by === null) return [];
  if (check.kind === 'dns') return [{ ...check, server: by }];
  return [check.ip === null ? { ...check, resolver: by } : { ...check, ip: by }];
}

/** Measurements of the probes. An offline link keeps only the values that show the outage: the others are older. */
function figures(probed: ProbeReading | null, status: LinkStatus | undefined) {
  const isOver = status === 'offline' && probed?.reachable !== false;
  if (!probed || isOver) return { latency_ms: null, jitter_ms: null, packet_loss_pct: null };
  const { latency_ms, jitter_ms, packet_loss_pct } = probed;
  return {
    latency_ms: tenths(latency_ms),
    jitter_ms: tenths(jitter_ms),
    packet_loss_pct: tenths(packet_loss_pct),
  };
}

function tenths(value: number | null): number | null {
  return value === null ? null : Math.round(value * 10) / 10;
}

function isEachOf(families: readonly Family[], targets: LinksOptions['probe']['targets']): boolean {
  return targets.length > 0 && targets.every(({ ip }) => families.includes(ip.includes(':') ? 6 : 4));
}

/** In use first, then those on standby, both in the order in which the kernel takes them; by name among equals. */
function inOrder(
  links: readonly { readonly wan: Wan; readonly known: RoutedLink }[],
  order: readonly number[],
): readonly RoutedLink[] {
  const rank = ({ wan, known }: (typeof links)[number]): number => {
    if (known.link.status === 'offline') return 3_000;
    const group = known.link.status === 'online' ? 0 : 1_000;
    const at = wan.present ? order.indexOf(wan.present.nature.ifindex) : -1;
    return group + (at < 0 ? order.length : at);
  };
  return [...links]
    .sort((a, b) => rank(a) - rank(b) || (a.wan.name < b.wan.name ? -1 : 1))
    .map(({ known }) => known);
}

/** One look at each interface is enough for one reading. */
function remembering<K, V>(look: (key: K) => V): (key: K) => V {
  const seen = new Map<K, V>();
  return (key) => {
    const known = seen.get(key) ?? look(key);
    seen.set(key, known);
    return known;
  };
}
