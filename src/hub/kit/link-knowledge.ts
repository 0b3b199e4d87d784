/** Merges what several drivers report of one link: a dish or a modem fills in what the interface does not show. */
import type { Link, LinkCause } from '../../contract/kit.ts';
import type { LinkKnowledge } from '../../driver/driver.ts';

/** Maximum links of one driver instance; further ones are ignored. */
export const known_links_max = 32;

/** Causes that something behind the interface may explain. */
export const outward_causes: ReadonlySet<LinkCause> = new Set([
  'no_answer',
  'no_carrier',
  'no_address',
  'no_route',
  'not_connected',
]);

/** Keeps the last report of each driver instance on each link. */
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
