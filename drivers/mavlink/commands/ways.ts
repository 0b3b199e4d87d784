/** The links over which one command goes to a vehicle: what was sent over each, what was answered, and what shows the effect. */
import type { Contact } from '../vehicles/contact.ts';
import { texts } from './texts.ts';
import { type Addressee, isHeard } from '../vehicles/addressee.ts';
import type { Situation } from '../vehicles/situation.ts';
import type { MessageName } from '../wire/messages.ts';

/** The two messages that can carry a command. */
export type Form = 'long' | 'int';

export interface Order {
  /** The command as the interface names it. */
  readonly what: string;
  /** MAV_CMD. */
  readonly command: number;
  /** The usual form, and the other form if it is equivalent. */
  readonly forms: readonly [usual: Form, other?: Form];
  /** Returns whether the link accepted the message. */
  readonly send: (contact: Contact, how: { readonly form: Form; readonly confirmation: number }) => boolean;
  /**
   * Only for commands that make a vehicle safer: further copies, over each link to it, do no harm, however late. Other commands are
   * sent again only while the vehicle itself shows that it has not acted.
   */
  readonly may_resend: boolean;
  /** Returns why another copy would do harm now; also when a pilot has changed the mode, unless `ignores_mode`. */
  readonly obstacle?: (situation: Situation) => string | undefined;
  readonly ignores_mode?: boolean;
  /** Description of the expected effect. */
  readonly expected: string;
  readonly effect_wait_ms: number;
  /** The message that shows the effect, beside its heartbeats. */
  readonly shown_in?: MessageName;
  /** No message shows the effect: acceptance is all that can be known. */
  readonly isUnobservable?: boolean;
  /** Whether a message received after `since_ms` shows the effect. */
  readonly isObserved: (contact: Contact, since_ms: number) => boolean;
  /**
   * Sends the older message to autopilots that do not support the command; they do not answer it. Returns the reason
   * if it cannot be sent now.
   */
  readonly fallback?: (contact: Contact) => string | undefined;
  /** Returns further known causes of a refusal. */
  readonly causes?: (contact: Contact) => readonly string[];
}

export type Ack = Contact['acks'][number]['ack'];

const result_accepted = 0;
export const result_in_progress = 5;

export class Ways {
  readonly #to: Addressee;
  readonly #order: Order;
  readonly #before: Before;
  readonly #ways = new Map<Contact, Way>();
  #since_ms = Number.POSITIVE_INFINITY;
  /** Over which link the vehicle was asked. */
  #probed: Contact | undefined;
  /** An answer may be to an earlier command with this number, whose answer is late. */
  isAmbiguous = false;
  /** When the newest answer came. */
  newest_ms = 0;

