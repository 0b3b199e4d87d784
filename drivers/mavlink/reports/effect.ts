/** Whether a vehicle has shown the effect of a command over one link, and has not restarted before it did. */
import type { Order } from '../commands/exchange.ts';
import type { Contact } from '../vehicles/contact.ts';

/** What was known of a vehicle before the command was sent, over all its links. */
export interface Before {
  /** The state was already as expected: without an answer it is no evidence. */
  readonly was_already: boolean;
  readonly has_clock: boolean;
}

/**
 * HEARTBEAT has no clock, and a vehicle that has restarted may be disarmed or in a mode as ordered. So the effect counts once a
 * message with the clock of the same start has followed it; a restart that the clock shows clears what was received. Where no
 * clock is received, a restart cannot be known, and the effect counts at once.
 */
export class Effect {
  readonly #contact: Contact;
  readonly #order: Order;
  readonly #was_already: boolean;
  readonly #has_clock: boolean;
  #since_ms = Number.POSITIVE_INFINITY;
  /** Number of messages when the effect was shown. */
  #shown_at: number | undefined;
  #was_seen = false;

  constructor(contact: Contact, order: Order, { was_already, has_clock }: Before) {
    this.#contact = contact;
    this.#order = order;
    this.#was_already = was_already;
    this.#has_clock = has_clock;
  }

  /** It was seen, also if the pilot has ended it since. */
  get was_seen(): boolean {
    return this.#was_seen;
  }

  /** It was shown; whether by the same start of the autopilot may not be known yet. */
  get was_shown(): boolean {
    return this.#was_seen || this.#shown_at !== undefined;
  }

  /** The command is sent, in another form or for the first time: only what is received from now on counts. */
  sent(now_ms: number): void {
    this.#since_ms = now_ms;
    this.#shown_at = undefined;
  }

  /** Whether messages since the command was sent show it. */
  isObserved(): boolean {
    const { clock } = this.#contact;
    if (this.#order.isObserved(this.#contact, this.#since_ms)) this.#shown_at ??= clock.messages;
    if (this.#shown_at === undefined) return false;
    return !this.#has_clock || clock.wasHeardSince(this.#shown_at);
  }

  /** Whether the effect was seen: not a state that was as expected before, which is no evidence without an answer. */
  wasSeen(): boolean {
    this.#was_seen ||= !this.#was_already && this.isObserved();
    return this.#was_seen;
  }
}
