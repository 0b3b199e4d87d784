/** Finds the WAN links whose status changed between two reports. */
import type { Link, LinkCause, LinkStatus, LinkType } from '../../../contract/kit.ts';
import { texts } from '../texts.ts';
import type { LinkKnowledge } from '../../../toolkit/driver/driver.ts';

interface LinkEdge {
  readonly name: string;
  readonly type: LinkType | null;
  readonly status: LinkStatus;
  readonly reason: string | null;
  /** Why it is offline, or was. */
  readonly cause: LinkCause | null;
  /** When it is back: how long it was offline, seconds. */
  readonly down_s: number | null;
}

interface LinkState extends Pick<LinkEdge, 'type' | 'status'> {
  /** While offline, why: what something behind the interface reported, else the first that the interface showed. */
  readonly cause: LinkCause | null;
  /** Monotonic; null: it was offline from the start, or is not. */
  readonly offline_since_ms: number | null;
  /** Its edges so far are spread over the time until then, at `edge_rate`. Monotonic. */
  readonly spread_until_ms: number;
}

export type LinkStates = ReadonlyMap<string, LinkState>;

interface Edges {
  readonly states: LinkStates;
  readonly edges: readonly LinkEdge[];
  /** A status is held back, and has to be looked at again. */
  readonly isHeld: boolean;
}

type KnownLink = Link & { readonly reason?: string | null; readonly cause?: LinkCause | null };

/** Links that are gone and still remembered, so that their return is an edge again. */
export const gone_max = 32;
/** Edges of one link: a flapping link costs traffic that may be metered. */
export const edge_rate: SpreadRate = { at_once: 20, every_ms: 60_000 };

/**
 * The first status of a link is no edge. A link that is not in the report any more went offline, once, and stays known.
 * The number of links in `wans` is limited by its schema. `lastsOf`: how long the status of a link has lasted already. A link
 * with too many edges keeps the status that was reported last; its present status follows when there is room.
 */
export function linkEdges(
  before: LinkStates,
  wans: readonly KnownLink[],
  now_ms: number,
  lastsOf: (name: string) => number = () => 0,
): Edges {
  const gone = goneLinks(before, new Set(wans.map((link) => link.name)), now_ms);
  const states = new Map(gone.states);
  const edges = [...gone.edges];
  let isHeld = gone.isHeld;
  for (const link of wans) {
    const known = before.get(link.name);
    const began_ms = now_ms - lastsOf(link.name);
    const state = stateOf(link, known, began_ms);
    if (!state) continue;
    if (!known || known.status === state.status) states.set(link.name, state);
    else if (hasRoom(known.spread_until_ms, now_ms, edge_rate)) {
      edges.push(edgeOf(link, { known, state, began_ms }));
      states.set(link.name, {
        ...state,
        spread_until_ms: spreadUntil(known.spread_until_ms, now_ms, edge_rate),
      });
    } else {
      isHeld = true;
      states.set(link.name, known);
    }
  }
  return { states, edges, isHeld };
}

/** What is known of a link that is seen for the first time. */
const unknown_link = { type: null, cause: null, spread_until_ms: Number.NEGATIVE_INFINITY } as const;

function stateOf(link: KnownLink, known: LinkState | undefined, began_ms: number): LinkState | undefined {
  const status = link.status ?? known?.status;
  if (status === undefined) return undefined;
  const { type, cause, spread_until_ms } = known ?? unknown_link;
  const lasting = { type: link.type ?? type, status, spread_until_ms };
  if (status !== 'offline') return { ...lasting, cause: null, offline_since_ms: null };
  const offline_since_ms = known ? offlineSince(known, began_ms) : null;
  return { ...lasting, cause: causeOf(link.cause ?? null, cause), offline_since_ms };
}

/** After a dish recovers, its link may not answer for a moment: that is not a new cause. */
function causeOf(now: LinkCause | null, before: LinkCause | null): LinkCause | null {
  return now === null || (before !== null && outward_causes.has(now)) ? before : now;
}

function offlineSince({ status, offline_since_ms }: LinkState, now_ms: number): number | null {
  return status === 'offline' ? offline_since_ms : now_ms;
}

function edgeOf(
  { name, reason = null }: KnownLink,
  {
    known,
    state,
    began_ms,
  }: { readonly known: LinkState; readonly state: LinkState; readonly began_ms: number },
): LinkEdge {
  const { type, status } = state;
  const cause = status === 'offline' ? state.cause : known.cause;
  const { offline_since_ms } = known;
  const isBack = known.status === 'offline' && offline_since_ms !== null;
  const down_s = isBack ? seconds(Math.max(0, began_ms - offline_since_ms)) : null;
  return { name, type, status, reason, cause, down_s };
}

