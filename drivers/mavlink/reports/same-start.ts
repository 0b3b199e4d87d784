/** Whether an autopilot has restarted since, over whichever links it is received: another link is no restart. */
import type { Contact } from '../vehicles/contact.ts';

/** The clock of one start may seem this much later over a slower link. */
const latency_max_ms = 2_000;

export class SameStart {
  readonly #since_ms: number;
  readonly #boots: ReadonlyMap<Contact, number>;
  /** Undefined: it sends no clock. */
  readonly #booted_at_ms: number | undefined;

  /** `now_ms` is monotonic. */
  constructor(contacts: readonly Contact[], now_ms: number) {
    this.#since_ms = now_ms;
    this.#boots = new Map(contacts.map((contact) => [contact, contact.boots]));
    const starts = contacts.flatMap(({ booted_at_ms }) => booted_at_ms ?? []);
    this.#booted_at_ms = starts.length > 0 ? Math.max(...starts) : undefined;
  }

  /** Whether one of the links shows another start. */
  isOver(contacts: readonly Contact[]): boolean {
    return contacts.some((contact) => this.#isOther(contact));
  }

  #isOther(contact: Contact): boolean {
    const boots = this.#boots.get(contact);
    if (boots !== undefined) return contact.boots !== boots;
    // A new link may be that of an autopilot that has restarted; only its clock tells.
    const { booted_at_ms } = contact;
    if (this.#booted_at_ms === undefined) return true;
    if (booted_at_ms === undefined) return false;
    // Another vehicle behind the same radio may have started earlier.
    if (contact.isPresumed && this.#booted_at_ms - booted_at_ms > latency_max_ms) return true;
    return booted_at_ms > this.#since_ms || booted_at_ms - this.#booted_at_ms > latency_max_ms;
  }
}
