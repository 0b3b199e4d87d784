/**
 * Limits the bytes of one socket that are handled in one turn of the event loop. libuv reads up to 32 times before it
 * serves other sockets: a flooding sender would block all of them for two megabytes.
 */

/** The largest datagram, and more than libuv reads of usual ones in a turn. */
export const turn_bytes_max = 65_536;

export class TurnBudget {
  #left = turn_bytes_max;
  #isCounting = false;

  /** Takes the bytes from the budget of this turn; false, and nothing is taken, when they exceed what is left. */
  take(bytes: number): boolean {
    if (!this.#isCounting) {
      this.#isCounting = true;
      setImmediate(() => {
        this.#isCounting = false;
        this.#left = turn_bytes_max;
      });
    }
    if (bytes > this.#left) return false;
    this.#left -= bytes;
    return true;
  }
}
