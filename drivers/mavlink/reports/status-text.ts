/** Joins the chunks of STATUSTEXT, in which autopilots report their reasons. */
import type { Messages } from '../wire/messages.ts';

export interface StatusText {
  /** MAV_SEVERITY: 0 emergency to 7 debug. */
  readonly severity: number;
  readonly text: string;
  /** An event of PX4 says the same. */
  readonly isEvent?: true;
}

interface Chunks {
  readonly severity: number;
  readonly parts: Map<number, string>;
  last: number | undefined;
  readonly begun_ms: number;
}

/** Incomplete texts of one sender at the same time. */
const open_max = 8;
const chunks_max = 16;
/** A text with missing chunks is returned with a gap after this time. */
export const chunk_wait_ms = 700;
const chunk_chars = 50;
const none: readonly StatusText[] = [];

/** Joins texts of one sender (one component). Not for use by two senders: their ids would collide. */
export class StatusTexts {
  /** Incomplete texts by id. */
  readonly #open = new Map<number, Chunks>();

  /** Adds one message; returns the text that it completes. `now_ms` is monotonic. */
  receive({ severity, text, id, chunk_seq }: Messages['STATUSTEXT'], now_ms: number): StatusText | undefined {
    if (chunk_seq >= chunks_max) return undefined;
    // Id 0 means a text of one chunk, but PX4 also uses it for its first long text.
    const is_whole = id === 0 && chunk_seq === 0 && (text.length < chunk_chars || this.#open.has(id));
    if (is_whole) return cleaned(severity, text);
    const chunks = this.#open.get(id) ?? { severity, parts: new Map(), last: undefined, begun_ms: now_ms };
    this.#open.set(id, chunks);
    chunks.parts.set(chunk_seq, text);
    // Only the last chunk is not full.
    if (text.length < chunk_chars) chunks.last = chunk_seq;
    if (chunks.last !== undefined && chunks.parts.size === chunks.last + 1) return this.#close(id, chunks);
    if (this.#open.size <= open_max) return undefined;
    const [oldest] = this.#open;
    return oldest && this.#close(oldest[0], oldest[1]);
  }

  /** Returns incomplete texts that have waited too long for a lost chunk. */
  overdue(now_ms: number): readonly StatusText[] {
    if (this.#open.size === 0) return none;
    const late = [...this.#open].filter(([, { begun_ms }]) => now_ms - begun_ms >= chunk_wait_ms);
    return late.map(([id, chunks]) => this.#close(id, chunks)).filter((text) => text !== undefined);
  }

  #close(id: number, { severity, parts, last }: Chunks): StatusText | undefined {
    this.#open.delete(id);
    const end = last ?? Math.max(...parts.keys());
    const texts = Array.from({ length: end + 1 }, (_, seq) => parts.get(seq) ?? ' ... ');
    return cleaned(severity, texts.join(''));
  }
}

/** Replaces control characters: PX4 ends a text with a tab to mark that an event repeats it. */
function cleaned(severity: number, raw: string): StatusText | undefined {
  const text = raw.replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+/gu, ' ').trim();
  return text === '' ? undefined : { severity, text, ...(raw.endsWith('\t') && { isEvent: true }) };
}
