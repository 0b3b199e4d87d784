/** The kit's own telemetry: merges what drivers report and publishes it at the hub's pace. */
import { prettifyError } from 'zod';
import { type KitPart, type KitTelemetry, kitTelemetry, type Link } from '../contract/kit.ts';
import { channels } from '../contract/topics.ts';
import type { DriverLog, Fix, LinkKnowledge } from '../driver/driver.ts';
import type { Appender } from '../outbox/api.ts';
import type { Clock } from '../platform/clock.ts';
import { every } from '../platform/time.ts';
import { linkEdges, type LinkStates } from './link-edges.ts';
import { KnownLinks } from './link-knowledge.ts';
import { Locations } from './location.ts';
import { stableJson } from './stable-json.ts';

/** Changed parts leave together, at most this often. */
const telemetry_tick_ms = 1_000;
/** While the kit is offline a whole snapshot is kept at most this often, and no parts. */
const offline_snapshot_ms = 60_000;

export interface KitOptions {
  readonly outbox: Appender;
  readonly clock: Clock;
  readonly isOnline: () => boolean;
  /** A whole snapshot is published at least this often while online. */
  readonly telemetry_floor_ms: number;
  /** The asset on which the edges of links are published. */
  readonly gatewayId: () => string;
  readonly signal: AbortSignal;
}

interface Part {
  /** Driver instance that reports it. */
  readonly owner: string;
  /** Telemetry with this part alone. */
  readonly data: KitTelemetry;
  readonly text: string;
}

/** A link as status shows it. */
export type KnownLink = Link & { readonly reason: string | null };

export class Kit {
  readonly #options: KitOptions;
  /** Keyed by the names of `kitTelemetry`, so it cannot grow. */
  readonly #parts = new Map<string, Part>();
  readonly #changed = new Set<string>();
  /** Faults that were logged: `owner part`. */
  readonly #told = new Set<string>();
  readonly #known_links = new KnownLinks();
  readonly #locations = new Locations();
  #links: LinkStates = new Map();
  #whole_due = true;
  #whole_ms = Number.NEGATIVE_INFINITY;
  #wasOnline = false;

  constructor(options: KitOptions) {
    this.#options = options;
    every(telemetry_tick_ms, options.signal, () => this.#tick());
  }

  /** Takes parts from a driver instance. The first instance that reports a part keeps it until it is withdrawn. */
  report(owner: string, part: KitPart, log: DriverLog): void {
    for (const [name, value] of Object.entries(part)) {
      if (value !== undefined) this.#reportOne(owner, name, value, log);
    }
  }

  /** What a driver knows of a link that `wans` of another one lists. */
  reportLink(owner: string, knowledge: LinkKnowledge): void {
    const before = stableJson(this.links());
    this.#known_links.note(owner, knowledge);
    if (stableJson(this.links()) !== before) this.#linksChanged();
  }

  /** A position of the kit as this instance knows it; null takes its last one back. */
  reportLocation(owner: string, fix: Fix | null): void {
    this.#locations.note(owner, fix, this.#options.clock.stamp().mono_ms);
  }

  /** The links with all that is known of them. */
  links(): readonly KnownLink[] {
    const wans = this.#parts.get('wans')?.data.wans ?? [];
    const reasonOf = (link: Link): Pick<KnownLink, 'reason'> => ({
      reason: this.#known_links.reason(link.name),
    });
    return wans.map((link) => Object.assign(this.#known_links.fill(link), reasonOf(link)));
  }

  /** What this instance reported is not repeated any more: nobody vouches for it. */
  withdraw(owner: string): void {
    this.#known_links.forget(owner);
    this.#locations.note(owner, null, 0);
    for (const [name, part] of this.#parts) {
      if (part.owner !== owner) continue;
      this.#parts.delete(name);
      this.#changed.delete(name);
    }
  }

  /** The next message is a whole snapshot. */
  announce(): void {
    this.#whole_due = true;
  }

  view(): KitTelemetry {
    return this.#snapshot(this.#parts.keys());
  }

  #reportOne(owner: string, name: string, value: unknown, log: DriverLog): void {
    const read = kitTelemetry.safeParse({ [name]: value });
    if (!read.success) {
      if (this.#isFirstFault(owner, name)) {
        const reason = prettifyError(read.error);
        log.error({ part: name, reason }, 'kit telemetry breaks its schema; part dropped');
      }
      return;
    }
    const known = this.#parts.get(name);
    if (known && known.owner !== owner) {
      if (this.#isFirstFault(owner, name)) {
        const facts = { part: name, kept: known.owner };
        log.warn(facts, 'another driver reports this part of the kit; the first one counts');
      }
      return;
    }
    const text = stableJson(read.data);
    if (known?.text === text) return;
    this.#parts.set(name, { owner, data: read.data, text });
    this.#changed.add(name);
    if (read.data.wans) this.#linksChanged();
  }

  #isFirstFault(owner: string, name: string): boolean {
    const key = `${owner} ${Object.hasOwn(kitTelemetry.shape, name) ? name : '?'}`;
    const isFirst = !this.#told.has(key);
    this.#told.add(key);
    return isFirst;
  }

  #linksChanged(): void {
    const { outbox, gatewayId } = this.#options;
    this.#changed.add('wans');
    const { states, edges } = linkEdges(this.#links, this.links());
    this.#links = states;
    for (const edge of edges) {
      const channel = channels.event(gatewayId(), 'link_status');
      outbox.append({ channel, lane: 'alarm', data: { ...edge } });
    }
  }

  #tick(): void {
    const { clock, isOnline, telemetry_floor_ms } = this.#options;
    const now_ms = clock.stamp().mono_ms;
    const online = isOnline();
    if (online && !this.#wasOnline) this.#whole_due = true;
    this.#wasOnline = online;
    if (this.#parts.size === 0) return;
    const floor_ms = online ? telemetry_floor_ms : offline_snapshot_ms;
    if ((online && this.#whole_due) || now_ms - this.#whole_ms >= floor_ms) {
      this.#whole_due = false;
      this.#whole_ms = now_ms;
      this.#publish(this.view());
    } else if (online && this.#changed.size > 0) {
      this.#publish(this.#snapshot(this.#changed));
    }
  }

  #publish(data: KitTelemetry): void {
    this.#options.outbox.append({ channel: channels.telemetry, lane: 'kit', data });
    this.#changed.clear();
  }

  #snapshot(names: Iterable<string>): KitTelemetry {
    const data: KitTelemetry = {};
    for (const name of names) Object.assign(data, this.#parts.get(name)?.data);
    if (data.wans) data.wans = data.wans.map((link) => this.#known_links.fill(link));
    return data;
  }
}
