/**
 * What the broker acknowledged a moment ago. A PUBACK means that the broker has a message in memory: if it dies before the
 * message went on, the message is lost without a word. So the last second is remembered, and is sent again when the
 * connection breaks and the next one finds that the broker has forgotten our session. For the books it was delivered:
 * whoever had it drops the second copy by its number.
 */
import { Fifo } from './fifo.ts';
import type { Parcel } from './parcel.ts';

const remembered_ms = 1_000;
/** Beyond these, the oldest are forgotten before their time. */
const remembered_max = 1_024;
const remembered_bytes_max = 4 * 1024 * 1024;

interface Remembered {
  readonly parcel: Parcel;
  readonly at_ms: number;
}

export class Echo {
  readonly #recent = new Fifo<Remembered>();
  readonly #again = new Fifo<Parcel>();
  #bytes = 0;

  /** The broker acknowledged it. */
  remember(parcel: Parcel, at_ms: number): void {
    this.#recent.push({ parcel: { ...parcel, content: { kind: 'echo' } }, at_ms });
    this.#bytes += parcel.payload.length;
    this.forget(at_ms);
  }

  /** Forgets what has gone on by now. */
  forget(now_ms: number): void {
    for (let oldest = this.#recent.peek(); oldest; oldest = this.#recent.peek()) {
      const isFull = this.#recent.length > remembered_max || this.#bytes > remembered_bytes_max;
      if (!isFull && now_ms - oldest.at_ms < remembered_ms) return;
      this.#recent.shift();
      this.#bytes -= oldest.parcel.payload.length;
    }
  }

  /** A new connection: the broker remembers us, or everything that is remembered here goes again. */
  connected({ session_present }: { readonly session_present: boolean }): void {
    for (const { parcel } of this.#recent.drain()) if (!session_present) this.#again.push(parcel);
    this.#bytes = 0;
  }

  /** The next that must go again. */
  shift(): Parcel | undefined {
    return this.#again.shift();
  }

  /** It did not arrive this time either. */
  giveBack(parcel: Parcel): void {
    if (this.#again.length < remembered_max) this.#again.push(parcel);
  }
}
