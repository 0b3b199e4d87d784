import { describe, expect, it } from 'vitest';
import { NoSubscribers } from '../../../../../src/kit/outbox/live/gate.ts';

describe('NoSubscribers', () => {
  it('allows one probe after each pause, and the pauses grow up to half a minute', () => {
    let now_ms = 0;
    const no_subscribers = new NoSubscribers(() => now_ms);
    no_subscribers.missing('feed/a/gps', 'feed');
    const probes: number[] = [];
    for (; now_ms < 200_000; now_ms += 50) if (no_subscribers.allows('feed/b/attitude')) probes.push(now_ms);
    const rests = probes.slice(1).map((at, index) => at - (probes[index] ?? 0));
    expect(probes[0]).toBeLessThanOrEqual(1_050);
    expect(Math.max(...rests)).toBeLessThanOrEqual(30_050);
    expect(rests.at(-1)).toBeGreaterThanOrEqual(15_000);
  });

  it('ends the pause as soon as a probe finds subscribers, and pauses only the kind without them', () => {
    const no_subscribers = new NoSubscribers(() => 0);
    no_subscribers.missing('feed/a/gps', 'feed');
    expect(no_subscribers.allows('event/a/motion')).toBe(true);
    expect(no_subscribers.rests('feed/a/gps')).toBe(true);
    expect(no_subscribers.kinds((lane) => lane === 'feed')).toEqual(['feed']);
    expect(no_subscribers.kinds((lane) => lane !== 'feed')).toEqual([]);
    no_subscribers.found('feed/b/gps');
    expect(no_subscribers.allows('feed/a/gps')).toBe(true);
    expect(no_subscribers.kinds(() => true)).toEqual([]);
  });
});
