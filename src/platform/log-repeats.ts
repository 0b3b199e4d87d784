/** Holds back lines that say the same of the same subject again and again, and tells how many they were. */

/** So many lines of one kind are written in a window; the others are counted. */
export const repeats_max = 5;
export const window_ms = 60_000;
/** Kinds of lines that are remembered; beyond it the oldest is forgotten, its count told. */
const kinds_max = 500;

interface Kind {
  readonly began_ms: number;
  seen: number;
  /** Writes one line that tells of those held back. */
  readonly tell: (suppressed: number, within_ms: number) => void;
}

export class Repeats {
  readonly #kinds = new Map<string, Kind>();
  #timer: NodeJS.Timeout | undefined;

  /** Whether the line is to be written. `tell` is called once the window is over, if any were not. */
  admits(kind: string, tell: Kind['tell']): boolean {
    const now_ms = performance.now();
    const known = this.#kinds.get(kind);
    if (known && now_ms - known.began_ms < window_ms) {
      known.seen += 1;
      if (known.seen <= repeats_max) return true;
      this.#arm();
      return false;
    }
    if (known) this.#end(kind, known);
    else this.#makeRoom();
    this.#kinds.set(kind, { began_ms: now_ms, seen: 1, tell });
    return true;
  }

  /** Tells of everything that was held back so far. */
  flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    for (const [key, kind] of this.#kinds) this.#end(key, kind);
  }

  #makeRoom(): void {
    if (this.#kinds.size < kinds_max) return;
    const [oldest] = this.#kinds;
    if (oldest) this.#end(...oldest);
  }

  #end(key: string, { began_ms, seen, tell }: Kind): void {
    this.#kinds.delete(key);
    if (seen > repeats_max) tell(seen - repeats_max, Math.min(performance.now() - began_ms, window_ms));
  }

  /** One timer while something is held back; it does not keep the process alive. */
  #arm(): void {
    if (this.#timer) return;
    const over = [...this.#kinds.values()].filter(({ seen }) => seen > repeats_max);
    const first_ms = Math.min(...over.map(({ began_ms }) => began_ms)) + window_ms;
    this.#timer = setTimeout(() => this.#endOver(), Math.max(1, first_ms - performance.now()));
    this.#timer.unref();
  }

  #endOver(): void {
    this.#timer = undefined;
    const now_ms = performance.now();
    for (const [key, kind] of this.#kinds) if (now_ms - kind.began_ms >= window_ms) this.#end(key, kind);
    if (this.#kinds.values().some(({ seen }) => seen > repeats_max)) this.#arm();
  }
}
