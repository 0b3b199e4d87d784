/** Whether a dispatch is in time, by both clocks. */
import { describe, expect, it } from 'vitest';
import type { Stamp } from '../../../../src/platform/clock.ts';
import { isPast, judgeAgain, judgeTime } from '../../../../src/kit/tasks/timing.ts';

const now_ms = Date.UTC(2027, 5, 1, 12);
const stamp: Stamp = { time_ms: now_ms, mono_ms: 5_000, synced: true };
const unset: Stamp = { time_ms: Date.UTC(2000, 0, 1), mono_ms: 5_000, synced: false };
const first = { retained: false, duplicate: false };
const low = { risk_level: 'low', is_safety: false, timeout_ms: 10_000 } as const;
const medium = { ...low, risk_level: 'medium' } as const;
const disarm = { ...low, risk_level: 'high', is_safety: true } as const;

const at = (ms: number): string => new Date(now_ms + ms).toISOString();
const times = (created_ms: number, deadline_ms?: number) => ({
  created_at: at(created_ms),
  ...(deadline_ms === undefined ? {} : { deadline: at(deadline_ms) }),
});

describe('with a clock that is set', () => {
  it('the deadline of the dispatch counts, on the monotonic clock from its reception', () => {
    expect(judgeTime(times(-1_000, 3_000), low, stamp, first)).toEqual({
      deadline_ms: now_ms + 3_000,
      due_mono_ms: 8_000,
      created_mono_ms: 4_000,
    });
  });

  it('without a deadline the limit of the command counts, from the creation of the dispatch', () => {
    expect(judgeTime(times(-4_000), low, stamp, first)).toEqual({
      deadline_ms: now_ms + 6_000,
      due_mono_ms: 11_000,
      created_mono_ms: 1_000,
    });
  });

  it('a dispatch from the future has no more time than it was given, and is as old as its reception', () => {
    expect(judgeTime(times(60_000), medium, stamp, first)).toEqual({
      deadline_ms: now_ms + 70_000,
      due_mono_ms: 15_000,
      created_mono_ms: 5_000,
    });
  });

  it('a late dispatch is refused and told how late it is', () => {
    const refusal = "expired: its deadline passed 20 s ago by the kit's clock; command not sent";
    expect(judgeTime(times(-30_000), low, stamp, first)).toEqual({ refusal });
  });

  it('a deadline before the creation is refused', () => {
    expect(judgeTime(times(-1_000, -2_000), low, stamp, first)).toEqual({
      refusal: 'expired: its deadline is not after its creation; command not sent',
    });
  });

  it('more than five minutes in the future means that the clocks disagree, which only a low risk may ignore', () => {
    const refusal =
      'the clocks of the kit and the cloud disagree: the dispatch was created 301 s in the future; command not sent';
    expect(judgeTime(times(301_000), medium, stamp, first)).toEqual({ refusal });
    expect(judgeTime(times(301_000), disarm, stamp, first)).toEqual({ refusal });
    expect(judgeTime(times(301_000), low, stamp, first)).toMatchObject({ due_mono_ms: 15_000 });
    expect(judgeTime(times(299_000), medium, stamp, first)).toMatchObject({ due_mono_ms: 15_000 });
  });

  it('no task has more than a day', () => {
    expect(judgeTime(times(0, 400 * 86_400_000), low, stamp, first)).toMatchObject({
      due_mono_ms: 5_000 + 86_400_000,
    });
  });
});

describe('with a clock that is not set', () => {
  const refusal =
    "the kit's clock is not set, so whether this medium-risk command is stale is unknown; command not sent";

  it('what could do harm is refused', () => {
    expect(judgeTime(times(0), medium, unset, first)).toEqual({ refusal });
  });

  it('a low risk may run for as long as it was given, and it is unknown how old it is', () => {
    expect(judgeTime(times(0, 4_000), low, unset, first)).toEqual({
      deadline_ms: now_ms + 4_000,
      due_mono_ms: 9_000,
      created_mono_ms: null,
    });
  });

  it('a safety command runs when it comes for the first time, and not when it may be an old copy', () => {
    expect(judgeTime(times(0), disarm, unset, first)).toMatchObject({ due_mono_ms: 15_000 });
    expect(judgeTime(times(0), disarm, unset, { ...first, duplicate: true })).toHaveProperty('refusal');
  });

  it('a safety command that the broker may have kept while the kit was away is refused', () => {
    expect(judgeTime(times(0), disarm, unset, { ...first, queued: true })).toHaveProperty('refusal');
    expect(judgeTime(times(0), disarm, stamp, { ...first, queued: true })).toMatchObject({
      due_mono_ms: 15_000,
    });
  });

  it('a dispatch whose deadline lies before the creation of another one is late for certain', () => {
    const refusal =
      'expired: its deadline passed 50 s ago by dispatches that were created later; command not sent';
    expect(judgeTime(times(0), low, unset, { ...first, at_least_ms: now_ms + 60_000 })).toEqual({ refusal });
    expect(judgeTime(times(0), low, unset, { ...first, at_least_ms: now_ms + 9_000 })).toMatchObject({
      due_mono_ms: 15_000,
    });
  });

  it('a task made on the gateway is in time, since it is of the same clock', () => {
    const created_at = new Date(unset.time_ms).toISOString();
    expect(judgeTime({ created_at }, medium, unset, { ...first, local: true })).toMatchObject({
      due_mono_ms: 15_000,
    });
  });

  it('a task from the journal does not run', () => {
    expect(judgeAgain(times(0), now_ms + 9_000, unset)).toHaveProperty('refusal');
  });
});

describe('a task from the journal', () => {
  it('has what is left until its deadline', () => {
    expect(judgeAgain(times(-8_000), now_ms + 2_000, stamp)).toEqual({
      deadline_ms: now_ms + 2_000,
      due_mono_ms: 7_000,
      created_mono_ms: -3_000,
    });
  });

  it('without a journaled deadline has the default of commands', () => {
    expect(judgeAgain(times(-8_000), null, stamp)).toEqual({
      deadline_ms: now_ms + 2_000,
      due_mono_ms: 7_000,
      created_mono_ms: -3_000,
    });
  });

  it('is refused after its deadline', () => {
    expect(judgeAgain(times(-30_000), now_ms - 1, stamp)).toHaveProperty('refusal');
  });
});

describe('a waiting task', () => {
  const due = { deadline_ms: now_ms + 1_000, due_mono_ms: 6_000, created_mono_ms: 4_000 };

  it('is too late by either clock', () => {
    expect(isPast(due, stamp)).toBe(false);
    expect(isPast(due, { ...stamp, mono_ms: 6_000 })).toBe(true);
    expect(isPast(due, { ...stamp, time_ms: now_ms + 1_001 })).toBe(true);
  });

  it('is not judged by a time of day that is not set', () => {
    expect(isPast(due, { ...stamp, time_ms: now_ms + 1_001, synced: false })).toBe(false);
  });
});
