/** Collects the numbered events of one autopilot and requests lost ones, by the Events Interface of MAVLink. */
import type { FailsafeType } from '../../../src/contract/drone-feeds.ts';
import { armingReasons, failsafesOf, type VehicleEvent } from './px4-events.ts';

/** First and last sequence number to request. */
export interface MissedEvents {
  readonly first_sequence: number;
  readonly last_sequence: number;
}

const sequence_mask = 0xff_ff;
/** Half of the sequence numbers: a larger distance ahead means behind. */
const ahead_max = 0x80_00;
const events_max = 64;
/** Autopilots keep about this many; older ones cannot be requested. */
const missed_max = 16;
const asks_max = 3;
const ask_pause_ms = 1_000;
const flag_reset = 1;

export class EventIntake {
  /** By sequence number, oldest first. */
  readonly #events = new Map<number, VehicleEvent>();
  /** Number of requests by lost sequence number. */
  readonly #missed = new Map<number, number>();
  #newest: number | undefined;
  #asked_ms = Number.NEGATIVE_INFINITY;

  /** Stores an event; returns false if it was received before. */
  take(event: VehicleEvent): boolean {
    if (this.#events.has(event.sequence)) return false;
    this.#begin(event.sequence);
    this.#missed.delete(event.sequence);
    this.#advance(event.sequence, event.sequence - 1);
    this.#events.set(event.sequence, event);
    const [oldest] = this.#events.keys();
    if (this.#events.size > events_max && oldest !== undefined) this.#events.delete(oldest);
    return true;
  }

  /** Receives the newest sequence number of the autopilot. */
  current({ sequence, flags }: { readonly sequence: number; readonly flags: number }): void {
    if ((flags & flag_reset) !== 0) this.#newest = undefined;
    this.#begin(sequence);
    this.#advance(sequence, sequence);
  }

  /** Drops requests for events that the autopilot no longer has. */
  gone(oldest: number): void {
    for (const sequence of this.#missed.keys()) {
      if (((oldest - sequence) & sequence_mask) < ahead_max && sequence !== oldest)
        this.#missed.delete(sequence);
    }
  }

  /** Returns the range to request now. */
  next(now_ms: number): MissedEvents | undefined {
    if (this.#missed.size === 0 || now_ms - this.#asked_ms < ask_pause_ms) return undefined;
    const [first] = this.#missed.keys();
    if (first === undefined) return undefined;
    this.#asked_ms = now_ms;
    let last = first;
    while (this.#missed.has((last + 1) & sequence_mask)) last = (last + 1) & sequence_mask;
    for (let each = first; each !== ((last + 1) & sequence_mask); each = (each + 1) & sequence_mask) {
      const asks = (this.#missed.get(each) ?? 0) + 1;
      if (asks >= asks_max) this.#missed.delete(each);
      else this.#missed.set(each, asks);
    }
    return { first_sequence: first, last_sequence: last };
  }

  /** Returns why the vehicle cannot be armed in `mode`; undefined without a complete report of its checks. */
  armingReasons(
    mode: string | null,
    textOf?: (event: VehicleEvent) => string | undefined,
  ): readonly string[] | undefined {
    return armingReasons(this.#events, mode, textOf);
  }

  /** Returns the failsafes that begin with an event. */
  failsafesOf(event: VehicleEvent): readonly FailsafeType[] {
    return failsafesOf(event, this.#events);
  }

  /** Clears everything after a restart of the autopilot. */
  restart(): void {
    this.#events.clear();
    this.#missed.clear();
    this.#newest = undefined;
  }

  /** Also requests events from before the first one: checks that failed earlier are not reported again. */
  #begin(sequence: number): void {
    this.#newest ??= (sequence - Math.min(sequence, missed_max)) & sequence_mask;
  }

  /** Advances to `newest`; marks all after the previous newest, up to `missed_until`, as lost. */
  #advance(newest: number, missed_until: number): void {
    const known = this.#newest;
    const ahead = known === undefined ? 0 : (newest - known) & sequence_mask;
    if (known !== undefined && (ahead === 0 || ahead >= ahead_max)) return;
    this.#newest = newest;
    if (known === undefined) return;
    const lost = (missed_until - known) & sequence_mask;
    for (let back = Math.min(lost, missed_max) - 1; back >= 0; back -= 1) {
      this.#missed.set((missed_until - back) & sequence_mask, 0);
    }
    for (const sequence of this.#missed.keys()) {
      if (this.#missed.size <= missed_max) break;
      this.#missed.delete(sequence);
    }
  }
}
