/** A first-in-first-out queue whose shift does not move the rest. */
export class Fifo<T> {
  /** What was taken out is released at once: a slot before the head holds nothing. */
  #items: (T | undefined)[] = [];
  #head = 0;

  get length(): number {
    return this.#items.length - this.#head;
  }

  push(item: T): void {
    this.#items.push(item);
  }

  peek(): T | undefined {
    return this.#items[this.#head];
  }

  shift(): T | undefined {
    const item = this.#items[this.#head];
    if (item === undefined) return undefined;
    this.#items[this.#head] = undefined;
    this.#head += 1;
    if (this.#head >= compact_every && this.#head * 2 >= this.#items.length) {
      this.#items = this.#items.slice(this.#head);
      this.#head = 0;
    }
    return item;
  }

  /** Takes everything out, oldest first. */
  drain(): T[] {
    const all = this.#items.slice(this.#head).filter((item) => item !== undefined);
    this.#items = [];
    this.#head = 0;
    return all;
  }
}
const compact_every = 1024;
