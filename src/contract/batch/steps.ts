/**
 * Work on what others sent, in steps: a caller with other work does that between them. A generator gives way where it yields,
 * which it does each time it has done `pace_chars` of work.
 */
export type Steps<T> = Generator<undefined, T, undefined>;

/** Work between two yields, in characters of JSON read or written; 20 ms at most, and more than the batch of a kit usually has. */
export const pace_chars = 512 * 1024;

/** Counts the work of several generators that call each other. */
export class Pace {
  #done_chars = 0;

  /** Adds so much work. Whether it is time to yield. */
  isDue(chars: number): boolean {
    this.#done_chars += chars;
    if (this.#done_chars < pace_chars) return false;
    this.#done_chars = 0;
    return true;
  }
}

/** Carries out all steps at once. */
export function finish<T>(steps: Steps<T>): T {
  for (;;) {
    const { done, value } = steps.next();
    if (done === true) return value;
  }
}

/** Carries out one step each time `between` has resolved. */
export async function finishBetween<T>(steps: Steps<T>, between: () => Promise<void>): Promise<T> {
  for (;;) {
    const { done, value } = steps.next();
    if (done === true) return value;
    await between();
  }
}
