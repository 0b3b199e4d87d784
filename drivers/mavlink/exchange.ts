/** Sends one command and finds out what became of it: answered, refused with reasons, seen to be done, or unknown. */
import type { CommandContext } from '../../src/driver/command.ts';
import { CommandRefused } from '../../src/errors.ts';
import type { Contact } from './contact.ts';
import type { Changes } from './watch.ts';

/** The vehicle as a command sees it. */
export interface Addressee {
  readonly name: string;
  readonly contact: Contact;
  readonly changes: Changes;
  /** Changes when the autopilot starts anew and when it is spoken to over another link. */
  readonly incarnation: () => string;
}

/** The two messages in which a command can be sent. */
export type Form = 'long' | 'int';

export interface Order {
  /** The command in the words of the interface. */
  readonly what: string;
  /** MAV_CMD. */
  readonly command: number;
  /** The usual form, and the other one where it means the same. */
  readonly forms: readonly [usual: Form, other?: Form];
  readonly send: (contact: Contact, how: { readonly form: Form; readonly confirmation: number }) => void;
  /** Only for what makes a vehicle safer: a second copy of it does no harm, however late. */
  readonly may_resend: boolean;
  /** What must be seen, in words. */
  readonly expected: string;
  readonly effect_wait_ms: number;
  /** Whether the vehicle has shown it in a message that came after `since_ms`. */
  readonly isSeen: (contact: Contact, since_ms: number) => boolean;
  /**
   * Another way for autopilots that do not support the command; it is not answered. Answers why it is no way now, and
   * nothing was sent then.
   */
  readonly fallback?: (contact: Contact) => string | undefined;
  /** What else is known of why the vehicle may have refused. */
  readonly causes?: (contact: Contact) => readonly string[];
}

/** How the effect is known. */
export interface Evidence {
  /** False: there was no answer, and the vehicle was seen to change. */
  readonly acknowledged: boolean;
}

type Ack = Contact['acks'][number]['ack'];

/** An answer is waited for in this many slices; what may be sent again is sent at the start of each. */
const answer_slices = 3;
const answer_slice_ms = 1_000;
/** After the last copy was sent, the effect may still show without an answer. */
const late_effect_wait_ms = 2_000;
/** Reasons come after the answer on both autopilots. */
const reason_wait_ms = 1_000;
/** What is left of a task's time for its report. */
const report_reserve_ms = 200;
/** With less time than this a command could not be seen to its end. */
export const time_min_ms = 1_000;
const silent_ms = 2_000;
const reasons_max = 3;
const severity_warning = 4;
const severity_info = 6;
const result_accepted = 0;
const result_unsupported = 3;
const result_in_progress = 5;
/** By which form an autopilot asks for when it refuses the other one. */
const forms_asked: ReadonlyMap<number, Form> = new Map([
  [7, 'long'],
  [8, 'int'],
]);
const result_names: readonly string[] = [
  'ACCEPTED',
  'TEMPORARILY_REJECTED',
  'DENIED',
  'UNSUPPORTED',
  'FAILED',
  'IN_PROGRESS',
  'CANCELLED',
  'COMMAND_LONG_ONLY',
  'COMMAND_INT_ONLY',
  'COMMAND_UNSUPPORTED_MAV_FRAME',
  'NOT_IN_CONTROL',
];

/**
 * Resolves once the effect was seen. Throws `CommandRefused` with what is known otherwise; when the task is told to stop,
 * the reason it was given.
 */
export async function carryOut(to: Addressee, order: Order, context: CommandContext): Promise<Evidence> {
  const attempt = new Attempt(to, order, context);
  const [usual, other] = order.forms;
  let ack = await attempt.answer(usual);
  // It was refused because of its form, so that nothing was done; the other form says the same.
  if (ack && other && forms_asked.get(ack.result) === other && attempt.mayGoOn())
    ack = await attempt.answer(other);
  if (ack === undefined) return attempt.withoutAnswer();
  if (ack.result === result_accepted) return attempt.effect();
  const is_unsupported = ack.result === result_unsupported || forms_asked.has(ack.result);
  return is_unsupported && order.fallback && attempt.mayGoOn()
    ? attempt.otherWay(ack, order.fallback)
    : attempt.refused(ack);
}

/** One command under way, from the moment it was sent. */
class Attempt {
  readonly #to: Addressee;
  readonly #order: Order;
  readonly #context: CommandContext;
  #sent_ms = performance.now();
  readonly #incarnation: string;
  /** It was so already: without an answer nothing is learnt from seeing it. */
  readonly #was_so: boolean;

  constructor(to: Addressee, order: Order, context: CommandContext) {
    this.#to = to;
    this.#order = order;
    this.#context = context;
    this.#incarnation = to.incarnation();
    this.#was_so = order.isSeen(to.contact, Number.NEGATIVE_INFINITY);
  }

