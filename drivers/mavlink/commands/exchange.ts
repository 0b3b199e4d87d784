/** Sends one command and determines its outcome: completed by evidence, refused with reasons, or unknown. */
import type { CommandContext } from '../../../src/toolkit/driver/command.ts';
import { CommandRefused } from '../../../src/platform/errors.ts';
import { silenceSince } from '../../../src/platform/stalls.ts';
import type { Contact } from '../vehicles/contact.ts';
import { situationOf } from '../vehicles/situation.ts';
import { texts } from './texts.ts';
import { texts as vehicle_texts } from '../vehicles/texts.ts';
import { type Ack, result_in_progress, Ways, type Form, type Order } from './ways.ts';
import { type Addressee, silent_ms } from '../vehicles/addressee.ts';

export interface Evidence {
  /** False: no answer came, but the change of the vehicle was observed. */
  readonly acknowledged: boolean;
  /** What the vehicle wrote in the first second, from warning on. */
  readonly vehicle_texts?: readonly string[];
}

/** An answer is waited for at least this long, and a further copy may be sent after each slice of it. */
const answer_wait_ms = 3_000;
const answer_slice_ms = 1_000;
/** The same for a command that is not sent blindly: with each slice it may show that the copy before is lost. */
const evidence_slice_ms = 500;
/** A command that is not for safety is sent again within this time only, as no older task begins: somebody may stand beside the vehicle then. */
const again_within_ms = 10_000;
/** A vehicle that has shown its state so often since has not done what it was sent. */
const looks_min = 3;
/** A vehicle that shows less in this time sends too rarely to be waited for. */
const looks_max_ms = 15_000;
const confirmation_max = 255;
/** After the last copy, an answer or the effect may still appear. */
const late_wait_ms = 2_000;
/** After the effect was shown, the clock of the vehicle may still appear. */
export const clock_wait_ms = 2_000;
/** The same for one that has sent its clock as rarely before. */
const rare_clock_wait_ms = 5_000;
/** A vehicle repeats IN_PROGRESS while it executes a command. After this long without one, how the command ended is not known. */
const executing_max_ms = 10_000;
/** Over a satellite messages take up to a minute, and the vehicle reports its mode as rarely. */
const satellite = {
  answer_wait_ms: 60_000,
  answer_slice_ms: 20_000,
  late_wait_ms: 20_000,
  effect_wait_ms: 180_000,
} as const;
/** Both autopilots send the reasons after the answer. */
const reason_wait_ms = 1_000;
/** Part of a task's time that is reserved for its report. */
export const report_reserve_ms = 200;
/** With less time than this the effect of a command could not be observed. */
export const time_min_ms = 1_000;
/** A mode that shows this long after an earlier command may be its effect, and no choice of a pilot. */
const own_change_ms = 5_000;

