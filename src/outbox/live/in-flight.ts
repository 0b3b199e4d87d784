/** Messages that the uplink sent and the broker has not acknowledged, with the cloud's acknowledgements of them. */
import { AckRanges } from '../ack-ranges.ts';
import { livesOf, type OutgoingMessage } from './outgoing.ts';
import type { TakenBatch } from '../protocol.ts';
import { positionOf } from '../row.ts';

/** Numbers of an epoch that the cloud has stored. */
export interface Stored {
  readonly epoch: number;
  readonly ranges: readonly (readonly [lo: number, hi: number])[];
}

/** Acknowledgements of the cloud that are kept for one message in flight; the oldest is discarded. */
const early_acks_max = 4;
const no_acks: readonly Stored[] = [];

export class InFlight {
  readonly #messages = new Map<OutgoingMessage, readonly Stored[]>();

  add(outgoing: OutgoingMessage): void {
    this.#messages.set(outgoing, no_acks);
  }

  has(outgoing: OutgoingMessage): boolean {
    return this.#messages.has(outgoing);
  }

  /** Removes one; returns what the cloud acknowledged of it before its PUBACK. */
  remove(outgoing: OutgoingMessage): readonly Stored[] {
    const stored = this.#messages.get(outgoing) ?? no_acks;
    this.#messages.delete(outgoing);
    return stored;
  }

  drain(): OutgoingMessage[] {
    const all = [...this.#messages.keys()];
    this.#messages.clear();
    return all;
  }

  messages(): Iterable<OutgoingMessage> {
    return this.#messages.keys();
  }

  /** A `down/ack` may arrive before the PUBACK of what it names. */
  cloudStored(stored: Stored): void {
    const named = new AckRanges(stored.epoch, stored.ranges);
    for (const [outgoing, before] of this.#messages) {
      const { content } = outgoing;
      if (content.kind === 'batch') {
        const ranges = overlap(stored, content.batch);
        if (ranges.length > 0)
          this.#messages.set(outgoing, [...before, { epoch: stored.epoch, ranges }].slice(-early_acks_max));
      } else if (rowsOf(outgoing).some(({ id }) => named.has(id))) this.#messages.set(outgoing, [stored]);
    }
  }
}

function rowsOf(outgoing: OutgoingMessage): readonly { readonly id: number }[] {
  if (outgoing.content.kind === 'row') return [outgoing.content.row];
  return outgoing.content.kind === 'live' ? livesOf(outgoing).map(({ row }) => row) : [];
}

/** The ranges that may concern a batch, which can hold rows of several epochs. */
function overlap({ epoch, ranges }: Stored, batch: TakenBatch): Stored['ranges'] {
  const [lo, hi] = [positionOf(batch.lo), positionOf(batch.hi)];
  if (epoch < lo.epoch || epoch > hi.epoch) return [];
  const from = epoch === lo.epoch ? lo.seq : 0;
  const to = epoch === hi.epoch ? hi.seq : Number.POSITIVE_INFINITY;
  return ranges.filter(([first, last]) => first <= to && last >= from);
}
