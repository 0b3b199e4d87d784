/** What a virtual timer has in common with one of Node.js; it keeps no process alive. */
export abstract class TimerHandle {
  #isRef = true;

  ref(): this {
    this.#isRef = true;
    return this;
  }

  unref(): this {
    this.#isRef = false;
    return this;
  }

  hasRef(): boolean {
    return this.#isRef;
  }

  abstract close(): this;

  [Symbol.dispose](): void {
    this.close();
  }
}
