/** Pauses of kinds of channels: one probe after each, growing, and no effect on other kinds. */
import { describe, expect, it } from 'vitest';
import { KindPauses } from '../../../../../src/kit/outbox/live/gate.ts';

function lab(lengths = { first_ms: 1_000, max_ms: 8_000 }) {
  let now_ms = 0;
  const pauses = new KindPauses(() => now_ms, lengths);
  return {
    pauses,
    at: (ms: number) => (now_ms = ms),
    /** Milliseconds from now until the next probe is allowed. */
    wait: (channel: string): number => {
      const begin_ms = now_ms;
      while (!pauses.allows(channel)) now_ms += 10;
      return now_ms - begin_ms;
    },
  };
}

describe('KindPauses', () => {
  it('allows every channel while nothing is paused', () => {
    const { pauses } = lab();
    expect(pauses.allows('feed/a/gps')).toBe(true);
    expect(pauses.rests('feed/a/gps')).toBe(false);
    expect(pauses.probeDue('feed/a/gps')).toBe(Number.NEGATIVE_INFINITY);
    expect(pauses.kinds()).toEqual([]);
  });

  it('pauses all channels of a kind, and those of no other', () => {
    const { pauses } = lab();
    expect(pauses.pause('feed/a/gps')).toBe(true);
    expect(pauses.allows('feed/b/battery')).toBe(false);
    expect(pauses.allows('event/a/motion')).toBe(true);
    expect(pauses.allows('state')).toBe(true);
    expect(pauses.has('feed')).toBe(true);
    expect(pauses.kinds()).toEqual(['feed']);
  });

  it('does not begin a pause again that is under way', () => {
    const { pauses, at } = lab();
    pauses.pause('feed/a/gps');
    at(900);
    expect(pauses.pause('feed/b/gps')).toBe(false);
    at(1_300);
    expect(pauses.rests('feed/a/gps')).toBe(false);
  });

  it('lets one message through after the pause, and pauses the kind again, longer', () => {
    const { pauses, wait } = lab();
    pauses.pause('feed/a/gps');
    const lengths = Array.from({ length: 8 }, () => wait('feed/a/gps'));
    expect(pauses.allows('feed/a/gps')).toBe(false);
    expect(Math.max(...lengths)).toBeLessThanOrEqual(8_000 + 10);
    expect(lengths.at(-1)).toBeGreaterThan((lengths[0] ?? 0) * 2);
  });

  it('answers since when a probe is due without using it up', () => {
    const { pauses, at } = lab();
    pauses.pause('event/a/motion');
    expect(pauses.probeDue('event/a/motion')).toBeUndefined();
    at(20_000);
    const due_ms = pauses.probeDue('event/a/motion');
    expect(due_ms).toBeGreaterThan(0);
    expect(due_ms).toBeLessThan(20_000);
    expect(pauses.probeDue('event/a/motion')).toBe(due_ms);
    expect(pauses.rests('event/a/motion')).toBe(false);
    expect(pauses.allows('event/a/motion')).toBe(true);
    expect(pauses.rests('event/a/motion')).toBe(true);
  });

  it('resumes one kind for good, so that its next pause is a short one again', () => {
    const { pauses, wait } = lab();
    for (const channel of ['feed/a/gps', 'task/1']) pauses.pause(channel);
    for (let probe = 0; probe < 5; probe += 1) wait('feed/a/gps');
    pauses.resume('feed/b/attitude');
    expect(pauses.kinds()).toEqual(['task']);
    expect(pauses.allows('feed/a/gps')).toBe(true);
    pauses.pause('feed/a/gps');
    expect(wait('feed/a/gps')).toBeLessThanOrEqual(1_000 + 10);
  });

  it('lets every kind probe at once on request, without shortening the pauses that follow', () => {
    const { pauses, wait } = lab();
    for (const channel of ['feed/a/gps', 'event/a/motion']) pauses.pause(channel);
    for (let probe = 0; probe < 5; probe += 1) wait('feed/a/gps');
    pauses.probeAll();
    expect([pauses.allows('feed/a/gps'), pauses.allows('event/a/motion')]).toEqual([true, true]);
    expect(wait('feed/a/gps')).toBeGreaterThan(1_000);
  });

  it('forgets all pauses for a new broker', () => {
    const { pauses } = lab();
    for (const channel of ['feed/a/gps', 'event/a/motion', 'task/1']) pauses.pause(channel);
    pauses.clear();
    expect(pauses.kinds()).toEqual([]);
    expect(pauses.allows('task/1')).toBe(true);
  });
});
