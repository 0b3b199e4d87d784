/** The latest message of each type from one autopilot, with its time of receipt and its pace. */
import { type Decoded, isNamed, type MessageName, type Messages } from '../wire/messages.ts';

interface Newest {
  message: Decoded;
  at_ms: number;
  /** Messages so far. */
  count: number;
  /** The two latest pauses between them. */
  pause_ms: number;
  before_ms: number;
}

/** A pause below this is none: a router delivers a message twice. */
const pause_min_ms = 100;
/** A message may be lost, and the next one is a little late. */
const pauses_fresh = 2.5;
/** However rarely a vehicle sends, what it sent this long ago is old. */
const pace_fresh_max_ms = 12_000;

/** One entry for each message type. Times are monotonic milliseconds. */
export class LatestMessages {
  readonly #newest = new Map<MessageName, Newest>();

  put(message: Decoded, at_ms: number): void {
    const newest = this.#newest.get(message.name);
    if (!newest) {
      this.#newest.set(message.name, { message, at_ms, count: 1, pause_ms: 0, before_ms: 0 });
      return;
    }
    const pause_ms = at_ms - newest.at_ms;
    if (pause_ms >= pause_min_ms) {
      newest.before_ms = newest.pause_ms;
      newest.pause_ms = pause_ms;
    }
    newest.message = message;
    newest.at_ms = at_ms;
    newest.count += 1;
  }

  /** Number of messages of this type so far. */
  count(name: MessageName): number {
    return this.#newest.get(name)?.count ?? 0;
  }

  /**
   * Returns the latest one if it is not older than `age_max_ms`, or than the vehicle's own pace explains: PX4-Autopilot#21006 has 5 to
   * 10 s between heartbeats. One long pause alone is an outage.
   */
  fresh<K extends MessageName>(name: K, age_max_ms: number, now_ms: number): Messages[K] | undefined {
    const { pause_ms = 0, before_ms = 0 } = this.#newest.get(name) ?? {};
    const pace_ms = Math.min(pauses_fresh * Math.min(pause_ms, before_ms), pace_fresh_max_ms);
    return this.since(name, now_ms - Math.max(age_max_ms, pace_ms));
  }

  /** Returns the latest one if it was received at `since_ms` or later. */
  since<K extends MessageName>(name: K, since_ms: number): Messages[K] | undefined {
    const newest = this.#newest.get(name);
    if (!newest || newest.at_ms < since_ms) return undefined;
    const { message } = newest;
    return isNamed(message, name) ? message.fields : undefined;
  }

  /** Returns the latest one, however old. */
  last<K extends MessageName>(name: K): Messages[K] | undefined {
    return this.since(name, Number.NEGATIVE_INFINITY);
  }

  /** Clears all messages after a restart of the sender, since they are no longer valid. */
  clear(): void {
    this.#newest.clear();
  }
}
