/** Decides whether another copy of a command may be sent: only while the vehicle is as it was when the first one was sent. */
import { situationOf } from '../vehicles/situation.ts';
import type { Addressee, Order } from './exchange.ts';

/** A mode that shows this long after an earlier command may be its effect, and no choice of a pilot. */
const own_change_ms = 5_000;

export class Repeats {
  readonly #to: Addressee;
  readonly #order: Order;
  readonly #began_ms: number;
  readonly #mode_before: number | undefined;
  /** No earlier command explains another mode. */
  readonly #isSettled: boolean;
  #isTakenOver = false;

  /** Before the first copy is sent. `now_ms` is monotonic. */
  constructor(to: Addressee, order: Order, now_ms: number) {
    this.#to = to;
    this.#order = order;
    this.#began_ms = now_ms;
    this.#mode_before = to.contact.latest.last('HEARTBEAT')?.custom_mode;
    this.#isSettled = to.contacts.every(({ unanswered }) => now_ms - unanswered.last_ms > own_change_ms);
  }

  /** Whether no further copy will be sent, whatever comes. */
  get isOver(): boolean {
    if (!this.#order.may_resend) return true;
    // A pilot who has taken over may come back to the mode that was; he is not overruled then either.
    this.#isTakenOver ||= this.#hasOtherMode();
    return this.#isTakenOver;
  }

  isAllowed(now_ms: number): boolean {
    if (this.isOver) return false;
    const [freshest = this.#to.contact] = this.#to.contacts.toSorted((a, b) => b.last_ms - a.last_ms);
    return this.#order.obstacle?.(situationOf(freshest, now_ms)) === undefined;
  }

  /** Whether a pilot, another station or a failsafe has changed the mode: another copy would undo that. */
  #hasOtherMode(): boolean {
    if (this.#order.ignores_mode === true || !this.#isSettled) return false;
    const now_ms = performance.now();
    return this.#to.contacts.some((contact) => {
      // Behind a shared address the mode of the other vehicle shows too.
      if (contact.isShared(now_ms)) return false;
      const mode = contact.latest.since('HEARTBEAT', this.#began_ms)?.custom_mode;
      return mode !== undefined && mode !== this.#mode_before;
    });
  }
}
