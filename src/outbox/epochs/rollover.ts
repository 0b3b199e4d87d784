/**
 * New epochs in the running process: when the numbers of one are nearly used up, when the clock became right for the first
 * time, and when the cloud acknowledges numbers that this process has not given out. Then a copy of this kit is running, or
 * an old copy of its state was put back: in the old epoch, the cloud would take our values for older than those it has.
 */
import { messageOf } from '../../errors.ts';
import { backoff } from '../../platform/time.ts';
import type { OutboxLog } from '../api.ts';
import type { Stored } from '../live/in-flight.ts';
import { texts } from '../texts.ts';
import type { Numbering } from '../live/numbering.ts';

/** Two copies of one kit make each other begin epochs; the pauses between them grow. */
const claim_first_ms = 60_000;
const claim_max_ms = 86_400_000;
/** A random step, so that copies that begin at the same time choose different epochs. */
const claim_step_max = 16;

interface RolloverOptions {
  readonly numbering: Numbering;
  readonly begin: (min: number) => Promise<number>;
  readonly observe: (epoch: number) => void;
  readonly log: OutboxLog;
  readonly now: () => number;
}

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
    const { numbering, begin, observe, log } = this.#options;
    const before = numbering.epoch;
    // An epoch that was begun without the store has to be known there: the cloud will acknowledge it.
    const isUnknown = before > this.#stored;
    this.#stored = await begin(isUnknown ? before : Math.max(min, before + 1));
    if (this.#stored > numbering.epoch) {
      numbering.begin(this.#stored);
      log.info({ before, epoch: this.#stored }, texts.epoch_began);
    }
    observe(numbering.epoch);
    return numbering.epoch;
  }
}
