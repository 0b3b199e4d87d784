/** Sends one command and determines its outcome: completed by evidence, refused with reasons, or unknown. */
import type { CommandContext } from '../../../src/toolkit/driver/command.ts';
import { CommandRefused } from '../../../src/platform/errors.ts';
import { silenceSince } from '../../../src/platform/stalls.ts';
import type { Contact } from '../vehicles/contact.ts';
import { situationOf } from '../vehicles/situation.ts';
import { texts } from './texts.ts';
import { type Ack, result_in_progress, Ways, type Form, type Order } from './ways.ts';
import { type Addressee, silent_ms } from '../vehicles/addressee.ts';

export interface Evidence {
  /** False: no answer came, but the change of the vehicle was observed. */
  readonly acknowledged: boolean;
}

/**
 * The wait for an answer has this many slices. A command that may be resent is sent at the start of each, and of further ones until
 * the time of the task is over.
 */
const answer_slices = 3;
const answer_slice_ms = 1_000;
const confirmation_max = 255;
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
const reasons_max = 3;
const severity_warning = 4;
/** ArduPilot explains refused modes with notices. */
const severity_notice = 5;
const severity_info = 6;
const result_accepted = 0;
const result_unsupported = 3;
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
  const { evidence } = await carryOutOver(to, order, context);
  return evidence;
}

