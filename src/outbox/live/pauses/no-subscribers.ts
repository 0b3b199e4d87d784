/**
 * Tracks kinds of channels without subscribers. After PUBACK 0x10 (no matching subscribers) the message is kept, its kind
 * of channel is paused, and one message probes from time to time whether there are subscribers by then.
 */
import type { Lane } from '../../../contract/lanes.ts';
import { channelKind } from '../../../contract/topics.ts';
import { KindPauses } from './kind-pauses.ts';

export class NoSubscribers {
  readonly #pauses: KindPauses;
  /** Lanes of the messages that were kept, by kind; a batch may be of any. */
  readonly #lanes = new Map<string, Set<Lane>>();

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
    if (this.#lanes.size > 0) this.#lanes.delete(channelKind(channel));
  }

  missing(channel: string, lane: Lane): void {
    this.#pauses.pause(channel);
    const kind = channelKind(channel);
    this.#lanes.set(kind, (this.#lanes.get(kind) ?? new Set()).add(lane));
  }

  /** A new connection may have other subscribers: every kind is probed at once. */
  reset(): void {
    this.#pauses.clear();
    this.#lanes.clear();
  }

  /**
   * Kinds of channels without subscribers, for the status. Where its lanes keep nothing any more, since all left in batches, no
   * message of a kind probes: whether it has subscribers by then is unknown.
   */
  kinds(keeps: (lane: Lane) => boolean): readonly string[] {
    return this.#pauses.kinds().filter((kind) => [...(this.#lanes.get(kind) ?? [])].some(keeps));
  }
}
