/** Assigns numbers and times to messages, and tracks when the clock became synced. */
import type { Position } from '../../../contract/envelope.ts';
import type { Clock } from '../../../platform/clock.ts';
import type { Draft, OutboxLog } from '../api.ts';
import { first_state } from './live-state.ts';
import type { ClockOffset, Live } from './outgoing.ts';
import { positionOf, rowId, seq_max } from '../row.ts';
import { messageOf } from '../../../platform/errors.ts';
import { backoff } from '../../../platform/time.ts';
import type { Stored } from '../protocol.ts';
import type { StoreClient } from './store-client.ts';
import { texts } from '../texts.ts';

/** The share of the numbers of an epoch after which a new one is requested. */
const runs_out_at = 0.99;
/** Epochs of this run whose numbers are remembered. */
const ended_max = 16;
/** Receivers keep numbers in blocks: an epoch begins with a whole one. */
const block = 4_096;

type Range = readonly [first: number, last: number];

export interface Numbers {
  /** How many an epoch has; left out: all that there are. */
  readonly numbers?: number | undefined;
  /** Chooses the first number of an epoch; left out: `Math.random`. */
  readonly random?: (() => number) | undefined;
}

export class Numbering {
  readonly #clock: Clock;
  readonly #now: () => number;
  readonly #numbers: number;
  readonly #random: () => number;
  readonly #ended = new Map<number, Range>();
  #epoch: number;
  #first_seq: number;
  #next_seq: number;
  #offset_ms: ClockOffset;

  constructor(
    epoch: number,
    clock: Clock,
    now: () => number,
    { numbers = seq_max, random = Math.random }: Numbers = {},
  ) {
    this.#epoch = epoch;
    this.#clock = clock;
    this.#now = now;
    this.#numbers = numbers;
    this.#random = random;
    this.#first_seq = this.#next_seq = this.#firstSeq();
  }

  get epoch(): number {
    return this.#epoch;
  }

  /** UTC minus time since boot, once the clock can be trusted. */
  get offset_ms(): ClockOffset {
    return this.#offset_ms;
  }

  /** Most numbers of the epoch are used: a new one should begin. */
  get runs_out(): boolean {
    return this.#next_seq > this.#numbers * runs_out_at;
  }

