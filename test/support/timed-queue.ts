/** Chunks that come out in order, each not before its time, and not at all while the queue is held. */
export class TimedQueue {
  readonly #emit: (chunk: Buffer) => void;
  #waiting: { readonly chunk: Buffer; readonly due_ms: number }[] = [];
  #timer: NodeJS.Timeout | undefined;
  #held = false;
  /** Bytes that wait. */
  bytes = 0;

  constructor(emit: (chunk: Buffer) => void) {
    this.#emit = emit;
  }

  /** `due_ms` is on the clock of `performance.now()`. */
  push(chunk: Buffer, due_ms: number): void {
    this.#waiting.push({ chunk, due_ms });
    this.bytes += chunk.length;
    this.#work();
  }

  hold(): void {
    this.#held = true;
  }

  go(): void {
    this.#held = false;
    this.#work();
  }

  clear(): void {
    this.#waiting = [];
    this.bytes = 0;
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  #work(): void {
    if (this.#timer !== undefined) return;
    while (!this.#held) {
      const head = this.#waiting[0];
      if (!head) return;
      const wait_ms = head.due_ms - performance.now();
      if (wait_ms > 0) {
        this.#timer = setTimeout(() => {
          this.#timer = undefined;
          this.#work();
        }, wait_ms);
        return;
      }
      this.#waiting.shift();
      this.bytes -= head.chunk.length;
      this.#emit(head.chunk);
    }
  }
}
