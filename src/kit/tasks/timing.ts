/**
 * Whether a task is in time. The time of day decides whether a dispatch is stale; from its reception on the monotonic clock
 * counts, so that a jump of the time of day neither extends a running task nor ends it.
 */
import type { TaskDispatch } from '../../contract/tasks.ts';
import { type Command, command_timeout_default_ms } from '../../toolkit/driver/command.ts';
import { notSent } from '../../platform/errors.ts';
import type { Stamp } from '../../platform/clock.ts';
import { clock_disagreement_ms, deadline_max_ms } from './limits.ts';
import { texts } from './texts.ts';

export interface Due {
  /** UTC, as given in the dispatch. */
  readonly deadline_ms: number;
  /** The same on this boot's monotonic clock. */
  readonly due_mono_ms: number;
  /** When the task was created, on the same clock. Null: unknown, since the clock was not set. */
  readonly created_mono_ms: number | null;
}
export type Judged<T> = T | { readonly refusal: string };

/** How a dispatch came. */
export interface Delivery {
  /** A retained copy that the broker sent at connect. */
  readonly retained: boolean;
  /** MQTT's DUP flag: the broker may have sent it before. */
  readonly duplicate: boolean;
  /** The broker may have kept it while the kit was away. */
  readonly queued?: boolean;
  /** Made on the gateway itself: `created_at` is of the kit's own clock. */
  readonly local?: boolean;
  /** UTC that it is at least, regardless of the kit's clock: other dispatches were created then. */
  readonly at_least_ms?: number;
}

type Times = Pick<TaskDispatch, 'created_at' | 'deadline'>;
type Risk = Pick<Command, 'risk_level' | 'timeout_ms'> & { readonly is_safety: boolean };

/** Until when a dispatch that arrives now may run, or why it is refused. */
export function judgeTime(times: Times, command: Risk, stamp: Stamp, delivery: Delivery): Judged<Due> {
  const created_ms = Date.parse(times.created_at);
  const deadline_ms = deadlineOf(times, command.timeout_ms);
  const span_ms = deadline_ms - created_ms;
  if (span_ms <= 0) return { refusal: notSent(texts.expired_at_creation) };
  if (!stamp.synced && delivery.local !== true) {
    const late_ms = (delivery.at_least_ms ?? Number.NEGATIVE_INFINITY) - deadline_ms;
    if (late_ms > 0) return { refusal: expired(late_ms, 'by dispatches that were created later') };
    const refusal = refusalWithoutClock(command, delivery);
    return refusal ? { refusal } : due({ deadline_ms, left_ms: span_ms, created_ms: null }, stamp);
  }
  const ahead_ms = created_ms - stamp.time_ms;
  if (ahead_ms > clock_disagreement_ms && command.risk_level !== 'low') {
    return {
      refusal: notSent(texts.clocks_disagree(seconds(ahead_ms))),
    };
  }
  return dueFrom(deadline_ms, created_ms, stamp);
}

/** Until when a task from the journal may still run. Its monotonic clock may have been another boot's. */
export function judgeAgain(times: Times, journaled_ms: number | null, stamp: Stamp): Judged<Due> {
  if (!stamp.synced) {
    return {
      refusal: notSent(texts.expired_unknown),
    };
  }
  const deadline_ms = journaled_ms ?? deadlineOf(times, command_timeout_default_ms);
  return dueFrom(deadline_ms, Date.parse(times.created_at), stamp);
}

/**
 * Whether a waiting task is too late to start. Both clocks are asked: the monotonic one stands still while the machine
 * sleeps, and a time of day that was set meanwhile may show that the dispatch was stale.
 */
export function isPast(due: Due, stamp: Stamp): boolean {
  return stamp.mono_ms >= due.due_mono_ms || (stamp.synced && stamp.time_ms > due.deadline_ms);
}

/** The times of day cannot be compared: what could do harm when it is stale is not carried out. */
function refusalWithoutClock(command: Risk, delivery: Delivery): string | undefined {
  const fresh_safety = command.is_safety && !delivery.duplicate && delivery.queued !== true;
  if (command.risk_level === 'low' || fresh_safety) return undefined;
  return notSent(texts.clock_not_set(command.risk_level));
}

/** A dispatch never has more time than it was given, even when the cloud's clock is ahead of the kit's. */
function dueFrom(deadline_ms: number, created_ms: number, stamp: Stamp): Judged<Due> {
  const left_ms = Math.min(deadline_ms - stamp.time_ms, deadline_ms - created_ms);
  if (left_ms > 0) return due({ deadline_ms, left_ms, created_ms }, stamp);
  return { refusal: expired(-left_ms, "by the kit's clock") };
}

function expired(late_ms: number, by: string): string {
  return notSent(texts.expired_ago(seconds(late_ms), by));
}

interface Span {
  readonly deadline_ms: number;
  readonly left_ms: number;
  readonly created_ms: number | null;
}

/** A task from the future is as old as its reception. */
function due({ deadline_ms, left_ms, created_ms }: Span, { mono_ms, time_ms }: Stamp): Due {
  return {
    deadline_ms,
    due_mono_ms: mono_ms + Math.min(left_ms, deadline_max_ms),
    created_mono_ms: created_ms === null ? null : mono_ms - Math.max(0, time_ms - created_ms),
  };
}

function deadlineOf({ created_at, deadline }: Times, timeout_ms: number): number {
  return deadline ? Date.parse(deadline) : Date.parse(created_at) + timeout_ms;
}

function seconds(ms: number): string {
  return `${Math.round(ms / 1000)} s`;
}