  /** The final answer; undefined when none came, or when the effect showed instead. */
  async answer(form: Form): Promise<Ack | undefined> {
    this.#sent_ms = performance.now();
    for (let slice = 0; slice < answer_slices; slice += 1) {
      if (slice === 0 || this.#order.may_resend)
        this.#order.send(this.#to.contact, { form, confirmation: slice });
      const ack = await this.#wait(() => this.#newestAck(), answer_slice_ms);
      if (ack) return ack.result === result_in_progress ? this.#longAnswer(ack) : ack;
      if (!this.#was_so && this.#isSeen()) return undefined;
    }
    return undefined;
  }

  /** Whether the vehicle refused at once: what may not be sent late may still be said otherwise now. */
  mayGoOn(): boolean {
    return this.#order.may_resend || performance.now() - this.#sent_ms < answer_slice_ms;
  }

  /** The command was accepted, which says nothing of what the vehicle does. */
  async effect(): Promise<Evidence> {
    if (await this.#shows()) return { acknowledged: true };
    return this.#unseen(`${this.#to.name} accepted ${this.#order.what}`);
  }

  /** The autopilot does not know the command, and is told in a way that it does not answer. */
  async otherWay(ack: Ack, take: NonNullable<Order['fallback']>): Promise<Evidence> {
    const obstacle = take(this.#to.contact);
    if (obstacle !== undefined) return this.refused(ack, obstacle);
    this.#sent_ms = performance.now();
    if (await this.#shows()) return { acknowledged: false };
    return this.#unseen(
      `${this.#to.name} does not know the command and was told ${this.#order.what} in the old way`,
    );
  }

  async #shows(): Promise<boolean> {
    return (await this.#wait(() => this.#isSeen() || undefined, this.#order.effect_wait_ms)) ?? false;
  }

  #unseen(what_was_done: string): never {
    const { expected, effect_wait_ms } = this.#order;
    const within = `within ${effect_wait_ms / 1_000} s`;
    return this.#fail(
      `${what_was_done}, but ${expected} was not seen ${within}${this.#reasons(severity_info)}; outcome unknown`,
    );
  }

  async withoutAnswer(): Promise<Evidence> {
    const seen = await this.#wait(() => (!this.#was_so && this.#isSeen()) || undefined, late_effect_wait_ms);
    if (seen) return { acknowledged: false };
    const { name, contact } = this.#to;
    const { what, expected } = this.#order;
    const silence_ms = performance.now() - contact.last_ms;
    const why =
      silence_ms >= silent_ms
        ? `the link to ${name} was lost after ${what} was sent (nothing was heard for ${(silence_ms / 1_000).toFixed(1)} s)`
        : `${name} did not answer ${what}, and ${expected} was not seen to follow; it may have acted`;
    return this.#fail(`${why}${this.#reasons(severity_warning)}; outcome unknown`);
  }

  async refused({ result }: Ack, obstacle?: string): Promise<never> {
    await this.#wait(() => undefined, reason_wait_ms);
    const result_name = result_names[result] ?? `result ${result}`;
    const reasons = this.#reasons(severity_warning) || this.#reasons(severity_info);
    const more = [
      ...(this.#order.causes?.(this.#to.contact) ?? []),
      ...(obstacle === undefined ? [] : [obstacle]),
    ];
    const causes = more.length === 0 ? '' : `${reasons === '' ? ':' : ';'} ${more.join('; ')}`;
    return this.#fail(`${this.#to.name} refused ${this.#order.what} (${result_name})${reasons}${causes}`);
  }

  /** It is at work: asked again it might begin anew, so that only its end is waited for. */
  async #longAnswer(first: Ack): Promise<Ack | undefined> {
    let told_pct: number | undefined;
    const tell = ({ progress }: Ack): void => {
      if (progress === told_pct) return;
      told_pct = progress;
      this.#context.progress(`${this.#to.name} is at work`, ...(progress <= 100 ? [progress] : []));
    };
    tell(first);
    const finalAck = (): Ack | undefined => {
      const ack = this.#newestAck();
      if (ack?.result !== result_in_progress) return ack;
      tell(ack);
      return undefined;
    };
    return this.#wait(finalAck, this.#context.remaining_ms());
  }

  #newestAck(): Ack | undefined {
    const { acks } = this.#to.contact;
    return acks.findLast(({ ack, at_ms }) => ack.command === this.#order.command && at_ms >= this.#sent_ms)
      ?.ack;
  }

  #isSeen(): boolean {
    return this.#order.isSeen(this.#to.contact, this.#sent_ms);
  }

  /** Waits no longer than the task allows, and throws what ends the attempt. */
  async #wait<T>(look: () => T | undefined, ms: number): Promise<T | undefined> {
    const { signal, remaining_ms } = this.#context;
    const left_ms = Math.max(0, remaining_ms() - report_reserve_ms);
    const isAnother = (): boolean => this.#to.incarnation() !== this.#incarnation;
    const seen = await this.#to.changes.until(
      () => (isAnother() ? { found: undefined } : found(look())),
      Math.min(ms, left_ms),
      signal,
    );
    signal.throwIfAborted();
    if (!isAnother()) return seen?.found;
    return this.#fail(
      `${this.#to.name} started anew or changed its link after ${this.#order.what} was sent; outcome unknown`,
    );
  }

  /** What the autopilot wrote since the command was sent, as the end of a sentence. */
  #reasons(severity_max: number): string {
    const { texts } = this.#to.contact;
    const written = texts.filter(
      ({ text, at_ms }) => at_ms >= this.#sent_ms && text.severity <= severity_max,
    );
    const unique = [...new Set(written.map(({ text }) => text.text))].slice(-reasons_max);
    return unique.length === 0 ? '' : `: ${unique.join('; ')}`;
  }

  #fail(sentence: string): never {
    throw new CommandRefused(sentence);
  }
}

function found<T>(value: T | undefined): { readonly found: T } | undefined {
  return value === undefined ? undefined : { found: value };
}
