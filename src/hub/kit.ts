/** The kit's own telemetry: merges what drivers report and publishes it at the hub's pace. */
import { prettifyError } from 'zod';
import { type KitPart, type KitTelemetry, kitTelemetry } from '../contract/kit.ts';
import { channels } from '../contract/topics.ts';
import type { DriverLog } from '../driver/driver.ts';
import type { Appender } from '../outbox/api.ts';
import type { Clock } from '../platform/clock.ts';
import { every } from '../platform/time.ts';
import { linkEdges, type LinkStates } from './link-edges.ts';
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

export class Kit {
  readonly #options: KitOptions;
  /** Keyed by the names of `kitTelemetry`, so it cannot grow. */
  readonly #parts = new Map<string, Part>();
  readonly #changed = new Set<string>();
  /** Faults that were logged: `owner part`. */
  readonly #told = new Set<string>();
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

  /** What this instance reported is not repeated any more: nobody vouches for it. */
  withdraw(owner: string): void {
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
    if (read.data.wans) this.#noteLinks(read.data.wans);
  }

  #isFirstFault(owner: string, name: string): boolean {
    const key = `${owner} ${Object.hasOwn(kitTelemetry.shape, name) ? name : '?'}`;
    const isFirst = !this.#told.has(key);
    this.#told.add(key);
    return isFirst;
  }

  #noteLinks(wans: NonNullable<KitTelemetry['wans']>): void {
    const { outbox, gatewayId } = this.#options;
    const { states, edges } = linkEdges(this.#links, wans);
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
    return data;
  }
}
