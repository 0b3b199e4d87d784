/** Sends one command and determines its outcome: completed by evidence, refused with reasons, or unknown. */
import type { CommandContext } from '../../../src/driver/command.ts';
import { CommandRefused } from '../../../src/errors.ts';
import { silenceSince } from '../../../src/platform/stalls.ts';
import { Effect } from '../reports/effect.ts';
import type { Contact } from '../vehicles/contact.ts';
import type { Situation } from '../vehicles/situation.ts';
import type { Changes } from './await-change.ts';
import { Repeats } from './repeats.ts';
import { texts } from './texts.ts';

/** The vehicle that a command is sent to. */
export interface Addressee {
  readonly name: string;
  readonly contact: Contact;
  readonly changes: Changes;
  /** Changes when the autopilot restarts and when commands move to another link. */
  readonly incarnation: () => string;
  /** Why what is received cannot be attributed to it: another vehicle has its system id. */
  readonly conflict: () => string | undefined;
}

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
  /** Only for commands that make a vehicle safer: a second copy does no harm, however late. */
  readonly may_resend: boolean;
  /** Returns why another copy would do harm now; also when a pilot has changed the mode, unless `ignores_mode`. */
  readonly obstacle?: (situation: Situation) => string | undefined;
  readonly ignores_mode?: boolean;
  /** Description of the expected effect. */
  readonly expected: string;
  readonly effect_wait_ms: number;
  /** No message shows the effect: acceptance is all that can be known. */
  readonly is_unobservable?: boolean;
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

export interface Evidence {
  /** False: no answer came, but the change of the vehicle was observed. */
  readonly acknowledged: boolean;
}

type Ack = Contact['acks'][number]['ack'];

/** The wait for an answer has this many slices; a command that may be resent is sent at the start of each. */
const answer_slices = 3;
const answer_slice_ms = 1_000;
/** After the last copy, an answer or the effect may still appear. */
const late_wait_ms = 2_000;
/** After the effect was shown, the clock of the vehicle may still appear. */
export const clock_wait_ms = 2_000;
/** A vehicle repeats IN_PROGRESS while it executes a command. After this long without one, how the command ended is not known. */
const executing_max_ms = 10_000;
/** Over a satellite messages take up to a minute, and the vehicle reports its mode as rarely. */
const satellite = { answer_slice_ms: 20_000, late_wait_ms: 20_000, effect_wait_ms: 180_000 } as const;
/** Both autopilots send the reasons after the answer. */
const reason_wait_ms = 1_000;
/** Part of a task's time that is reserved for its report. */
export const report_reserve_ms = 200;
/** With less time than this the effect of a command could not be observed. */
export const time_min_ms = 1_000;
/** A vehicle that sends nothing for this long is lost. */
export const silent_ms = 2_000;

export function isHeard({ last_ms }: Contact): boolean {
  return silenceSince(last_ms) < silent_ms;
}

