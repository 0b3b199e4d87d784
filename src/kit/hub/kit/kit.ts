/** The kit's own telemetry: merges what drivers report and publishes it at the hub's pace. */
import { firstFault } from '../../../contract/first-fault.ts';
import { fit } from '../../../contract/fit.ts';
import { type DataCap, gatewayFeeds } from '../../../contract/feeds.ts';
import {
  type KitPart,
  type KitTelemetry,
  kitTelemetry,
  type Link,
  type LinkCause,
  type Location,
} from '../../../contract/kit.ts';
import { sentence_chars_max } from '../../../contract/limits.ts';
import { channels } from '../../../contract/topics.ts';
import type { DriverLog, Fix, LinkKnowledge } from '../../../toolkit/driver/driver.ts';
import type { Appender } from '../../outbox/api.ts';
import type { Clock } from '../../../platform/clock.ts';
import { cleanTexts, cleanTextsWithin } from '../../../platform/foreign-text.ts';
import { every } from '../../../platform/time.ts';
import { hasRoom, KnownLinks, linkEdges, type LinkStates, spreadUntil } from './link-edges.ts';
import { stableJson } from '../assets/asset.ts';
import type { KitLocation, LocationView } from './location.ts';
import { texts } from '../texts.ts';
import { distance_m, type Point } from '../../../toolkit/device/distance.ts';

/** Changed parts leave together, at most this often. */
const telemetry_tick_ms = 1_000;
/** A figure that comes back into its deadband within this time was noise; less where a faster pace is configured. */
const dwell_max_ms = 3_000;
/** Changes of state that are sent at once; more follow at the pace of figures. A state that flaps costs traffic that may be metered. */
export const states_at_once = 20;
/** While the kit is offline a whole snapshot is kept at most this often, and no parts. */
const offline_snapshot_ms = 60_000;

/** When news of the kit leave. */
export interface TelemetryPace {
  /** A whole snapshot is published at least this often while online. */
  readonly telemetry_floor_ms: number;
  /** Between two messages whose only news are figures. */
  readonly telemetry_pace_ms: number;
  readonly deadbands: Deadbands;
}

export interface KitOptions extends TelemetryPace {
  readonly outbox: Appender;
  readonly clock: Clock;
  /** Whether the broker can be reached now. */
  readonly isOnline: () => boolean;
  readonly kit_location: KitLocation;
  /** Called every second with the location as it is now. */
  readonly onLocation: (location: Location) => void;
  /** Interface that packets to the broker leave by; null: not known. */
  readonly carrier: () => string | null;
  /** That interface was reported offline, and is no longer. */
  readonly onLinkBack: () => void;
  /** The asset on which the edges of links are published. */
  readonly gatewayId: () => string;
  /** Ends every timer of the hub. What is held back for its rate is sent then. */
  readonly signal: AbortSignal;
}

/** Parts for which null stands for `not known`. */
const nullable_parts: ReadonlySet<string> = new Set(['battery', 'battery_charging']);
/** Owner of what no instance reports any more. */
const nobody = '';

interface Part {
  /** Driver instance that reports it. */
  readonly owner: string;
  /** Telemetry with this part alone. */
  readonly data: KitTelemetry;
  readonly text: string;
}

/** A link as status shows it. */
export type KnownLink = Link & { readonly reason: string | null; readonly cause: LinkCause | null };

const no_links: readonly Link[] = [];

/** The links, and of what they were made. */
interface Merged {
  readonly wans: readonly Link[];
  readonly revision: number;
  readonly carrier: string | null;
  readonly links: readonly KnownLink[];
}

