/**
 * One transfer of the mission protocol (MAVLink guide, "Mission Protocol"): requests are repeated until they are answered. Another
 * station may transfer at the same time, so only what is addressed to us counts.
 */
import type { CommandContext } from '../../../src/toolkit/driver/command.ts';
import { CommandRefused } from '../../../src/platform/errors.ts';
import { report_reserve_ms } from '../commands/exchange.ts';
import type { Messages } from '../wire/messages.ts';
import type { Contact } from '../vehicles/contact.ts';
import type { MissionItem } from './item.ts';
import { mission_types, type MissionKind } from '../vehicles/mission-kinds.ts';
import { ackText, texts } from './texts.ts';
import { type Addressee, isHeard } from '../vehicles/addressee.ts';

/** More would not fit the report of a task. */
export const items_max = 700;
/** Of one message; with every fifth frame lost in each direction, one of 10 million exchanges fails. */
export const requests_max = 16;
/** A slow radio answers later; the second answer does no harm. */
const answer_wait_ms = 500;
/** Where answers come soon, a lost message is repeated soon: after this many times their usual time. */
const answer_times = 4;
const answer_wait_min_ms = 100;
const smoothing = 0.25;
export const ack_accepted = 0;
const ack_error = 1;
const ack_denied = 14;
export const ack_cancelled = 15;
/** A transfer of another station ends within this time, or ours is refused. */
const busy_max_ms = 30_000;
const busy_pause_ms = 1_000;
/** PX4 answers with a text only. */
const busy_text = /\bbusy\b|already active/iu;
/** The autopilot's texts about a refusal are sent after it. */
const reason_wait_ms = 1_000;
const reasons_max = 3;
const severity_notice = 5;

type MissionMessage =
  | 'MISSION_ACK'
  | 'MISSION_COUNT'
  | 'MISSION_ITEM_INT'
  | 'MISSION_REQUEST'
  | 'MISSION_REQUEST_INT';

/** What a transfer needs of its task. `until_ms`: it ends before, on the clock of `performance.now()`. */
export interface TransferTask extends Pick<CommandContext, 'progress' | 'remaining_ms' | 'signal'> {
  readonly until_ms?: number;
}

/** The vehicle refused it, with this MAV_MISSION_RESULT. */
export class TransferRefused extends CommandRefused {
  readonly type: number;

  constructor(reason: string, type: number) {
    super(reason);
    this.type = type;
  }
}

/** The vehicle is silent, or is addressed in another way now. What only reads may begin again. */
export class TransferCut extends CommandRefused {}

/** Another station has transferred for too long: nothing was changed. */
export class TransferBusy extends CommandRefused {}

export class Transfer {
  readonly to: Addressee;
  readonly kind: MissionKind;
  readonly #task: TransferTask;
  /** Whether the vehicle restarted or is received over another link, which knows nothing of the transfer. */
  readonly #isCut: () => boolean;
  readonly #begun_ms = performance.now();
  /** Of the vehicle and its link, smoothed. */
  #answer_ms = answer_wait_ms / answer_times;
  readonly target: Contact['target'] & { readonly mission_type: number };

  constructor(to: Addressee, kind: MissionKind, task: TransferTask) {
    const { contact } = to;
    const hasRestarted = to.watchStart();
    this.#isCut = () => hasRestarted() || to.contact !== contact;
    this.to = { ...to, contact };
    this.kind = kind;
    this.#task = task;
    this.target = { ...contact.target, mission_type: mission_types[kind] };
  }

  /** With the vehicle's own id of what it has stored; 0: it has none. */
  async count(): Promise<Pick<Messages['MISSION_COUNT'], 'count' | 'opaque_id'>> {
    const { contact } = this.to;
    return this.begin(
      texts.the_count(this.kind),
      () => contact.send('MISSION_REQUEST_LIST', this.target),
      (since_ms) => this.received('MISSION_COUNT', since_ms),
    );
  }

  async item(seq: number): Promise<MissionItem> {
    const { contact } = this.to;
    return this.exchange(
      texts.item(this.kind, seq),
      () => contact.send('MISSION_REQUEST_INT', { ...this.target, seq }),
      (since_ms) => {
        const item = this.received('MISSION_ITEM_INT', since_ms);
        return item?.seq === seq ? item : undefined;
      },
    );
  }

  /** Ends the transfer on the vehicle; if this is lost, the vehicle ends it after a while. */
  end(as: 'cancelled' | 'complete'): void {
    const type = as === 'complete' ? ack_accepted : ack_cancelled;
    this.to.contact.send('MISSION_ACK', { ...this.target, type, opaque_id: 0 });
  }

  /** Ends it on the vehicle after discarding what has not left this machine: it would still be stored. */
  abandon(): void {
    this.to.contact.discardUnsent(performance.now());
    this.end('cancelled');
  }

  /** Returns the newest message of this transfer that was received since then. */
  received<K extends MissionMessage>(name: K, since_ms: number): Messages[K] | undefined {
    const { contact } = this.to;
    const message = contact.latest.since(name, since_ms);
    const about: Messages[MissionMessage] | undefined = message;
    if (about?.mission_type !== this.target.mission_type) return undefined;
    return contact.isToUs(about) ? message : undefined;
  }

