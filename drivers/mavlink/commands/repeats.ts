/** Decides whether another copy of a command may be sent: only while the vehicle is as it was when the first one was sent. */
import { situationOf } from '../vehicles/situation.ts';
import type { Addressee, Order } from './exchange.ts';

/** A mode that shows this long after an earlier command may be its effect, and no choice of a pilot. */
const own_change_ms = 5_000;

export class Repeats {
  readonly #to: Addressee;
  readonly #order: Order;
  readonly #mode_before: number | undefined;
  /** No earlier command explains another mode. */
  readonly #isSettled: boolean;

  /** Before the first copy is sent. `now_ms` is monotonic. */
  constructor(to: Addressee, order: Order, now_ms: number) {
    this.#to = to;
    this.#order = order;
    this.#mode_before = to.contact.latest.last('HEARTBEAT')?.custom_mode;
    this.#isSettled = now_ms - to.contact.unanswered.last_ms > own_change_ms;
  }

  isAllowed(now_ms: number): boolean {
    const { contact } = this.#to;
    if (!this.#order.may_resend || this.#isTakenOver()) return false;
    return this.#order.obstacle?.(situationOf(contact, now_ms)) === undefined;
  }

  /** Whether a pilot, another station or a failsafe has changed the mode: another copy would undo that. */
  #isTakenOver(): boolean {
    // Behind a shared address the mode of the other vehicle shows too.
    const isShared = this.#to.contact.isShared(performance.now());
    if (this.#order.ignores_mode === true || isShared || !this.#isSettled) return false;
    return this.#to.contact.latest.last('HEARTBEAT')?.custom_mode !== this.#mode_before;
  }
}
