/** Collects the numbered events of one autopilot and asks for those that were lost: the Events Interface of MAVLink. */
import { armingReasons, type VehicleEvent } from './px4-events.ts';

/** First and last sequence number to ask for. */
export interface MissedEvents {
  readonly first_sequence: number;
  readonly last_sequence: number;
}

const sequence_mask = 0xff_ff;
/** Half of the numbers: what is further ahead is behind. */
const ahead_max = 0x80_00;
const events_max = 64;
/** Autopilots keep about this many; older ones are gone. */
const missed_max = 16;
const asks_max = 3;
const ask_pause_ms = 1_000;
const flag_reset = 1;

export class EventIntake {
  /** By sequence number, oldest first. */
  readonly #events = new Map<number, VehicleEvent>();
  /** How often each lost one was asked for. */
  readonly #missed = new Map<number, number>();
  #newest: number | undefined;
  #asked_ms = Number.NEGATIVE_INFINITY;

  /** Whether the event is heard for the first time. */
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

  /** The newest number there is. */
  current({ sequence, flags }: { readonly sequence: number; readonly flags: number }): void {
    if ((flags & flag_reset) !== 0) this.#newest = undefined;
    this.#begin(sequence);
    this.#advance(sequence, sequence);
  }

  /** The autopilot has no events before this one any more. */
  gone(oldest: number): void {
    for (const sequence of this.#missed.keys()) {
      if (((oldest - sequence) & sequence_mask) < ahead_max && sequence !== oldest)
        this.#missed.delete(sequence);
    }
  }

  /** What to ask for now. */
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

  /** Why the vehicle cannot be armed in `mode`; undefined when no whole report of its checks has come. */
  armingReasons(mode: string | null): readonly string[] | undefined {
    return armingReasons(this.#events, mode);
  }

  /** The autopilot has started anew. */
  restart(): void {
    this.#events.clear();
    this.#missed.clear();
    this.#newest = undefined;
  }

  /** What was said before we came is asked for too: checks that failed earlier are not reported again. */
  #begin(sequence: number): void {
    this.#newest ??= (sequence - Math.min(sequence, missed_max)) & sequence_mask;
  }

  /** `newest` has been given out; all after the newest one known, up to `missed_until`, were lost. */
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