export class Kit {
  readonly #options: KitOptions;
  /** Keyed by the names of `kitTelemetry`, so it cannot grow. */
  readonly #parts = new Map<string, Part>();
  /** What was published last, by part. */
  readonly #published_parts = new Map<string, unknown>();
  /** Faults that were logged: `owner part`. */
  readonly #told = new Set<string>();
  readonly #known_links = new KnownLinks();
  #caps: { readonly owner: string; readonly links: readonly DataCap[] } = { owner: nobody, links: [] };
  /** The uplink asks for the links with each packet, and they change once in a while. */
  #merged: Merged | undefined;
  #links: LinkStates = new Map();
  /** The status of a link is held back since it changed too often. */
  #has_held_links = false;
  #whole_due = true;
  #whole_ms = Number.NEGATIVE_INFINITY;
  #sent_ms = Number.NEGATIVE_INFINITY;
  /** States that were sent at once are spread over the time until then. Monotonic. */
  #spread_until_ms = Number.NEGATIVE_INFINITY;
  /** Since when some figure has been out of its deadband without a break. */
  #moved_ms: number | undefined;
  #wasOnline = false;

  #pace: TelemetryPace;
  #ticked_ms = performance.now();

  constructor(options: KitOptions) {
    this.#options = options;
    this.#pace = options;
    every(telemetry_tick_ms, options.signal, () => {
      this.#tick();
      this.#ticked_ms = performance.now();
    });
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
    this.#known_links.note(owner, cleanTextsWithin(sentence_chars_max, knowledge));
    if (stableJson(this.links()) !== before) this.#linksChanged();
  }

  /** The data caps of all links, from the driver that counts. */
  noteCaps(owner: string, message: unknown): void {
    this.#caps = { owner, links: gatewayFeeds.data_caps.safeParse(message).data?.links ?? [] };
  }

  dataCap(link: string | undefined): DataCap | undefined {
    return this.#caps.links.find(({ name }) => name === link);
  }

  /** A position of the kit as this instance knows it; null takes its last one back. */
  reportLocation(owner: string, fix: Fix | null): void {
    this.#options.kit_location.note(owner, fix);
  }

