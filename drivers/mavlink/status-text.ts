/** Puts the chunks of STATUSTEXT together: the only place where an autopilot says why. */
import type { Messages } from './messages.ts';

export interface StatusText {
  /** MAV_SEVERITY: 0 emergency to 7 debug. */
  readonly severity: number;
  readonly text: string;
}

interface Chunks {
  readonly severity: number;
  readonly parts: Map<number, string>;
  last: number | undefined;
  readonly begun_ms: number;
}

/** Texts of one sender that are being put together at once. */
const open_max = 8;
const chunks_max = 16;
/** A text of which chunks are missing for this long is told with a gap. */
export const chunk_wait_ms = 700;
const chunk_chars = 50;
const none: readonly StatusText[] = [];

/** Texts of one sender (one component). Not for use by two senders: their ids would collide. */
export class StatusTexts {
  /** By id of the text. */
  readonly #open = new Map<number, Chunks>();

  /** Takes one message and answers the text that it completes. `now_ms` is monotonic. */
  take({ severity, text, id, chunk_seq }: Messages['STATUSTEXT'], now_ms: number): StatusText | undefined {
    if (chunk_seq >= chunks_max) return undefined;
    // Id 0 stands for a text of one chunk, but PX4 begins to count its long texts with it.
    const is_whole = id === 0 && chunk_seq === 0 && (text.length < chunk_chars || this.#open.has(id));
    if (is_whole) return told(severity, text);
    const chunks = this.#open.get(id) ?? { severity, parts: new Map(), last: undefined, begun_ms: now_ms };
    this.#open.set(id, chunks);
    chunks.parts.set(chunk_seq, text);
    // The last chunk is the one that is not full.
    if (text.length < chunk_chars) chunks.last = chunk_seq;
    if (chunks.last !== undefined && chunks.parts.size === chunks.last + 1) return this.#close(id, chunks);
    if (this.#open.size <= open_max) return undefined;
    const [oldest] = this.#open;
    return oldest && this.#close(oldest[0], oldest[1]);
  }

  /** Texts that have waited too long for a chunk that was lost. */
  overdue(now_ms: number): readonly StatusText[] {
    if (this.#open.size === 0) return none;
    const late = [...this.#open].filter(([, { begun_ms }]) => now_ms - begun_ms >= chunk_wait_ms);
    return late.map(([id, chunks]) => this.#close(id, chunks)).filter((text) => text !== undefined);
  }

  #close(id: number, { severity, parts, last }: Chunks): StatusText | undefined {
    this.#open.delete(id);
    const end = last ?? Math.max(...parts.keys());
    const texts = Array.from({ length: end + 1 }, (_, seq) => parts.get(seq) ?? ' ... ');
    return told(severity, texts.join(''));
  }
}

/** PX4 ends its texts with a tab that tells ground stations that an event says the same. */
function told(severity: number, raw: string): StatusText | undefined {
  // oxlint-disable-next-line no-control-regex -- control characters are what is taken out
  const text = raw.replaceAll(/[\u0000-\u001f\u007f]+/gu, ' ').trim();
  return text === '' ? undefined : { severity, text };
}
