/** The latest message of each type from one autopilot, with its time of receipt. */
import type { Decoded, MessageName, Messages } from '../wire/messages.ts';

/** One entry for each message type. Times are monotonic milliseconds. */
export class LatestMessages {
  readonly #newest = new Map<MessageName, { message: Decoded; at_ms: number }>();

  put(message: Decoded, at_ms: number): void {
    const newest = this.#newest.get(message.name);
    if (newest) {
      newest.message = message;
      newest.at_ms = at_ms;
    } else {
      this.#newest.set(message.name, { message, at_ms });
    }
  }

  /** Returns the latest one if it is not older than `age_max_ms`. */
  fresh<K extends MessageName>(name: K, age_max_ms: number, now_ms: number): Messages[K] | undefined {
    return this.since(name, now_ms - age_max_ms);
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

/** Always so here, since `put` files each message under its own name. */
function isNamed<K extends MessageName>(message: Decoded, name: K): message is Decoded & Decoded<K> {
  return message.name === name;
}
