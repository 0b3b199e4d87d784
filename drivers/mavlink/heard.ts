/** The newest message of each kind that one autopilot has sent, and when it came. */
import type { Decoded, MessageName, Messages } from './messages.ts';

/** One entry for each kind of message. Times are monotonic milliseconds. */
export class Heard {
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

  /** The newest one if it is not older than `age_max_ms`. */
  fresh<K extends MessageName>(name: K, age_max_ms: number, now_ms: number): Messages[K] | undefined {
    return this.since(name, now_ms - age_max_ms);
  }

  /** The newest one if it came at `since_ms` or later. */
  since<K extends MessageName>(name: K, since_ms: number): Messages[K] | undefined {
    const newest = this.#newest.get(name);
    if (!newest || newest.at_ms < since_ms) return undefined;
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- `put` files each message under its own name
    return newest.message.fields as Messages[K];
  }

  /** The newest one, however old. */
  last<K extends MessageName>(name: K): Messages[K] | undefined {
    return this.since(name, Number.NEGATIVE_INFINITY);
  }

  /** The sender has started anew: nothing it said before holds. */
  forget(): void {
    this.#newest.clear();
  }
}