const reasons_max = 3;
const severity_warning = 4;
/** ArduPilot explains refused modes with notices. */
const severity_notice = 5;
const severity_info = 6;
const result_accepted = 0;
const result_unsupported = 3;
const result_in_progress = 5;
/** The form that an autopilot requests when it refuses the other one, by result. */
const requested_forms: ReadonlyMap<number, Form> = new Map([
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
 * Resolves when the effect was observed. Otherwise throws `CommandRefused` with the known facts, also when the task is
 * stopped: then the command was sent already.
 */
export async function carryOut(to: Addressee, order: Order, context: CommandContext): Promise<Evidence> {
  const attempt = new Attempt(to, order, context);
  try {
    return await outcomeOf(attempt, order);
  } finally {
    attempt.close();
  }
}

async function outcomeOf(attempt: Attempt, order: Order): Promise<Evidence> {
  const [usual, other] = order.forms;
  let ack = await attempt.answer(usual);
  // It was refused because of its form, so it had no effect; the other form is equivalent.
  if (ack && other && requested_forms.get(ack.result) === other && attempt.mayRetry())
    ack = await attempt.answer(other);
  if (ack === undefined) return attempt.withoutAnswer();
  if (ack.result === result_accepted)
    return order.is_unobservable === true ? attempt.acceptance() : attempt.effect();
  const is_unsupported = ack.result === result_unsupported || requested_forms.has(ack.result);
  return is_unsupported && order.fallback && attempt.mayRetry()
    ? attempt.sendFallback(ack, order.fallback)
    : attempt.refused(ack);
}

/** One command in progress, from the moment it was sent. */
class Attempt {
  readonly #to: Addressee;
  readonly #order: Order;
  readonly #context: CommandContext;
  #sent_ms = performance.now();
  /** Answers that may still arrive to copies of an earlier command with this number. */
  #others = 0;
  /** An answer may be to an earlier command with this number, whose answer is late. */
  #isAmbiguous = false;
  /** When the newest answer came. */
  #newest_ms = 0;
  /** When the last unanswered copy was sent. */
  #unanswered_ms: number | undefined;
  readonly #incarnation: string;
  readonly #repeats: Repeats;
  readonly #effect: Effect;

  constructor(to: Addressee, order: Order, context: CommandContext) {
    this.#to = to;
    this.#order = order;
    this.#context = context;
    this.#incarnation = to.incarnation();
    this.#repeats = new Repeats(to, order, performance.now());
    this.#effect = new Effect(to.contact, order);
  }

  /** Resolves with the final answer, however late; undefined when none came, or when the effect was observed first. */
  async answer(form: Form): Promise<Ack | undefined> {
    this.#sent_ms = performance.now();
    this.#effect.sent(this.#sent_ms);
    const { unanswered } = this.#to.contact;
    this.#others = unanswered.count(this.#order.command, this.#sent_ms);
    this.#isAmbiguous ||= unanswered.isAmbiguous(this.#order.command, this.#sent_ms, { isFar: this.#isFar });
    for (let slice = 0; slice < answer_slices; slice += 1) {
      if (slice === 0 || this.#mayRepeat()) this.#send(form, slice);
      const ack = await this.#wait(() => {
        this.#effect.wasSeen();
        return this.#newestAck();
      }, this.#slice_ms);
      if (ack) return ack.result === result_in_progress ? this.#awaitCompletion(ack) : ack;
      if (this.#effect.was_seen) return undefined;
    }
    const late = await this.#wait(
      () => this.#newestAck() ?? (this.#effect.wasSeen() ? 'observed' : undefined),
      this.#isFar ? satellite.late_wait_ms : late_wait_ms,
    );
    if (late === undefined || late === 'observed') return undefined;
    return late.result === result_in_progress ? this.#awaitCompletion(late) : late;
  }

  /** Whether the vehicle is received over a satellite only. */
  get #isFar(): boolean {
    return this.#to.contact.isHighLatency;
  }

  get #slice_ms(): number {
    return this.#isFar ? satellite.answer_slice_ms : answer_slice_ms;
  }

  #send(form: Form, confirmation: number): void {
    const { name, contact } = this.#to;
    const now_ms = performance.now();
    if (this.#order.send(contact, { form, confirmation })) {
      contact.unanswered.sent(this.#order.command, now_ms);
      this.#unanswered_ms = performance.now();
    } else if (confirmation === 0) this.#fail(texts.not_sent(texts.link_stalled(name)));
  }

  /** Discards copies that have not left this machine: the command has ended, and they would still be executed. */
  close(): void {
    if (this.#unanswered_ms !== undefined) this.#to.contact.discardUnsent(this.#unanswered_ms);
  }

  /**
   * Whether another copy may be sent: not when its effect would come after the report, nor after the effect was shown, where it
   * would take the vehicle back from a pilot who has taken over.
   */
  #mayRepeat(): boolean {
    if (this.#effect.was_shown) return false;
    return this.#context.remaining_ms() >= time_min_ms && this.#repeats.isAllowed(performance.now());
  }

  /** Whether another form may be sent: the command may be resent, or the vehicle refused it immediately. */
  mayRetry(): boolean {
    return this.#mayRepeat() || performance.now() - this.#sent_ms < this.#slice_ms;
  }

  /** What no message shows is as accepted, if the answer is to this command. */
  acceptance(): Evidence {
    const { name } = this.#to;
    if (this.#isAmbiguous) this.#failUnknown(texts.ambiguous(texts.accepted(name, this.#order.what)));
    return { acknowledged: true };
  }

  /** Awaits the effect of an accepted command: acceptance is no evidence of it. */
  async effect(): Promise<Evidence> {
    const began_ms = performance.now();
    if (this.#effect.was_seen || (await this.#observeEffect())) return { acknowledged: true };
    return this.#failUnobserved(began_ms, texts.accepted(this.#to.name, this.#order.what));
  }

  /** Sends the older message, which is not answered, to an autopilot that does not support the command. */
  async sendFallback(ack: Ack, sendOlder: NonNullable<Order['fallback']>): Promise<Evidence> {
    const obstacle = sendOlder(this.#to.contact);
    if (obstacle !== undefined) return this.refused(ack, obstacle);
    this.#sent_ms = performance.now();
    this.#unanswered_ms = this.#sent_ms;
    this.#effect.sent(this.#sent_ms);
    if (await this.#observeEffect()) return { acknowledged: false };
    return this.#failUnobserved(this.#sent_ms, texts.sent_as_message(this.#to.name, this.#order.what));
  }

  async #observeEffect(): Promise<boolean> {
    const wait_ms = this.#isFar ? satellite.effect_wait_ms : this.#order.effect_wait_ms;
    const look = (): true | undefined => this.#effect.isObserved() || undefined;
    if (await this.#wait(look, wait_ms)) return true;
    return this.#effect.was_shown && (await this.#wait(look, clock_wait_ms)) === true;
  }

  #failUnobserved(began_ms: number, sent: string): never {
    const waited_s = ((performance.now() - began_ms) / 1_000).toFixed(1);
    const unobserved = texts.unobserved(sent, this.#effect.expected, waited_s);
    const reasons = this.#reasons(severity_info);
    const causes = causesText(reasons, this.#order.causes?.(this.#to.contact) ?? []);
    return this.#failUnknown(`${unobserved}${reasons}${causes}`);
  }

  withoutAnswer(): Evidence {
    if (this.#effect.wasSeen()) return { acknowledged: false };
    const { name, contact } = this.#to;
    const { what } = this.#order;
    const { expected } = this.#effect;
    const silence_ms = silenceSince(contact.last_ms);
    const reason =
      silence_ms >= silent_ms && !this.#isFar
        ? texts.link_lost(name, what, (silence_ms / 1_000).toFixed(1))
        : contact.hasRival
          ? texts.not_attributed(name, what, expected)
          : texts.unanswered(name, what, expected);
    return this.#failUnknown(`${reason}${this.#reasons(severity_warning)}`);
  }

  async refused({ result }: Ack, obstacle?: string): Promise<never> {
    // The refusal is known: neither a stop of the task nor a restart of the vehicle changes it.
    await this.#to.changes.until(
      () => void this.#effect.wasSeen(),
      this.#within(reason_wait_ms),
      this.#context.signal,
    );
    const result_name = result_names[result] ?? `result ${result}`;
    const reasons = this.#reasons(severity_notice) || this.#reasons(severity_info);
    const more = [
      ...(this.#order.causes?.(this.#to.contact) ?? []),
      ...(obstacle === undefined ? [] : [obstacle]),
    ];
    const causes = causesText(reasons, more);
    const { what, expected } = this.#order;
    const refusal = texts.refused(this.#to.name, what, result_name);
    // It may have answered another command, or another station may have caused it.
    if (this.#effect.was_shown)
      this.#failUnknown(`${texts.contradicted(refusal, expected)}${reasons}${causes}`);
    const failure = `${refusal}${reasons}${causes}`;
    return this.#isAmbiguous ? this.#failUnknown(texts.ambiguous(failure)) : this.#fail(failure);
  }

  /**
   * Waits for the end of a command in execution; a resent command might restart it. Undefined: its effect was seen and no answer
   * followed, or the vehicle has reported nothing more about it.
   */
  async #awaitCompletion(first: Ack): Promise<Ack | undefined> {
    let reported_pct: number | undefined;
    const report = ({ progress }: Ack): void => {
      if (progress === reported_pct) return;
      reported_pct = progress;
      this.#context.progress(texts.executing(this.#to.name), ...(progress <= 100 ? [progress] : []));
    };
    report(first);
    const silence_max_ms = this.#isFar ? satellite.effect_wait_ms : executing_max_ms;
    const isSilent = (): boolean => silenceSince(this.#newest_ms) > silence_max_ms;
    const finalAck = (): Ack | undefined => {
      const ack = this.#newestAck();
      if (ack?.result !== result_in_progress) return ack;
      report(ack);
      return undefined;
    };
    const seen = await this.#wait(
      () => finalAck() ?? (this.#effect.wasSeen() || isSilent() ? 'over' : undefined),
      this.#context.remaining_ms(),
    );
    return seen === 'over' ? this.#wait(finalAck, this.#effect.was_seen ? reason_wait_ms : 0) : seen;
  }

  /** Returns the newest answer that is not to an earlier command: a refusal of that one does not apply to this one. */
  #newestAck(): Ack | undefined {
    const answers = this.#to.contact.acks.filter(
      ({ ack, at_ms }) => ack.command === this.#order.command && at_ms >= this.#sent_ms,
    );
    let others = this.#others;
    let newest: Ack | undefined;
    for (const { ack, at_ms } of answers) {
      if (others === 0) {
        newest = ack;
        this.#newest_ms = at_ms;
      } else if (ack.result !== result_in_progress) others -= 1;
    }
    return newest;
  }

  /** Waits within the time of the task; throws `outcome unknown` when the task is stopped or the vehicle restarted. */
  async #wait<T>(look: () => T | undefined, ms: number): Promise<T | undefined> {
    const { signal } = this.#context;
    const hasChanged = (): boolean => this.#to.incarnation() !== this.#incarnation;
    const { name, changes } = this.#to;
    // What makes a vehicle safer goes on, whoever else receives it.
    const conflictOf = (): string | undefined => (this.#order.may_resend ? undefined : this.#to.conflict());
    const seen = await changes.until(
      () => (hasChanged() || conflictOf() !== undefined ? { found: undefined } : found(look())),
      this.#within(ms),
      signal,
    );
    const conflict = conflictOf();
    if (conflict !== undefined) this.#failUnknown(texts.about(name, conflict));
    if (signal.aborted && seen === undefined) this.#failUnknown(texts.stopped(name, this.#order.what));
    if (!hasChanged()) return seen?.found;
    return this.#failUnknown(texts.interrupted(name, this.#order.what));
  }

  /** Returns the part of `ms` that is left of the task's time. */
  #within(ms: number): number {
    return Math.min(ms, Math.max(0, this.#context.remaining_ms() - report_reserve_ms));
  }

  /** Returns the autopilot's texts since the command was sent, as the end of a sentence. */
  #reasons(severity_max: number): string {
    const written = this.#to.contact.texts.filter(
      ({ text, at_ms }) => at_ms >= this.#sent_ms && text.severity <= severity_max,
    );
    const unique = [...new Set(written.map(({ text }) => text.text))].slice(-reasons_max);
    return unique.length === 0 ? '' : `: ${unique.join('; ')}`;
  }

  #failUnknown(reason: string): never {
    return this.#fail(texts.unknown_outcome(reason));
  }

  #fail(reason: string): never {
    throw new CommandRefused(reason);
  }
}

/** Continues a sentence with further causes. */
function causesText(reasons: string, causes: readonly string[]): string {
  return causes.length === 0 ? '' : `${reasons === '' ? ':' : ';'} ${causes.join('; ')}`;
}

function found<T>(value: T | undefined): { readonly found: T } | undefined {
  return value === undefined ? undefined : { found: value };
}
