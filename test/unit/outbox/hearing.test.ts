import { describe, expect, it } from 'vitest';
import { Hearing } from '../../../src/outbox/hearing.ts';

describe('who listens at the broker', () => {
  it('lets one probe through after each rest, and the rests grow up to half a minute', () => {
    let now_ms = 0;
    const hearing = new Hearing(() => now_ms);
    hearing.unheard('feed/a/gps');
    const probes: number[] = [];
    for (; now_ms < 200_000; now_ms += 50) if (hearing.allows('feed/b/attitude')) probes.push(now_ms);
    const rests = probes.slice(1).map((at, index) => at - (probes[index] ?? 0));
    expect(probes[0]).toBeLessThanOrEqual(1_050);
    expect(Math.max(...rests)).toBeLessThanOrEqual(30_050);
    expect(rests.at(-1)).toBeGreaterThanOrEqual(15_000);
  });

  it('forgets the rest as soon as a probe is heard, and rests only the kind that nobody hears', () => {
    const hearing = new Hearing(() => 0);
    hearing.unheard('feed/a/gps');
    expect(hearing.allows('event/a/motion')).toBe(true);
    expect(hearing.rests('feed/a/gps')).toBe(true);
    expect(hearing.kinds()).toEqual(['feed']);
    hearing.heard('feed/b/gps');
    expect(hearing.allows('feed/a/gps')).toBe(true);
    expect(hearing.kinds()).toEqual([]);
  });
});
