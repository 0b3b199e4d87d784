/** Suppresses repeated lines on the same subject, and logs how many there were. */

/** So many lines of one kind are written in a window; the others are counted. */
export const repeats_max = 5;
/** The same sentence of the same subject, whatever texts of a device stand beside it. */
export const of_subject_max = 20;
/** All lines of one driver or part, however many subjects it has. */
export const of_owner_max = 600;
export const window_ms = 60_000;
/** Kinds of one width that are remembered; beyond it the oldest is forgotten, its count logged. */
const kinds_max = 500;

/** What a line counts for, from the narrow to the wide. */
export interface RepeatKey {
  readonly text: string;
  /** Lines of it in a window. */
  readonly max: number;
  /** Writes one line with the count of the suppressed ones. */
  readonly summarize: (suppressed: number, within_ms: number) => void;
}

interface Kind {
  readonly began_ms: number;
  readonly max: number;
  seen: number;
  /** Writes one line with the count of the suppressed ones. */
  readonly summarize: (suppressed: number, within_ms: number) => void;
}

type Kinds = Map<string, Kind>;

export class Repeats {
  /** One for each place in the keys of a line, so that many narrow ones never push out a wide one. */
  readonly #widths: Kinds[] = [];
  #timer: NodeJS.Timeout | undefined;

  /**
   * Whether the line is to be written: each of its keys, from the narrow to the wide, has room. What the first full one
   * suppresses is logged once its window is over.
   */
  admits(keys: readonly RepeatKey[]): boolean {
    return keys.every((key, width) => this.#hasRoom(key, (this.#widths[width] ??= new Map())));
  }

  /** Logs the counts of everything suppressed so far. */
  flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    for (const kinds of this.#widths) for (const [key, kind] of kinds) end(kinds, key, kind);
  }

  #hasRoom({ text, max, summarize }: RepeatKey, kinds: Kinds): boolean {
    const now_ms = performance.now();
    const known = kinds.get(text);
    if (known && now_ms - known.began_ms < window_ms) {
      known.seen += 1;
      if (known.seen <= max) return true;
      this.#arm();
      return false;
    }
    if (known) end(kinds, text, known);
    else makeRoom(kinds);
    kinds.set(text, { began_ms: now_ms, max, seen: 1, summarize });
    return true;
  }

  get #over(): readonly Kind[] {
    return this.#widths.flatMap((kinds) => [...kinds.values()].filter(({ seen, max }) => seen > max));
  }

  /** One timer while something is held back; it does not keep the process alive. */
  #arm(): void {
    if (this.#timer) return;
    const first_ms = Math.min(...this.#over.map(({ began_ms }) => began_ms)) + window_ms;
    this.#timer = setTimeout(() => this.#endOver(), Math.max(1, first_ms - performance.now()));
    this.#timer.unref();
  }

  #endOver(): void {
    this.#timer = undefined;
    const now_ms = performance.now();
    for (const kinds of this.#widths)
      for (const [key, kind] of kinds) if (now_ms - kind.began_ms >= window_ms) end(kinds, key, kind);
    if (this.#over.length > 0) this.#arm();
  }
}

function makeRoom(kinds: Kinds): void {
  if (kinds.size < kinds_max) return;
  const [oldest] = kinds;
  if (oldest) end(kinds, ...oldest);
}

function end(kinds: Kinds, key: string, { began_ms, max, seen, summarize }: Kind): void {
  kinds.delete(key);
  if (seen > max) summarize(seen - max, Math.min(performance.now() - began_ms, window_ms));
}
