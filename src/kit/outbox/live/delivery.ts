/** Messages that the uplink has, and those that it had a moment ago: in flight, or kept for another connection. */
import { AckRanges } from '../ack-ranges.ts';
import type { Stored, TakenBatch } from '../protocol.ts';
import { positionOf, type RowId } from '../row.ts';
import { Fifo } from './fifo.ts';
import { livesOf, outgoingId, type OutgoingMessage } from './outgoing.ts';

/** Acknowledgements of the cloud that are kept for one message in flight; the oldest is discarded. */
const early_acks_max = 4;
const no_acks: readonly Stored[] = [];

/** Messages that the uplink sent and the broker has not acknowledged, with the cloud's acknowledgements of them. */
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

const remembered_ms = 1_000;
/** A service that restarts reads within this time what a broker has kept for it. */
const unconfirmed_ms = 60_000;
/** Beyond these, the oldest are forgotten before their time. */
const remembered_max = 1_024;
const remembered_bytes_max = 4 * 1024 * 1024;

/** Without what the message stands for, which need not be remembered. */
interface Remembered extends Omit<OutgoingMessage, 'content'> {
  readonly id: RowId;
  /** Of all messages inside; undefined: the only one is `id`; empty: not known singly. */
  readonly ids: readonly RowId[] | undefined;
  readonly at_ms: number;
}

/**
 * What the broker acknowledged a moment ago. A PUBACK means that the broker has a message in memory: if it dies before the
 * message went on, the message is lost silently. So the last second is kept, and is sent again when the
 * connection breaks and the next one finds that the broker has forgotten our session. Where the cloud acknowledges, it is the
 * last minute, without what the cloud has. For the books it was delivered: a receiver that had it drops the second copy by its
 * number.
 */
export class Replay {
  /** The cloud acknowledges, so that it is known when a message has gone on. */
  hasCloudAcks = false;
  readonly #recent = new Fifo<Remembered>();
  readonly #again = new Fifo<OutgoingMessage>();
  #bytes = 0;

  /** The broker acknowledged it. */
  remember(outgoing: OutgoingMessage, at_ms: number): void {
    const { content: _, ...message } = outgoing;
    this.#recent.push({ ...message, id: outgoingId(outgoing), ids: idsOf(outgoing), at_ms });
    this.#bytes += message.payload.length;
    this.forget(at_ms);
  }

  /** The cloud has these: it needs no second copy of them. */
  cloudStored({ epoch, ranges }: Stored): void {
    if (this.#recent.length === 0) return;
    const named = new AckRanges(epoch, ranges);
    for (const each of this.#recent.drain()) {
      if (isNamed(each, named)) this.#bytes -= each.payload.length;
      else this.#recent.push(each);
    }
  }

  /** Forgets what has gone on by now. */
  forget(now_ms: number): void {
    const kept_ms = this.hasCloudAcks ? unconfirmed_ms : remembered_ms;
    for (let oldest = this.#recent.peek(); oldest; oldest = this.#recent.peek()) {
      const isFull = this.#recent.length > remembered_max || this.#bytes > remembered_bytes_max;
      if (!isFull && now_ms - oldest.at_ms < kept_ms) return;
      this.#recent.shift();
      this.#bytes -= oldest.payload.length;
    }
  }

  /** A new connection: the broker remembers us, or everything that is remembered here goes again. */
  connected({ session_present }: { readonly session_present: boolean }): void {
    // The broker may still forget it before the cloud has it.
    if (session_present && this.hasCloudAcks) return;
    for (const { id, ids, at_ms: _, ...outgoing } of this.#recent.drain())
      if (!session_present) this.#again.push({ ...outgoing, content: { kind: 'replay', id, ids } });
    this.#bytes = 0;
  }

  /** The next that must go again. */
  shift(): OutgoingMessage | undefined {
    return this.#again.shift();
  }

  /** It did not arrive this time either. */
  requeue(outgoing: OutgoingMessage): void {
    if (this.#again.length < remembered_max) this.#again.push(outgoing);
  }
}

function isNamed({ id, ids }: Remembered, named: AckRanges): boolean {
  if (!ids) return named.has(id);
  return ids.length > 0 && ids.every((each) => named.has(each));
}

const unknown_ids: readonly RowId[] = [];

function idsOf({ content }: OutgoingMessage): readonly RowId[] | undefined {
  if (content.kind === 'replay') return content.ids;
  if (content.kind === 'batch') return unknown_ids;
  return content.kind === 'packet' ? content.lives.map(({ row }) => row.id) : undefined;
}