  /** Whether it is the answer to a station that begins while another one transfers. */
  isBusy(type: number): boolean {
    return type === (this.to.contact.autopilot === 'px4' ? ack_error : ack_denied);
  }

  /** Whether it is no answer to a request: to a station beside another one, or the late end of an earlier upload. */
  isOther(type: number): boolean {
    return type === ack_cancelled || this.isBusy(type);
  }

  /** Waits before it begins again; throws `CommandRefused` when another station has transferred for too long. */
  async waitForOther(since_ms: number): Promise<void> {
    const { contact, name } = this.to;
    const isOver = performance.now() - since_ms > busy_max_ms || this.left_ms < 2 * busy_pause_ms;
    if (isOver) throw new TransferBusy(texts.busy(name, contact.otherTransfer(since_ms)));
    await this.wait(() => undefined, busy_pause_ms);
  }

  /** An exchange that begins a transfer: it waits for the end of another station's, or of an earlier upload. */
  async begin<T>(
    what: string,
    request: () => boolean,
    look: (since_ms: number) => T | undefined,
  ): Promise<T> {
    const since_ms = performance.now();
    for (;;) {
      const begun_ms = performance.now();
      try {
        return await this.exchange(what, request, look);
      } catch (error) {
        if (!(error instanceof TransferRefused && this.isOther(error.type)) && !this.#hasSaidBusy(begun_ms))
          throw isHeard(this.to.contact) ? asFinal(error) : error;
      }
      await this.waitForOther(since_ms);
    }
  }

  /** Whether the vehicle has sent a text since then that it is busy. */
  #hasSaidBusy(since_ms: number): boolean {
    return this.to.contact.texts.some(({ text, at_ms }) => at_ms >= since_ms && busy_text.test(text.text));
  }

  /** Repeats a request until it is answered; throws `CommandRefused` for a refusal and without an answer. */
  async exchange<T>(
    what: string,
    request: () => boolean,
    look: (since_ms: number) => T | undefined,
  ): Promise<T> {
    const { name } = this.to;
    const since_ms = performance.now();
    for (let requests = 0; requests < requests_max; requests += 1) {
      const sent_ms = performance.now();
      request();
      const seen = await this.wait(() => {
        const ack = this.received('MISSION_ACK', since_ms);
        if (ack && ack.type !== ack_accepted) return { refusal: ack.type };
        const answer = look(since_ms);
        return answer === undefined ? undefined : { answer };
      }, this.waitFor(requests));
      if (seen && requests === 0) this.answered(performance.now() - sent_ms);
      if (seen && 'refusal' in seen) throw await this.#refusal(what, seen.refusal);
      if (seen) return seen.answer;
    }
    throw new TransferCut(texts.unanswered(name, what, requests_max));
  }

  async #refusal(what: string, type: number): Promise<TransferRefused> {
    const refused = texts.refused(this.to.name, what, ackText(type));
    // The reason of a vehicle that is busy is known.
    return new TransferRefused(this.isOther(type) ? refused : await this.explained(refused), type);
  }

  /** Time to wait for an answer, after so many repetitions. */
  protected waitFor(repetitions: number): number {
    const usual_ms = Math.max(answer_wait_min_ms, this.#answer_ms * answer_times);
    return Math.min(answer_wait_ms, usual_ms * 2 ** repetitions);
  }

  /** Notes the time of an answer to a message that was sent once. */
  protected answered(after_ms: number): void {
    this.#answer_ms += (after_ms - this.#answer_ms) * smoothing;
  }

  /** Adds the autopilot's texts since the transfer began to a refusal. */
  async explained(refusal: string): Promise<string> {
    const { contact, changes } = this.to;
    await changes.until(
      () => undefined,
      Math.max(0, Math.min(reason_wait_ms, this.left_ms)),
      this.#task.signal,
    );
    const written = contact.texts.filter(
      ({ text, at_ms }) => at_ms >= this.#begun_ms && text.severity <= severity_notice,
    );
    const unique = [...new Set(written.map(({ text }) => text.text))].slice(-reasons_max);
    return unique.length === 0 ? refusal : `${refusal}: ${unique.join('; ')}`;
  }

  /** Time that is left of the transfer. */
  get left_ms(): number {
    const { remaining_ms, until_ms = Number.POSITIVE_INFINITY } = this.#task;
    return Math.min(remaining_ms() - report_reserve_ms, until_ms - performance.now());
  }

  progress(sentence: string, pct: number): void {
    this.#task.progress(sentence, Math.round(pct));
  }

  /** Throws `CommandRefused` when the task is stopped, its time is over or the vehicle restarted. */
  async wait<T>(look: () => T | undefined, ms: number): Promise<T | undefined> {
    const { changes, name } = this.to;
    const { signal } = this.#task;
    const { left_ms } = this;
    if (left_ms <= 0) throw new CommandRefused(texts.too_late(name));
    const seen = await changes.until(look, Math.min(ms, left_ms), signal);
    if (signal.aborted) throw new CommandRefused(texts.stopped(name));
    if (this.#isCut()) throw new TransferCut(texts.interrupted(name));
    return seen;
  }
}

/** A vehicle that is received and does not answer will not answer later. */
function asFinal(error: unknown): unknown {
  return error instanceof TransferCut ? new CommandRefused(error.message) : error;
}