  number(draft: Draft): Live {
    // A disk that has failed to store a new epoch for days must not stop the messages: the store learns it later.
    if (this.#next_seq >= this.#numbers) this.begin(this.#epoch + 1);
    const id = rowId({ epoch: this.#epoch, seq: this.#next_seq });
    this.#next_seq += 1;
    const { time_ms, mono_ms, synced } = draft.stamp ?? this.#clock.stamp();
    const row = {
      id,
      lane: draft.lane,
      channel: draft.channel,
      time_ms,
      mono_ms: synced ? null : mono_ms,
      body: JSON.stringify(draft.data),
    };
    const { from_disk_only = false, is_behind = false } = draft;
    const since_ms = this.#now();
    return { row, since_ms, state: first_state, order: 0, from_disk_only, is_behind };
  }

  /** Continues with the first number of this epoch. */
  begin(epoch: number): void {
    this.#ended.set(this.#epoch, this.#used);
    const [oldest] = this.#ended.size > ended_max ? this.#ended.keys() : [];
    if (oldest !== undefined) this.#ended.delete(oldest);
    this.#epoch = epoch;
    this.#first_seq = this.#next_seq = this.#firstSeq();
  }

  /** The numbers given out in an epoch of this run; the last one is below the first while there are none. */
  used(epoch: number): Range | undefined {
    return epoch === this.#epoch ? this.#used : this.#ended.get(epoch);
  }

  get #used(): Range {
    return [this.#first_seq, this.#next_seq - 1];
  }

  /**
   * Somewhere in the first half of the epoch. The state on disk may be an old copy that was put back, and the clock may be
   * wrong: another run of this kit may have used the same epoch. Its numbers are others.
   */
  #firstSeq(): number {
    return 1 + block * Math.floor((this.#random() * this.#numbers) / 2 / block);
  }

  position(live: Live): Position {
    return positionOf(live.row.id);
  }

  /** The offset, when the clock has just become right: once in a run. */
  clockBecameRight(): number | undefined {
    if (this.#offset_ms !== undefined) return undefined;
    const { time_ms, mono_ms, synced } = this.#clock.stamp();
    if (synced) this.#offset_ms = time_ms - mono_ms;
    return this.#offset_ms;
  }
}

/** Two copies of one kit make each other begin epochs; the pauses between them grow. */
const claim_first_ms = 60_000;
const claim_max_ms = 86_400_000;
/** A random step, so that copies that begin at the same time choose different epochs. */
const claim_step_max = 16;

interface RolloverOptions {
  readonly numbering: Numbering;
  readonly client: Pick<StoreClient, 'beginEpoch'>;
  readonly observe: (epoch: number) => void;
  readonly log: OutboxLog;
  readonly now: () => number;
}

/**
 * New epochs in the running process: when the numbers of one are nearly used up, when the clock became right for the first
 * time, and when the cloud acknowledges numbers that this process has not given out. Then a copy of this kit is running, or
 * an old copy of its state was put back: in the old epoch, the cloud would take our values for older than those it has.
 */
export class EpochRollover {
  readonly #options: RolloverOptions;
  /** The epoch that the store has begun. */
  #stored: number;
  #under_way: Promise<number> | undefined;
  readonly #claim_pauses = backoff(claim_first_ms, claim_max_ms);
  #claims_from_ms = Number.NEGATIVE_INFINITY;
  /** A claim that could not be answered: no epoch above it is to be had. */
  #unreachable = Number.POSITIVE_INFINITY;

  constructor(options: RolloverOptions) {
    this.#options = options;
    this.#stored = options.numbering.epoch;
  }

  /** Begins an epoch of at least `min`; returns the new epoch. Concurrent calls share one request. */
  async begin(min: number): Promise<number> {
    this.#under_way ??= this.#begin(min).finally(() => (this.#under_way = undefined));
    return this.#under_way;
  }

  /** To be called periodically. */
  tick(): void {
    const { numbering, log } = this.#options;
    if (!numbering.runs_out && numbering.epoch === this.#stored) return;
    this.begin(0).catch((error: unknown) => log.warn({ reason: messageOf(error) }, texts.epoch_not_stored));
  }

  /** Handles an acknowledgement of the cloud. */
  claimed({ epoch, ranges }: Stored): void {
    const { numbering, log, now } = this.#options;
    if (epoch < numbering.epoch || epoch >= this.#unreachable || now() < this.#claims_from_ms) return;
    const [first, last] = numbering.used(epoch) ?? [1, 0];
    if (epoch === numbering.epoch && !ranges.some(([, hi]) => hi < first || hi > last)) return;
    this.#claims_from_ms = now() + this.#claim_pauses.next().value;
    log.warn({ epoch: numbering.epoch, acknowledged_epoch: epoch }, texts.epoch_claimed);
    void this.#answer(epoch);
  }

  async #answer(claimed: number): Promise<void> {
    try {
      const begun = await this.begin(claimed + 1 + Math.floor(Math.random() * claim_step_max));
      if (begun <= claimed) this.#unreachable = Math.min(this.#unreachable, claimed);
    } catch (error) {
      this.#options.log.warn({ reason: messageOf(error) }, texts.epoch_not_begun);
    }
  }

  async #begin(min: number): Promise<number> {
    const { numbering, client, observe, log } = this.#options;
    const before = numbering.epoch;
    // An epoch that was begun without the store has to be known there: the cloud will acknowledge it.
    const isUnknown = before > this.#stored;
    this.#stored = await client.beginEpoch(isUnknown ? before : Math.max(min, before + 1));
    if (this.#stored > numbering.epoch) {
      numbering.begin(this.#stored);
      log.info({ before, epoch: this.#stored }, texts.epoch_began);
    }
    observe(numbering.epoch);
    return numbering.epoch;
  }
}
