/**
 * Tracks kinds of channels without subscribers. After PUBACK 0x10 (no matching subscribers) the message is kept, its kind
 * of channel is paused, and one message probes from time to time whether there are subscribers by then.
 */
import { KindPauses } from './kind-pauses.ts';

export class NoSubscribers {
  readonly #pauses: KindPauses;

  constructor(now: () => number) {
    this.#pauses = new KindPauses(now);
  }

  /** May a message of this channel be sent now? After a pause, the first call is the probe. */
  allows(channel: string): boolean {
    return this.#pauses.allows(channel);
  }

  /** Whether the kind is paused; starts no probe. */
  rests(channel: string): boolean {
    return this.#pauses.rests(channel);
  }

  found(channel: string): void {
    this.#pauses.resume(channel);
  }

  missing(channel: string): void {
    this.#pauses.pause(channel);
  }

  /** A new connection may have other subscribers: every kind is probed at once. */
  reset(): void {
    this.#pauses.clear();
  }

  /** Kinds of channels without subscribers, for the status. */
  kinds(): readonly string[] {
    return this.#pauses.kinds();
  }
}
