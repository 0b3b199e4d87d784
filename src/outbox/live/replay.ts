/**
 * What the broker acknowledged a moment ago. A PUBACK means that the broker has a message in memory: if it dies before the
 * message went on, the message is lost silently. So the last second is kept, and is sent again when the
 * connection breaks and the next one finds that the broker has forgotten our session. Where the cloud acknowledges, it is the
 * last minute, without what the cloud has. For the books it was delivered: a receiver that had it drops the second copy by its
 * number.
 */
import { AckRanges } from '../ack-ranges.ts';
import { Fifo } from './fifo.ts';
import type { Stored } from './in-flight.ts';
import { outgoingId, type OutgoingMessage } from './outgoing.ts';
import type { RowId } from '../row.ts';

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

export class Replay {
  /** The cloud acknowledges, so that it is known when a message has gone on. */
  hasCloudAcks = false;
  readonly #recent = new Fifo<Remembered>();
  readonly #again = new Fifo<OutgoingMessage>();
  #bytes = 0;

  /** The broker acknowledged it. */
  remember(outgoing: OutgoingMessage, at_ms: number): void {
    const { lane, channel, payload, retain, removal, rows, backlog } = outgoing;
    this.#recent.push({
      lane,
      channel,
      payload,
      retain,
      removal,
      rows,
      backlog,
      id: outgoingId(outgoing),
      ids: idsOf(outgoing),
      at_ms,
    });
    this.#bytes += payload.length;
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
  giveBack(outgoing: OutgoingMessage): void {
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