/** The same, with the link over which the effect was seen. */
export async function carryOutOver(
  to: Addressee,
  order: Order,
  context: CommandContext,
): Promise<{ readonly evidence: Evidence; readonly contact: Contact }> {
  const attempt = new Attempt(to, order, context);
  try {
    const evidence = await outcomeOf(attempt, order);
    return { evidence, contact: attempt.seen_over };
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
    return order.isUnobservable === true ? attempt.acceptance() : attempt.effect();
  const isUnsupported = ack.result === result_unsupported || requested_forms.has(ack.result);
  return isUnsupported && order.fallback && attempt.mayRetry()
    ? attempt.sendFallback(ack, order.fallback)
    : attempt.refused(ack);
}

/** One command in progress, from the moment it was sent. */
class Attempt {
  readonly #to: Addressee;
  readonly #order: Order;
  readonly #context: CommandContext;
  #sent_ms = performance.now();
  #has_sent = false;
  readonly #hasRestarted: () => boolean;
  readonly #repeats: Repeats;
  readonly #ways: Ways;

  constructor(to: Addressee, order: Order, context: CommandContext) {
    this.#to = to;
    this.#order = order;
    this.#context = context;
    this.#hasRestarted = to.watchStart();
    this.#repeats = new Repeats(to, order, performance.now());
    this.#ways = new Ways(to, order);
  }

  /** Resolves with the final answer, however late; undefined when none came, or when the effect was observed first. */
  async answer(form: Form): Promise<Ack | undefined> {
    this.#sent_ms = performance.now();
    this.#ways.begin(this.#sent_ms);
    for (let copy = 0; copy < answer_slices || this.#goesOn(); copy += 1) {
      if (copy === 0 || this.#mayRepeat()) this.#send(form, copy);
      const ack = await this.#wait(() => {
        this.#ways.wasSeen();
        return this.#ways.newestAck();
      }, this.#slice_ms);
      if (ack) return ack.result === result_in_progress ? this.#awaitCompletion(ack) : ack;
      if (this.#ways.was_seen) return undefined;
    }
    const late = await this.#wait(
      () => this.#ways.newestAck() ?? (this.#ways.wasSeen() ? 'observed' : undefined),
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

  #send(form: Form, copy: number): void {
    const isSent = this.#ways.send({ form, confirmation: Math.min(copy, confirmation_max) });
    this.#has_sent ||= isSent;
    // A link that accepts nothing now may do so before the time of a command that makes the vehicle safer is over.
    if (!isSent && !this.#order.may_resend) this.#fail(this.#unsent);
  }

  get #unsent(): string {
    return texts.not_sent(texts.link_stalled(this.#to.name));
  }

  close(): void {
    this.#ways.discardUnsent();
  }

  /** Where the effect was seen. */
  get seen_over(): Contact {
    return this.#ways.seen_over;
  }

  /** Whether copies are sent until the time of the task is over. Over a satellite they would arrive a minute late, and cost. */
  #goesOn(): boolean {
    return !this.#isFar && !this.#repeats.isOver && this.#hasTime && !this.#ways.wasShown;
  }

  /** Whether the effect of another copy would come before the report. */
  get #hasTime(): boolean {
    return this.#context.remaining_ms() >= time_min_ms;
  }

  /** Whether another copy may be sent: not after the effect was shown, where it would take the vehicle back from a pilot who has taken over. */
  #mayRepeat(): boolean {
    return !this.#ways.wasShown && this.#hasTime && this.#repeats.isAllowed(performance.now());
  }

  /** Whether another form may be sent: the command may be resent, or the vehicle refused it immediately. */
  mayRetry(): boolean {
    return this.#mayRepeat() || performance.now() - this.#sent_ms < this.#slice_ms;
  }

  /** What no message shows is as accepted, if the answer is to this command. */
  acceptance(): Evidence {
    const { name } = this.#to;
    if (this.#ways.isAmbiguous) this.#failUnknown(texts.ambiguous(texts.accepted(name, this.#order.what)));
    return { acknowledged: true };
  }

  /** Awaits the effect of an accepted command: acceptance is no evidence of it. */
  async effect(): Promise<Evidence> {
    const began_ms = performance.now();
    if (this.#ways.was_seen || (await this.#observeEffect())) return { acknowledged: true };
    return this.#failUnobserved(began_ms, texts.accepted(this.#to.name, this.#order.what));
  }

  /** Sends the older message, which is not answered, to an autopilot that does not support the command. */
  async sendFallback(ack: Ack, sendOlder: NonNullable<Order['fallback']>): Promise<Evidence> {
    const now_ms = performance.now();
    const obstacle = this.#ways.sendOlder(sendOlder);
    if (obstacle !== undefined) return this.refused(ack, obstacle);
    this.#sent_ms = now_ms;
    this.#ways.begin(now_ms);
    if (await this.#observeEffect()) return { acknowledged: false };
    return this.#failUnobserved(this.#sent_ms, texts.sent_as_message(this.#to.name, this.#order.what));
  }

  async #observeEffect(): Promise<boolean> {
    const wait_ms = this.#isFar ? satellite.effect_wait_ms : this.#order.effect_wait_ms;
    const look = (): true | undefined => this.#ways.isObserved() || undefined;
    if (await this.#wait(look, wait_ms)) return true;
    return this.#ways.wasShown && (await this.#wait(look, clock_wait_ms)) === true;
  }

  #failUnobserved(began_ms: number, sent: string): never {
    const waited_s = ((performance.now() - began_ms) / 1_000).toFixed(1);
    const unobserved = texts.unobserved(sent, this.#ways.expected, waited_s);
    const reasons = this.#reasons(severity_info);
    const causes = causesText(reasons, this.#order.causes?.(this.#to.contact) ?? []);
    return this.#failUnknown(`${unobserved}${reasons}${causes}`);
  }

  withoutAnswer(): Evidence {
    if (this.#ways.wasSeen()) return { acknowledged: false };
    const { name, contact } = this.#to;
    const { what } = this.#order;
    const { expected } = this.#ways;
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
      () => void this.#ways.wasSeen(),
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
    if (this.#ways.wasShown) this.#failUnknown(`${texts.contradicted(refusal, expected)}${reasons}${causes}`);
    const failure = `${refusal}${reasons}${causes}`;
    return this.#ways.isAmbiguous ? this.#failUnknown(texts.ambiguous(failure)) : this.#fail(failure);
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
    const isSilent = (): boolean => silenceSince(this.#ways.newest_ms) > silence_max_ms;
    const finalAck = (): Ack | undefined => {
      const ack = this.#ways.newestAck();
      if (ack?.result !== result_in_progress) return ack;
      report(ack);
      return undefined;
    };
    const seen = await this.#wait(
      () => finalAck() ?? (this.#ways.wasSeen() || isSilent() ? 'over' : undefined),
      this.#context.remaining_ms(),
    );
    return seen === 'over' ? this.#wait(finalAck, this.#ways.was_seen ? reason_wait_ms : 0) : seen;
  }

  /** Waits within the time of the task; throws `outcome unknown` when the task is stopped or the vehicle restarted. */
  async #wait<T>(look: () => T | undefined, ms: number): Promise<T | undefined> {
    const { signal } = this.#context;
    const { name, changes } = this.#to;
    // What makes a vehicle safer goes on, whoever else receives it.
    const conflictOf = (): string | undefined => (this.#order.may_resend ? undefined : this.#to.conflict());
    const seen = await changes.until(
      () => (this.#hasRestarted() || conflictOf() !== undefined ? { found: undefined } : found(look())),
      this.#within(ms),
      signal,
    );
    const conflict = conflictOf();
    if (conflict !== undefined) this.#failUnknown(texts.about(name, conflict));
    if (signal.aborted && seen === undefined) this.#failUnknown(texts.stopped(name, this.#order.what));
    if (!this.#hasRestarted()) return seen?.found;
    return this.#failUnknown(texts.interrupted(name, this.#order.what));
  }

  /** Returns the part of `ms` that is left of the task's time. */
  #within(ms: number): number {
    return Math.min(ms, Math.max(0, this.#context.remaining_ms() - report_reserve_ms));
  }

  /** Returns the autopilot's texts since the command was sent, as the end of a sentence. */
  #reasons(severity_max: number): string {
    const unique = this.#ways.textsSince(this.#sent_ms, severity_max).slice(-reasons_max);
    return unique.length === 0 ? '' : `: ${unique.join('; ')}`;
  }

  #failUnknown(reason: string): never {
    return this.#fail(this.#has_sent ? texts.unknown_outcome(reason) : this.#unsent);
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

// Decides whether another copy of a command may be sent: only while the vehicle is as it was when the first one was sent.

/** A mode that shows this long after an earlier command may be its effect, and no choice of a pilot. */
const own_change_ms = 5_000;

class Repeats {
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

/** Returns a function that gives the reason why later messages may not show the effect of the command `what`. */
export function interruptionOf(to: Addressee, what: string): () => string | undefined {
  const hasRestarted = to.watchStart();
  return () => {
    if (hasRestarted()) return texts.interrupted(to.name, what);
    const conflict = to.conflict();
    return conflict === undefined ? undefined : texts.about(to.name, conflict);
  };
}
