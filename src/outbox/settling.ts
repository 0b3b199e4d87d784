/**
 * Delivered, but not yet for good. A PUBACK means that the broker has a message in memory: if it dies before the message
 * went on, the message is lost without a word. So what was acknowledged is kept a moment longer, and is sent again when
 * the connection breaks meanwhile and the next one finds that the broker has forgotten our session.
 */
import { Fifo } from './fifo.ts';
import type { Content, Named, Parcel } from './parcel.ts';

const settle_ms = 1_000;
/** Beyond these, the oldest settle before their time. */
const settle_rows_max = 1_024;

interface Kept {
  readonly content: Named;
  readonly rows: number;
  readonly at_ms: number;
}

export class Settling {
  readonly #kept = new Fifo<Kept>();
  #rows = 0;

  /** Keeps what a parcel stands for, not what was sent of it. */
  add({ content, rows }: Parcel, at_ms: number): void {
    const kept = { content: named(content), rows: content.kind === 'packet' ? rows : 1, at_ms };
    this.#kept.push(kept);
    this.#rows += kept.rows;
  }

  /** The next that is delivered for good by now. */
  next(now_ms: number): Named | undefined {
    const oldest = this.#kept.peek();
    if (!oldest || (this.#rows <= settle_rows_max && now_ms - oldest.at_ms < settle_ms)) return undefined;
    this.#kept.shift();
    this.#rows -= oldest.rows;
    return oldest.content;
  }

  takeAll(): Named[] {
    this.#rows = 0;
    return this.#kept.drain().map(({ content }) => content);
  }
}

function named(content: Content): Named {
  switch (content.kind) {
    case 'row':
      return { kind: 'row', row: { id: content.row.id, lane: content.row.lane } };
    case 'batch':
      return { kind: 'batch', batch: { token: content.batch.token, lane: content.batch.lane } };
    case 'live':
    case 'packet':
      return content;
  }
}
