/**
 * Delivered, but not yet for good. A PUBACK means that the broker has a message in memory: if it dies before the message
 * went on, the message is lost without a word. So what was acknowledged is kept a moment longer, and is sent again when
 * the connection breaks meanwhile and the next one finds that the broker has forgotten our session.
 */
import { Fifo } from './fifo.ts';
import type { Parcel } from './parcel.ts';

const settle_ms = 1_000;
/** Beyond these, the oldest settle before their time. */
const settle_rows_max = 4_096;
const settle_bytes_max = 4 * 1024 * 1024;

interface Kept {
  readonly parcel: Parcel;
  readonly at_ms: number;
}

export class Settling {
  readonly #kept = new Fifo<Kept>();
  #rows = 0;
  #bytes = 0;

  add(parcel: Parcel, at_ms: number): void {
    this.#kept.push({ parcel, at_ms });
    this.#rows += weight(parcel);
    this.#bytes += parcel.payload.length;
  }

  /** The next parcel that is delivered for good by now. */
  next(now_ms: number): Parcel | undefined {
    const oldest = this.#kept.peek();
    if (!oldest) return undefined;
    const full = this.#rows > settle_rows_max || this.#bytes > settle_bytes_max;
    if (!full && now_ms - oldest.at_ms < settle_ms) return undefined;
    this.#kept.shift();
    this.#rows -= weight(oldest.parcel);
    this.#bytes -= oldest.parcel.payload.length;
    return oldest.parcel;
  }

  takeAll(): Parcel[] {
    this.#rows = 0;
    this.#bytes = 0;
    return this.#kept.drain().map(({ parcel }) => parcel);
  }
}

/** A batch's rows are on disk: here it costs what one message costs. */
function weight(parcel: Parcel): number {
  return parcel.content.kind === 'packet' ? parcel.rows : 1;
}
