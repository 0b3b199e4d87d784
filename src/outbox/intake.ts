/** Gives messages their number and their time, and knows when the clock became right. */
import type { Position } from '../contract/envelope.ts';
import type { Clock } from '../platform/clock.ts';
import { InvariantBroken } from '../errors.ts';
import type { Draft } from './api.ts';
import type { ClockOffset, Live } from './parcel.ts';
import { positionOf, rowId, seq_max } from './row.ts';

export class Intake {
  readonly epoch: number;
  readonly #clock: Clock;
  readonly #now: () => number;
  #next_seq = 1;
  #offset_ms: ClockOffset;

  constructor(epoch: number, clock: Clock, now: () => number) {
    this.epoch = epoch;
    this.#clock = clock;
    this.#now = now;
  }

  /** UTC minus time since boot, once the clock can be trusted. */
  get offset_ms(): ClockOffset {
    return this.#offset_ms;
  }

  number(draft: Draft): Live {
    if (this.#next_seq >= seq_max) throw new InvariantBroken('the epoch has no sequence numbers left');
    const id = rowId({ epoch: this.epoch, seq: this.#next_seq });
    this.#next_seq += 1;
    const { time_ms, mono_ms, synced } = draft.stamp ?? this.#clock.stamp();
    const body = JSON.stringify(draft.data);
    const row = {
      id,
      lane: draft.lane,
      channel: draft.channel,
      time_ms,
      mono_ms: synced ? null : mono_ms,
      body,
    };
    return { row, since_ms: this.#now(), disk: 'no', place: 'nowhere', acked: false };
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