  links(): readonly KnownLink[] {
    const wans = this.#parts.get('wans')?.data.wans ?? no_links;
    const { revision } = this.#known_links;
    const carrier = this.#options.carrier();
    const merged = this.#merged;
    if (merged?.wans === wans && merged.revision === revision && merged.carrier === carrier)
      return merged.links;
    const links = inUseFirst(wans.map((link) => this.#known(link, carrier)));
    this.#merged = { wans, revision, carrier, links };
    return links;
  }

  /** A host route may lead to the broker by a link that other traffic does not take: it is in use all the same. */
  #known(link: Link, carrier: string | null): KnownLink {
    const { name, status } = link;
    const filled = this.#known_links.fill(link);
    if (name === carrier && status === 'standby')
      return { ...filled, status: 'online', reason: texts.carries_broker, cause: null };
    const cause = status === 'offline' ? this.#known_links.cause(name) : null;
    return { ...filled, reason: this.#known_links.reason(name), cause };
  }

  /**
   * Stops repeating what this instance reported, since it may be out of date. `reason` is why the instance was lost,
   * and then null is published where the schema allows it; null: it was stopped.
   */
  withdraw(owner: string, reason: string | null): void {
    if (this.#caps.owner === owner) this.#caps = { owner: nobody, links: [] };
    this.#known_links.withdraw(owner, reason ?? 'stopped');
    this.#options.kit_location.note(owner, null);
    for (const [name, part] of this.#parts) {
      if (part.owner !== owner) continue;
      this.#parts.delete(name);
      if (reason !== null && nullable_parts.has(name) && this.#published_parts.has(name)) {
        this.#parts.set(name, { owner: nobody, data: { [name]: null }, text: '' });
      } else {
        this.#published_parts.delete(name);
      }
    }
  }

  /** Monotonic time at which the kit was last gone through; it is every second. */
  get ticked_ms(): number {
    return this.#ticked_ms;
  }

  setPace(pace: TelemetryPace): void {
    this.#pace = pace;
  }

  /** The next message is a whole snapshot. */
  announce(): void {
    this.#whole_due = true;
  }

  view(): KitTelemetry {
    const data: KitTelemetry = {};
    for (const part of this.#parts.values()) Object.assign(data, part.data);
    if (data.wans) data.wans = this.links().map(({ reason: _reason, cause: _cause, ...link }) => link);
    const location = this.#options.kit_location.now();
    if (location) data.location = location;
    return data;
  }

  location(): LocationView {
    return this.#options.kit_location.view();
  }

  #reportOne(owner: string, name: string, value: unknown, log: DriverLog): void {
    const read = fit(kitTelemetry, { [name]: value });
    if (!read.success) {
      if (this.#isFirstFault(owner, name)) {
        const reason = firstFault(read.error);
        log.error({ part: name, reason }, texts.telemetry_invalid);
      }
      return;
    }
    const known = this.#parts.get(name);
    if (known && known.owner !== owner && known.owner !== nobody) {
      if (this.#isFirstFault(owner, name)) {
        const facts = { part: name, kept: known.owner };
        log.warn(facts, texts.telemetry_twice);
      }
      return;
    }
    const data = cleanTexts(read.data);
    const text = stableJson(data);
    if (known?.text === text) return;
    this.#parts.set(name, { owner, data, text });
    if (data.wans) this.#linksChanged();
  }

  #isFirstFault(owner: string, name: string): boolean {
    const key = `${owner} ${Object.hasOwn(kitTelemetry.shape, name) ? name : '?'}`;
    const isFirst = !this.#told.has(key);
    this.#told.add(key);
    return isFirst;
  }

  #linksChanged(): void {
    const { outbox, gatewayId, clock, carrier, onLinkBack } = this.#options;
    const carrying = carrier() ?? '';
    const wasOffline = this.#links.get(carrying)?.status === 'offline';
    const { states, edges, isHeld } = linkEdges(this.#links, this.links(), clock.stamp().mono_ms, (name) =>
      this.#known_links.lasts_ms(name),
    );
    this.#links = states;
    if (wasOffline && states.get(carrying)?.status !== 'offline') onLinkBack();
    this.#has_held_links = isHeld;
    for (const edge of edges) {
      const channel = channels.event(gatewayId(), 'link_status');
      outbox.append({ channel, lane: 'alarm', data: { ...edge } });
    }
  }

  #tick(): void {
    const { clock, isOnline, kit_location, onLocation } = this.#options;
    const { telemetry_floor_ms } = this.#pace;
    const now_ms = clock.stamp().mono_ms;
    const online = isOnline();
    if (online && !this.#wasOnline) this.#whole_due = true;
    this.#wasOnline = online;
    kit_location.keep();
    if (this.#has_held_links || this.#hasOtherCarrier()) this.#linksChanged();
    const view = this.view();
    if (view.location) onLocation(view.location);
    if (Object.keys(view).length === 0) return;
    const floor_ms = online ? telemetry_floor_ms : Math.max(offline_snapshot_ms, telemetry_floor_ms);
    if ((online && this.#whole_due) || now_ms - this.#whole_ms >= floor_ms) {
      this.#whole_due = false;
      this.#whole_ms = now_ms;
      this.#publish(view, now_ms);
    } else if (online) {
      this.#publishNews(view, now_ms);
    }
  }

  #hasOtherCarrier(): boolean {
    return this.#merged !== undefined && this.#merged.carrier !== this.#options.carrier();
  }

  /** States leave at once unless they change too often, and with them the figures that left their deadband; figures alone wait for the pace. */
  #publishNews(view: KitTelemetry, now_ms: number): void {
    const { deadbands, telemetry_pace_ms } = this.#pace;
    const news = new Map<string, Urgency>();
    for (const [name, value] of Object.entries(view)) {
      news.set(name, urgencyOf(name, this.#published_parts.get(name), value, deadbands));
    }
    const loud = new Set(news.values());
    this.#moved_ms = loud.has('soon') ? (this.#moved_ms ?? now_ms) : undefined;
    const dwell_ms = Math.max(0, Math.min(dwell_max_ms, telemetry_pace_ms - telemetry_tick_ms));
    const isLasting = now_ms - (this.#moved_ms ?? now_ms) >= dwell_ms;
    const isPaced = now_ms - this.#sent_ms >= telemetry_pace_ms;
    const rate = { at_once: states_at_once, every_ms: telemetry_pace_ms };
    const hasState = loud.has('now');
    const isDue = hasState ? isPaced || hasRoom(this.#spread_until_ms, now_ms, rate) : isLasting && isPaced;
    if (!isDue) return;
    if (hasState) this.#spread_until_ms = spreadUntil(this.#spread_until_ms, now_ms, rate);
    const changed = Object.entries(view).filter(([name]) => news.get(name) !== 'none');
    this.#publish(Object.fromEntries(changed), now_ms);
  }

  #publish(data: KitTelemetry, now_ms: number): void {
    this.#options.outbox.append({ channel: channels.telemetry, lane: 'kit', data });
    this.#sent_ms = now_ms;
    this.#moved_ms = undefined;
    for (const [name, value] of Object.entries(data)) this.#published_parts.set(name, value);
  }
}

function inUseFirst(links: readonly KnownLink[]): readonly KnownLink[] {
  return links.toSorted((a, b) => Number(b.status === 'online') - Number(a.status === 'online'));
}

/** Smaller differences from what was published last are noise. */
interface Deadbands {
  readonly cpu_points: number;
  readonly mem_points: number;
  readonly latency_pct: number;
  readonly latency_ms: number;
  readonly rate_pct: number;
  readonly rate_bps: number;
  readonly loss_points: number;
  readonly availability_points: number;
  readonly usage_gb: number;
  readonly battery_points: number;
  readonly location_m: number;
}

/** `now`: a state changed. `soon`: a figure left its deadband and may wait for others. */
type Urgency = 'none' | 'soon' | 'now';

/** Least difference that counts for a figure of this name, given the published value; undefined: every difference counts at once. */
function deadbandOf(name: string, published: number, bands: Deadbands): number | undefined {
  if (name === 'uptime_s') return Number.POSITIVE_INFINITY;
  if (name === 'latency_ms' || name === 'jitter_ms') {
    return Math.max(bands.latency_ms, (published * bands.latency_pct) / 100);
  }
  if (/^[rt]x_bps/u.test(name)) return Math.max(bands.rate_bps, (published * bands.rate_pct) / 100);
  if (name.endsWith('_gb')) return bands.usage_gb;
  const fixed: Readonly<Record<string, number>> = {
    cpu_pct: bands.cpu_points,
    mem_pct: bands.mem_points,
    packet_loss_pct: bands.loss_points,
    availability_pct: bands.availability_points,
    battery: bands.battery_points,
    altitude: bands.location_m,
  };
  return fixed[name];
}

/**
 * Decides whether a part of the kit's telemetry has changed beyond measurement noise. Pure.
 * Compares what was published with what is known now, value by value. `name` is the key that the value stands under.
 */
export function urgencyOf(name: string, published: unknown, known: unknown, bands: Deadbands): Urgency {
  if (Object.is(published, known)) return 'none';
  if (typeof published === 'number' && typeof known === 'number') {
    const least = deadbandOf(name, published, bands);
    if (least === undefined) return 'now';
    return Math.abs(known - published) >= least ? 'soon' : 'none';
  }
  if (Array.isArray(published) && Array.isArray(known)) {
    if (published.length !== known.length) return 'now';
    return mostUrgent(known.map((each: unknown, index) => urgencyOf(name, published[index], each, bands)));
  }
  return isRecord(published) && isRecord(known) ? urgencyOfRecord(published, known, bands) : 'now';
}

type Named = Readonly<Record<string, unknown>>;

function urgencyOfRecord(published: Named, known: Named, bands: Deadbands): Urgency {
  const keys = new Set([...Object.keys(published), ...Object.keys(known)]);
  const urgencies: Urgency[] = [];
  if (isPoint(published) && isPoint(known)) {
    keys.delete('latitude');
    keys.delete('longitude');
    if (distance_m(published, known) >= bands.location_m) urgencies.push('soon');
  }
  for (const key of keys) urgencies.push(urgencyOf(key, published[key], known[key], bands));
  return mostUrgent(urgencies);
}

function mostUrgent(urgencies: readonly Urgency[]): Urgency {
  if (urgencies.includes('now')) return 'now';
  return urgencies.includes('soon') ? 'soon' : 'none';
}

function isRecord(value: unknown): value is Named {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isPoint(value: object): value is Point {
  return (
    'latitude' in value &&
    'longitude' in value &&
    typeof value.latitude === 'number' &&
    typeof value.longitude === 'number'
  );
}