function goneLinks(before: LinkStates, present: ReadonlySet<string>, now_ms: number): Edges {
  const gone = [...before].filter(([name]) => !present.has(name));
  const isHeldBack = (known: LinkState): boolean =>
    known.status !== 'offline' && !hasRoom(known.spread_until_ms, now_ms, edge_rate);
  const edges = gone.filter(([, known]) => known.status !== 'offline' && !isHeldBack(known)).map(goneEdge);
  const remembered = gone.slice(-gone_max).map(([name, known]): [string, LinkState] => {
    if (isHeldBack(known)) return [name, known];
    const offline_since_ms = offlineSince(known, now_ms);
    const spread_until_ms =
      known.status === 'offline'
        ? known.spread_until_ms
        : spreadUntil(known.spread_until_ms, now_ms, edge_rate);
    return [
      name,
      { type: known.type, status: 'offline', cause: 'removed', offline_since_ms, spread_until_ms },
    ];
  });
  return { states: new Map(remembered), edges, isHeld: remembered.some(([, known]) => isHeldBack(known)) };
}

function goneEdge([name, { type }]: readonly [string, LinkState]): LinkEdge {
  return { name, type, status: 'offline', reason: texts.interface_gone, cause: 'removed', down_s: null };
}

function seconds(ms: number): number {
  return Math.round(ms / 100) / 10;
}

/** Maximum links of one driver instance; further ones are ignored. */
const known_links_max = 32;

/** Causes that something behind the interface may explain. */
const outward_causes: ReadonlySet<LinkCause> = new Set([
  'no_answer',
  'no_carrier',
  'no_address',
  'no_route',
  'not_connected',
]);

/**
 * Merges what several drivers report of one link: a dish or a modem fills in what the interface does not show.
 * Keeps the last report of each driver instance on each link.
 */
export class KnownLinks {
  readonly #byOwner = new Map<string, Map<string, LinkKnowledge>>();
  #revision = 0;

  /** Rises with every change. */
  get revision(): number {
    return this.#revision;
  }

  /** Replaces the report of this instance on the link. */
  note(owner: string, knowledge: LinkKnowledge): void {
    this.#revision += 1;
    const links = this.#byOwner.get(owner) ?? new Map<string, LinkKnowledge>();
    this.#byOwner.set(owner, links);
    if (links.has(knowledge.name) || links.size < known_links_max) links.set(knowledge.name, knowledge);
  }

  /**
   * Drops the figures of this instance. Type and provider of its links stay known, and `reason` is why the
   * rest is unknown.
   */
  withdraw(owner: string, reason: string): void {
    this.#revision += 1;
    for (const [name, { type, isp }] of this.#byOwner.get(owner) ?? []) {
      const lasting = { ...(type ? { type } : {}), ...(isp ? { isp } : {}) };
      this.#byOwner.get(owner)?.set(name, { name, ...lasting, reason: `${owner}: ${reason}` });
    }
  }

  /** The link with its gaps filled; the first driver with a value wins. */
  fill(link: Link): Link {
    const filled: Link = { ...link };
    for (const { type, reason: _, cause: _cause, lasts_ms: _lasts, ...facts } of this.#of(link.name)) {
      const gaps = Object.entries(facts).filter(([key]) => !isKnown(Reflect.get(filled, key)));
      Object.assign(filled, Object.fromEntries(gaps));
      // A dish or a modem behind a plain network port has the better type.
      if (isKnown(type) && (!isKnown(filled.type) || filled.type === 'ethernet')) filled.type = type;
    }
    return filled;
  }

  /** The reasons for the state of the link from all drivers; null when none reports any. */
  reason(name: string): string | null {
    const reasons = this.#of(name).flatMap(({ reason }) => reason ?? []);
    return reasons.length > 0 ? [...new Set(reasons)].join('; ') : null;
  }

  /** The cause for which the link is offline: what a dish or a modem reports explains what the interface shows. */
  cause(name: string): LinkCause | null {
    const causes = this.#of(name).flatMap(({ cause }) => cause ?? []);
    return causes.find((cause) => !outward_causes.has(cause)) ?? causes[0] ?? null;
  }

  /** How long the state of the link had lasted when it was reported. */
  lasts_ms(name: string): number {
    return Math.max(0, ...this.#of(name).map(({ lasts_ms = 0 }) => lasts_ms));
  }

  #of(name: string): readonly LinkKnowledge[] {
    return [...this.#byOwner.values()].flatMap((links) => links.get(name) ?? []);
  }
}

function isKnown<T>(value: T): value is NonNullable<T> {
  return value !== null && value !== undefined;
}

interface SpreadRate {
  /** So many may be sent at once. */
  readonly at_once: number;
  /** In the long run one each time. */
  readonly every_ms: number;
}

/**
 * A limit of rate in one number: the moment until which what was sent so far is spread, one each `every_ms` (GCRA, ITU-T I.371).
 * Whether one more may be sent. Both moments are monotonic.
 */
export function hasRoom(spread_until_ms: number, now_ms: number, { at_once, every_ms }: SpreadRate): boolean {
  return spread_until_ms - now_ms <= (at_once - 1) * every_ms;
}

/** The moment once one more was sent. */
export function spreadUntil(spread_until_ms: number, now_ms: number, { every_ms }: SpreadRate): number {
  return Math.max(spread_until_ms, now_ms) + every_ms;
}
