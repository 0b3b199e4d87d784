/** Assigns numbers and times to messages, and tracks when the clock became synced. */
import type { Position } from '../../contract/envelope.ts';
import type { Clock } from '../../platform/clock.ts';
import type { Draft } from '../api.ts';
import { first_state } from './live-state.ts';
import type { ClockOffset, Live } from './outgoing.ts';
import { positionOf, rowId, seq_max } from '../row.ts';

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
    const { from_disk_only = false } = draft;
    const since_ms = this.#now();
    return { row, since_ms, state: first_state, order: 0, from_disk_only };
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
