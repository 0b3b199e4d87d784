/** Suppresses repeated lines on the same subject within a window, and logs how many there were once it is over. */

/** So many lines of one kind are written in a window; the others are counted. */
export const repeats_max = 5;
/** The same sentence of the same subject, whatever texts of a device stand beside it. */
export const of_subject_max = 20;
/** All lines of one driver or part, however many subjects it has. */
export const of_owner_max = 600;
/** Window of the log; what else counts repeats has its own. */
export const window_ms = 60_000;
/** Kinds of one width that are remembered; beyond it the oldest is forgotten, its count logged. */
const kinds_max = 500;

/** What a line counts for, from the narrow to the wide. */
export interface RepeatKey {
  readonly text: string;
  /** Lines of it in a window. */
  readonly max: number;
  /** What a repeated line stands for; left out: one. */
  readonly count?: number;
  /** Writes one line with the count of the suppressed ones; of the newest line. */
  readonly summarize: (suppressed: number, within_ms: number) => void;
}

interface Kind {
  readonly began_ms: number;
  key: RepeatKey;
  seen: number;
}

type Kinds = Map<string, Kind>;

export class Repeats {
  /** One for each place in the keys of a line, so that many narrow ones never push out a wide one. */
  readonly #widths: Kinds[] = [];
  readonly #window_ms: number;
  #timer: NodeJS.Timeout | undefined;

  constructor(window_ms: number) {
    this.#window_ms = window_ms;
  }

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
    for (const kinds of this.#widths) for (const kind of kinds.values()) this.#end(kinds, kind);
  }

  #hasRoom(key: RepeatKey, kinds: Kinds): boolean {
    const now_ms = performance.now();
    const known = kinds.get(key.text);
    if (known && now_ms - known.began_ms < this.#window_ms) {
      known.key = key;
      known.seen += key.count ?? 1;
      if (known.seen <= key.max) return true;
      this.#arm();
      return false;
    }
    const [oldest] = kinds.values();
    if (known) this.#end(kinds, known);
    else if (oldest && kinds.size >= kinds_max) this.#end(kinds, oldest);
    kinds.set(key.text, { began_ms: now_ms, key, seen: 1 });
    return true;
  }

  get #over(): readonly Kind[] {
    return this.#widths.flatMap((kinds) => [...kinds.values()].filter(isOver));
  }

  /** One timer while something is held back; it does not keep the process alive. */
  #arm(): void {
    if (this.#timer) return;
    const first_ms = Math.min(...this.#over.map(({ began_ms }) => began_ms)) + this.#window_ms;
    this.#timer = setTimeout(() => this.#endOver(), Math.max(1, first_ms - performance.now()));
    this.#timer.unref();
  }

  #endOver(): void {
    this.#timer = undefined;
    const now_ms = performance.now();
    for (const kinds of this.#widths)
      for (const kind of kinds.values())
        if (now_ms - kind.began_ms >= this.#window_ms) this.#end(kinds, kind);
    if (this.#over.length > 0) this.#arm();
  }

  #end(kinds: Kinds, kind: Kind): void {
    const { key, began_ms, seen } = kind;
    kinds.delete(key.text);
    const within_ms = Math.min(performance.now() - began_ms, this.#window_ms);
    if (isOver(kind)) key.summarize(seen - key.max, within_ms);
  }
}

function isOver({ key, seen }: Kind): boolean {
  return seen > key.max;
}
