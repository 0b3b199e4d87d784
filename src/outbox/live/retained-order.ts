/**
 * The order of values on retained topics. Live rows, rows that were read ahead and replayed ones reach the uplink on different
 * ways; the broker keeps whatever comes last. So an older value is never handed out after a newer one of its channel.
 */
import { outgoingId, type OutgoingMessage } from './outgoing.ts';
import type { RowId } from '../row.ts';

/** A kit has two retained channels for each asset; the channels unused for longest are forgotten. */
const channels_max = 4_096;

export class RetainedOrder {
  readonly #newest = new Map<string, RowId>();

  /** Notes what is handed out now. False: a newer value of its channel was handed out before. */
  admits(outgoing: OutgoingMessage): boolean {
    if (!outgoing.retain && !outgoing.removal) return true;
    const { channel } = outgoing;
    const id = outgoingId(outgoing);
    if (this.isOutdated(channel, id)) return false;
    this.#newest.delete(channel);
    this.#newest.set(channel, id);
    const [oldest] = this.#newest.size > channels_max ? this.#newest.keys() : [];
    if (oldest !== undefined) this.#newest.delete(oldest);
    return true;
  }

  isOutdated(channel: string, id: RowId): boolean {
    return id < (this.#newest.get(channel) ?? 0);
  }
}
