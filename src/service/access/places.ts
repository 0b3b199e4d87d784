/** Counts what each holder has open: the sockets of a key, the requests of an address. */
export class Places {
  readonly #max: number;
  readonly #open = new Map<string, number>();

  /** `max`: of one holder. */
  constructor(max: number) {
    this.#max = max;
  }

  /** Returns whether the holder may have one more, and counts it. */
  take(holder: string): boolean {
    const open = this.#open.get(holder) ?? 0;
    if (open >= this.#max) return false;
    this.#open.set(holder, open + 1);
    return true;
  }

  leave(holder: string): void {
    const left = (this.#open.get(holder) ?? 1) - 1;
    if (left > 0) this.#open.set(holder, left);
    else this.#open.delete(holder);
  }
}