/** The time of a task that may pass before its command is sent. */
export function spare_ms({ remaining_ms }: Pick<CommandContext, 'remaining_ms'>): number {
  return Math.max(0, remaining_ms() - time_min_ms - report_reserve_ms);
}

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
  const evidence = await outcomeOf(attempt, order).finally(() => attempt.close());
  const vehicle_texts = await attempt.firstTexts();
  const more = vehicle_texts.length > 0 ? { vehicle_texts } : {};
  return { evidence: { ...evidence, ...more }, contact: attempt.seen_over };
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
  /** Copies that a link has accepted, in all forms. */
  #copies = 0;
  readonly #hasRestarted: () => boolean;
  readonly #ways: Ways;
  readonly #began_ms = performance.now();
  readonly #mode_before: number | undefined;
  /** No earlier command explains another mode. */
  readonly #isSettled: boolean;
  #isTakenOver = false;

  constructor(to: Addressee, order: Order, context: CommandContext) {
    this.#to = to;
    this.#order = order;
    this.#context = context;
    this.#hasRestarted = to.watchStart();
    this.#ways = new Ways(to, order);
    this.#mode_before = to.contact.latest.last('HEARTBEAT')?.custom_mode;
    const settled_ms = this.#began_ms - own_change_ms;
    this.#isSettled = to.contacts.every(({ unanswered }) => unanswered.last_ms < settled_ms);
  }

  /** Resolves with the final answer, however late; undefined when none came, or when the effect was observed first. */
  async answer(form: Form): Promise<Ack | undefined> {
    this.#sent_ms = performance.now();
    this.#ways.begin(this.#sent_ms);
    const ack = (await this.#sendUntilAnswered(form)) ?? (await this.#lateAnswer());
    return ack?.result === result_in_progress ? this.#awaitCompletion(ack) : ack;
  }

  /** Undefined: no answer came to any copy, or the effect was observed. */
  async #sendUntilAnswered(form: Form): Promise<Ack | undefined> {
    const wait_ms = this.#isFar ? satellite.answer_wait_ms : answer_wait_ms;
    for (let slice = 0; slice * this.#slice_ms < wait_ms || this.#goesOn(); slice += 1) {
      if (slice === 0 || this.#mayRepeat()) this.#send(form, this.#order.may_resend ? slice : this.#copies);
      const ack = await this.#wait(() => {
        this.#ways.wasSeen();
        return this.#ways.newestAck();
      }, this.#slice_ms);
      if (ack || this.#ways.was_seen) return ack;
    }
    return undefined;
  }

  /** Awaits an answer after the last copy, as long as the effect has not been observed. */
  async #lateAnswer(): Promise<Ack | undefined> {
    const isOver = this.#hasLooked(this.#isFar ? satellite.late_wait_ms : late_wait_ms);
    const late = await this.#wait(
      () => this.#ways.newestAck() ?? (this.#ways.wasSeen() || isOver() ? 'over' : undefined),
      this.#context.remaining_ms(),
    );
    return late === 'over' ? undefined : late;
  }

  /** Whether the vehicle is received over a satellite only. */
  get #isFar(): boolean {
    return this.#to.contact.isHighLatency;
  }

  get #slice_ms(): number {
    if (this.#isFar) return satellite.answer_slice_ms;
    return this.#order.may_resend ? answer_slice_ms : evidence_slice_ms;
  }

  #send(form: Form, copy: number): void {
    const isSent = this.#ways.send({ form, confirmation: Math.min(copy, confirmation_max) });
    if (isSent) this.#copies += 1;
    // This link loses frames.
    if (this.#copies > 1 && !this.#order.may_resend) this.#ways.probe();
    // A link that accepts nothing now may do so before the time of a command that makes the vehicle safer is over.
    if (!this.#order.may_resend && this.#copies === 0) this.#fail(this.#unsent);
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

  /** Whether further copies may be sent before the time of the task is over. Over a satellite they would arrive a minute late, and cost. */
  #goesOn(): boolean {
    return !this.#isFar && !this.#hasEnded && this.#hasTime && !this.#ways.wasShown && this.#isEarly;
  }

  get #isEarly(): boolean {
    return this.#order.may_resend || performance.now() - this.#sent_ms < again_within_ms;
  }

  /** Whether the effect of another copy would come before the report. */
  get #hasTime(): boolean {
    return this.#context.remaining_ms() >= time_min_ms;
  }

  /** Whether another copy may be sent: not after the effect was shown, where it would take the vehicle back from a pilot who has taken over. */
  #mayRepeat(): boolean {
    if (this.#ways.wasShown || !this.#hasTime || this.#hasEnded || this.#isBarred()) return false;
    return this.#order.may_resend || this.#isLost();
  }

  /** Whether no further copy will be sent, whatever comes: only while the vehicle is as it was when the first one was sent. */
  get #hasEnded(): boolean {
    // A pilot who has taken over may come back to the mode that was; he is not overruled then either.
    this.#isTakenOver ||= this.#hasOtherMode();
    return this.#isTakenOver;
  }

  /** Whether another copy would do harm now. */
  #isBarred(): boolean {
    const [freshest = this.#to.contact] = this.#to.contacts.toSorted((a, b) => b.last_ms - a.last_ms);
    return this.#order.obstacle?.(situationOf(freshest, performance.now())) !== undefined;
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

  /**
   * Whether the last copy, or the answer to it, is lost: the vehicle has answered what was sent later, and a heartbeat after that shows
   * it as it was.
   */
  #isLost(): boolean {
    const { arrived_ms } = this.#ways;
    if (arrived_ms === undefined) {
      this.#ways.probe();
      return false;
    }
    const isShown = this.#to.contacts.some(
      ({ latest }) => latest.since('HEARTBEAT', arrived_ms) !== undefined,
    );
    if (isShown) this.#ways.giveUp();
    return isShown;
  }

  /** Whether another form may be sent: the command may be resent, or the vehicle refused it immediately. */
  mayRetry(): boolean {
    const quick_ms = this.#isFar ? satellite.answer_slice_ms : answer_slice_ms;
    return (this.#order.may_resend && this.#mayRepeat()) || performance.now() - this.#sent_ms < quick_ms;
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
    this.#copies += 1;
    this.#sent_ms = now_ms;
    this.#ways.begin(now_ms);
    const look = (): true | undefined => this.#ways.isObserved() || undefined;
    while (!(await this.#wait(look, this.#slice_ms)) && this.#goesOn())
      if (this.#mayRepeat()) this.#ways.sendOlder(sendOlder);
    if (await this.#observeEffect()) return { acknowledged: false };
    return this.#failUnobserved(this.#sent_ms, texts.sent_as_message(this.#to.name, this.#order.what));
  }

  /**
   * Returns a function that tells whether the vehicle has had the time and, reporting rarely or over a bad link, the occasions to show
   * an effect.
   */
  #hasLooked(wait_ms: number): () => boolean {
    const from_ms = performance.now();
    const longest_ms = this.#isFar ? wait_ms : Math.max(wait_ms, looks_max_ms);
    const { shown_in = 'HEARTBEAT' } = this.#order;
    const reports = [...new Set([shown_in, 'HEARTBEAT' as const])]
      .map((name) => ({ name, before: this.#ways.count(name) }))
      .filter(({ before }) => before > 0);
    return () => {
      const waited_ms = performance.now() - from_ms;
      if (waited_ms < wait_ms) return false;
      const isShown = reports.every(({ name, before }) => this.#ways.count(name) >= before + looks_min);
      return isShown || waited_ms >= longest_ms;
    };
  }

  async #observeEffect(): Promise<boolean> {
    const isOver = this.#hasLooked(this.#isFar ? satellite.effect_wait_ms : this.#order.effect_wait_ms);
    const look = (): boolean | undefined => this.#ways.isObserved() || (isOver() ? false : undefined);
    if (await this.#wait(look, this.#context.remaining_ms())) return true;
    if (!this.#ways.wasShown) return false;
    return (await this.#wait(() => this.#ways.isObserved() || undefined, rare_clock_wait_ms)) === true;
  }

  /** Returns what the vehicle wrote soon after the command was sent, also if that follows its effect. */
  async firstTexts(): Promise<readonly string[]> {
    const left_ms = this.#sent_ms + reason_wait_ms - performance.now();
    await this.#to.changes.until(() => undefined, this.#within(Math.max(0, left_ms)), this.#context.signal);
    return this.#ways.textsSince(this.#sent_ms, severity_warning).slice(-reasons_max);
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
    const deaf = contact.isDeaf ? `: ${vehicle_texts.deaf}` : '';
    return this.#failUnknown(`${reason}${this.#reasons(severity_warning)}${deaf}`);
  }

  async refused({ result }: Ack, obstacle?: string): Promise<Evidence> {
    // A copter that takes off at the first copy, whose answer is lost, refuses the second one.
    if (this.#copies > 1 && result !== result_unsupported && (await this.#observeEffect()))
      return { acknowledged: false };
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
    return this.#fail(this.#copies > 0 ? texts.unknown_outcome(reason) : this.#unsent);
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

/** Returns a function that gives the reason why later messages may not show the effect of the command `what`. */
export function interruptionOf(to: Addressee, what: string): () => string | undefined {
  const hasRestarted = to.watchStart();
  return () => {
    if (hasRestarted()) return texts.interrupted(to.name, what);
    const conflict = to.conflict();
    return conflict === undefined ? undefined : texts.about(to.name, conflict);
  };
}