  constructor(to: Addressee, order: Order) {
    this.#to = to;
    this.#order = order;
    this.#before = {
      was_already: to.contacts.some((contact) => order.isObserved(contact, Number.NEGATIVE_INFINITY)),
      has_clock: to.contacts.some(({ clock }) => clock.isRunning()),
    };
  }

  /** The effect was seen over one of them, also if the pilot has ended it since. */
  get was_seen(): boolean {
    return this.#all.some((way) => way.was_seen);
  }

  /** It was shown; whether by the same start of the autopilot may not be known yet. */
  get wasShown(): boolean {
    return this.#all.some((way) => way.wasShown);
  }

  /** What has not been observed. */
  get expected(): string {
    const { expected } = this.#order;
    return this.wasShown ? texts.with_clock(expected) : expected;
  }

  /** Where the effect was seen; the link in use when it was not. */
  get seen_over(): Contact {
    return this.#all.find((way) => way.isObserved())?.contact ?? this.#to.contact;
  }

  /** The living ones, which may have changed since the command was sent, and all that were used. */
  get #all(): readonly Way[] {
    for (const contact of this.#to.contacts) {
      if (this.#ways.has(contact)) continue;
      const way = new Way(contact, this.#order, this.#before);
      way.begin(this.#since_ms);
      this.#ways.set(contact, way);
    }
    return [...this.#ways.values()];
  }

  /** The command is sent, in another form or for the first time: only what is received from now on counts. */
  begin(now_ms: number): void {
    this.#since_ms = now_ms;
    for (const way of this.#all) {
      const { unanswered, isHighLatency } = way.contact;
      this.isAmbiguous ||= unanswered.isAmbiguous(this.#order.command, now_ms, { isFar: isHighLatency });
      way.begin(now_ms);
    }
  }

  /**
   * Sends one copy: over each living link if it makes the vehicle safer, else over the first one that accepts it: the one in use, or
   * for a further copy the one that was received last. Returns whether one accepted it.
   */
  send(how: { readonly form: Form; readonly confirmation: number }): boolean {
    return this.#over((way) => way.send(how), how.confirmation > 0);
  }

  /**
   * Asks for an answer that tells whether the last copy is still on its way: over the link of the copy, or over another one once that
   * is lost with what it has not sent.
   */
  probe(): void {
    const latest = this.#latest;
    if (!latest) return;
    const isLost = !isHeard(latest.contact);
    if (isLost) latest.discardUnsent();
    const [freshest] = this.#to.contacts.toSorted((a, b) => b.last_ms - a.last_ms);
    this.#probed = isLost ? freshest : latest.contact;
    this.#probed?.probe(performance.now());
  }

  /** When the last copy was sent. */
  get sent_ms(): number {
    return this.#latest?.sent_ms ?? Number.NEGATIVE_INFINITY;
  }

  /**
   * From when on what is received was sent after the last copy had arrived, if it had; undefined: nothing has been answered that was
   * sent after it.
   */
  get arrived_ms(): number | undefined {
    const { sent_ms } = this;
    const probed = this.#probed?.probed;
    return probed && probed.sent_ms >= sent_ms ? sent_ms + (probed.at_ms - probed.sent_ms) : undefined;
  }

  /** The last copy, or its answer, is lost: no answer to it will be taken for one to the next command. */
  giveUp(): void {
    this.#latest?.contact.unanswered.answered(this.#order.command);
  }

  get #latest(): Way | undefined {
    return [...this.#ways.values()].toSorted((a, b) => b.sent_ms - a.sent_ms)[0];
  }

  /** Number of messages of this type so far, over the one that has brought the most. */
  count(name: MessageName): number {
    return Math.max(0, ...this.#all.map(({ contact }) => contact.latest.count(name)));
  }

  /** Sends the older message, which is not answered. Returns the reason if no link accepted it. */
  sendOlder(sendOlder: NonNullable<Order['fallback']>): string | undefined {
    let obstacle: string | undefined;
    const isSent = this.#over((way) => {
      const reason = way.sendOlder(sendOlder);
      obstacle ??= reason;
      return reason === undefined;
    });
    return isSent ? undefined : obstacle;
  }

  #over(send: (way: Way) => boolean, isFurther = false): boolean {
    const { contacts } = this.#to;
    const all = this.#all.filter(({ contact }) => contacts.includes(contact));
    if (this.#order.may_resend) return all.map(send).includes(true);
    const first = isFurther ? all.toSorted((a, b) => b.contact.last_ms - a.contact.last_ms) : all;
    return first.some(send);
  }

  /** Returns the newest answer that is not to an earlier command; an acceptance counts over whichever link it came. */
  newestAck(): Ack | undefined {
    const newest = this.#all.flatMap((way) => way.newestAck() ?? []).toSorted((a, b) => b.at_ms - a.at_ms);
    const [latest] = newest;
    if (latest) this.newest_ms = latest.at_ms;
    return (newest.find(({ ack }) => ack.result === result_accepted) ?? latest)?.ack;
  }

  /** Whether the effect was seen: not a state that was as expected before, which is no evidence without an answer. */
  wasSeen(): boolean {
    return this.#all.map((way) => way.wasSeen()).includes(true);
  }

  /** Whether messages since the command was sent show it. */
  isObserved(): boolean {
    return this.#all.map((way) => way.isObserved()).includes(true);
  }

  /** Returns the different texts of the vehicle since then. */
  textsSince(since_ms: number, severity_max: number): readonly string[] {
    const written = this.#all
      .flatMap(({ contact }) => contact.texts)
      .filter(({ text, at_ms }) => at_ms >= since_ms && text.severity <= severity_max)
      .toSorted((a, b) => a.at_ms - b.at_ms);
    return [...new Set(written.map(({ text }) => text.text))];
  }

  /** Discards copies that have not left this machine: the command has ended, and they would still be executed. */
  discardUnsent(): void {
    for (const way of this.#ways.values()) way.discardUnsent();
  }
}

/** What was known of a vehicle before the command was sent, over all its links. */
interface Before {
  /** The state was already as expected: without an answer it is no evidence. */
  readonly was_already: boolean;
  readonly has_clock: boolean;
}

/**
 * The command over one link. HEARTBEAT has no clock, and a vehicle that has restarted may be disarmed or in a mode as ordered. So the
 * effect counts once a message with the clock of the same start has followed it; a restart that the clock shows clears what was
 * received. Where no clock is received, a restart cannot be known, and the effect counts at once.
 */
class Way {
  readonly contact: Contact;
  /** When the last copy was sent. */
  sent_ms = Number.NEGATIVE_INFINITY;
  /** The effect was seen, also if the pilot has ended it since. */
  was_seen = false;
  readonly #order: Order;
  readonly #before: Before;
  #since_ms = Number.POSITIVE_INFINITY;
  /** Answers that may still arrive to copies of an earlier command with this number. */
  #others = 0;
  /** Number of messages when the effect was shown. */
  #shown_at: number | undefined;

  constructor(contact: Contact, order: Order, before: Before) {
    this.contact = contact;
    this.#order = order;
    this.#before = before;
  }

  /** The effect was shown; whether by the same start of the autopilot may not be known yet. */
  get wasShown(): boolean {
    return this.was_seen || this.#shown_at !== undefined;
  }

  /** The command is sent, in another form or for the first time: only what is received from now on counts. */
  begin(now_ms: number): void {
    this.#since_ms = now_ms;
    this.#others = this.contact.unanswered.count(this.#order.command, now_ms);
    this.#shown_at = undefined;
  }

  send(how: { readonly form: Form; readonly confirmation: number }): boolean {
    const { contact } = this;
    const now_ms = performance.now();
    if (!this.#order.send(contact, how)) return false;
    contact.unanswered.sent(this.#order.command, now_ms);
    this.sent_ms = performance.now();
    return true;
  }

  sendOlder(sendOlder: NonNullable<Order['fallback']>): string | undefined {
    const obstacle = sendOlder(this.contact);
    if (obstacle === undefined) this.sent_ms = performance.now();
    return obstacle;
  }

  /** A refusal of an earlier command does not apply to this one. */
  newestAck(): Contact['acks'][number] | undefined {
    const answers = this.contact.acks.filter(
      ({ ack, at_ms }) => ack.command === this.#order.command && at_ms >= this.#since_ms,
    );
    let others = this.#others;
    let newest: Contact['acks'][number] | undefined;
    for (const answer of answers) {
      if (others === 0) newest = answer;
      else if (answer.ack.result !== result_in_progress) others -= 1;
    }
    return newest;
  }

  discardUnsent(): void {
    if (this.sent_ms > 0) this.contact.discardUnsent(this.sent_ms);
  }

  /** Whether messages since the command was sent show the effect. */
  isObserved(): boolean {
    const { clock } = this.contact;
    if (this.#order.isObserved(this.contact, this.#since_ms)) this.#shown_at ??= clock.messages;
    if (this.#shown_at === undefined) return false;
    return !this.#before.has_clock || clock.wasHeardSince(this.#shown_at);
  }

  /** Whether the effect was seen: not a state that was as expected before, which is no evidence without an answer. */
  wasSeen(): boolean {
    this.was_seen ||= !this.#before.was_already && this.isObserved();
    return this.was_seen;
  }
}
