/** A message as the outbox keeps it, and the number that names it in memory and on disk. */
import type { Position } from '../../contract/envelope.ts';
import type { Lane } from '../../contract/lanes.ts';

/**
 * `epoch * seq_max + seq`: one integer that orders the rows of all epochs and is the primary key of every lane's table,
 * so that no second index is written. Both halves fit a double exactly: 2^33 messages in an epoch, 2^20 epochs.
 */
export type RowId = number;
export const seq_max = 2 ** 33;

export function rowId({ epoch, seq }: Position): RowId {
  return epoch * seq_max + seq;
}

export function positionOf(id: RowId): Position {
  return { epoch: Math.floor(id / seq_max), seq: id % seq_max };
}

export interface Row {
  readonly id: RowId;
  readonly lane: Lane;
  readonly channel: string;
  /** UTC of the observation by the clock at that time. */
  readonly time_ms: number;
  /** Time since boot when it was observed, if the clock was not to be trusted then; else null. */
  readonly mono_ms: number | null;
  /** The data as JSON text; `null` clears a retained topic. */
  readonly body: string;
}

/** A time as a message can carry it. What no calendar has, from a broken page or a broken clock, is 1970 and spoils nothing else. */
export function soundTime(time_ms: number): number {
  return time_ms >= 0 && time_ms < year_10000_ms ? Math.round(time_ms) : 0;
}
const year_10000_ms = Date.UTC(10_000, 0);

/** A number as a column of integers takes it: one odd number must not make a whole commit fail. */
export function wholeNumber(value: number): number {
  const rounded = Math.round(value);
  return Number.isSafeInteger(rounded) ? rounded : 0;
}

/** What a row costs against the limits: its text and a fixed share for keys and page overhead. */
export function rowBytes(row: Pick<Row, 'channel' | 'body'>): number {
  return row.body.length + row.channel.length + row_overhead_bytes;
}
const row_overhead_bytes = 40;

const hour_ms = 3_600_000;
const first_hour_ms = Date.UTC(2026, 0, 1);

/**
 * The least epoch of a start. A kit that starts less than once an hour on average stays behind that, so a kit that was
 * reinstalled, or got an old copy of its state back, begins above all epochs before, and 2^20 epochs last for a century.
 * 0 when the clock is not set.
 */
export function hoursSince2026(now_ms: number): number {
  return Math.max(0, Math.floor((now_ms - first_hour_ms) / hour_ms));
}
