import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ProbeWindow } from '../../../../../drivers/links/probe/course.ts';
import { forAll } from '../../../../support/for-all.ts';

const timeout_ms = 3_000;
const interval_ms = 1_000;

/** Sends one probe after the other to targets in turn; `rtts` null: lost. Answers the window and the time after the last timeout. */
function played(rtts: readonly (number | null)[], { probes = 60, targets = 1 } = {}) {
  const window = new ProbeWindow({ probes, timeout_ms });
  rtts.forEach((rtt_ms, sequence) => {
    window.sent(sequence, `target ${sequence % targets}`, sequence * interval_ms);
    window.settled(sequence, rtt_ms === null ? 'lost' : { rtt_ms });
  });
  return { window, now_ms: rtts.length * interval_ms + timeout_ms };
}

const rtt = fc.option(fc.double({ min: 0, max: 3_000, noNaN: true }), { nil: null });
const mean = (values: readonly number[]) =>
  values.reduce((sum, value) => sum + value, 0) / Math.max(1, values.length);

describe('the window of probes', () => {
  it('computes the mean, the mean difference of neighbours, and the share of lost probes', () => {
    const { window, now_ms } = played([10, 20, null, 40, 30]);
    expect(window.figures(now_ms)).toEqual({ latency_ms: 25, jitter_ms: 10, packet_loss_pct: 20 });
  });

  it('reports no loss before five probes, and no time without an answer', () => {
    expect(played([10, 10, 10, 10]).window.figures(1e6).packet_loss_pct).toBeNull();
    const { window, now_ms } = played([null, null, null, null, null]);
    expect(window.figures(now_ms)).toEqual({ latency_ms: null, jitter_ms: null, packet_loss_pct: 100 });
  });

  it('compares times of the same target only', () => {
    const { window, now_ms } = played([10, 100, 10, 100, 10, 100], { targets: 2 });
    expect(window.figures(now_ms)).toEqual({ latency_ms: 55, jitter_ms: 0, packet_loss_pct: 0 });
  });

  it('excludes a target from the loss that never answers while another does, and names it', () => {
    const { window, now_ms } = played([10, null, 10, null, 10, null, 10, null, 10, null], { targets: 2 });
    expect(window.figures(now_ms).packet_loss_pct).toBe(0);
    expect(window.silentTargets()).toEqual(['target 1']);
  });

  it('does not count a probe for the loss before its time is over, answered or not', () => {
    const { window } = played([10, 10, 10, 10, 10]);
    expect(window.figures(4 * interval_ms + timeout_ms - 1).packet_loss_pct).toBeNull();
    expect(window.figures(4 * interval_ms + timeout_ms).packet_loss_pct).toBe(0);
  });

  it('counts an overdue probe as lost', () => {
    const window = new ProbeWindow({ probes: 60, timeout_ms });
    for (let sequence = 0; sequence < 5; sequence += 1) window.sent(sequence, 'a', sequence);
    expect(window.figures(timeout_ms + 5).packet_loss_pct).toBe(100);
  });

  it('keeps to the probes of the window, for any course', () => {
    forAll(
      fc.array(rtt, { minLength: 5, maxLength: 200 }),
      fc.integer({ min: 5, max: 60 }),
      (rtts, probes) => {
        const { window, now_ms } = played(rtts, { probes });
        const { latency_ms, jitter_ms, packet_loss_pct } = window.figures(now_ms);
        // Those whose time was not over when the last one was sent are kept beside the window.
        const kept = rtts.slice(-(probes + timeout_ms / interval_ms));
        const answers = kept.filter((time) => time !== null);
        const lost = kept.length - answers.length;
        expect(latency_ms === null).toBe(answers.length === 0);
        expect(latency_ms ?? 0).toBeCloseTo(mean(answers), 6);
        expect(packet_loss_pct).toBeCloseTo((100 * lost) / kept.length, 6);
        expect(jitter_ms ?? 0).toBeLessThanOrEqual(
          Math.max(0, ...answers) - Math.min(...answers, 3_000) + 1e-9 < 0 ? 0 : 3_000,
        );
      },
    );
  });

  it('ignores everything before the probe of its restart', () => {
    forAll(fc.array(rtt, { maxLength: 50 }), fc.array(rtt, { minLength: 5, maxLength: 50 }), (old, fresh) => {
      const both = played([...old, ...fresh]);
      both.window.dropBefore(old.length);
      const alone = played(fresh);
      expect(both.window.figures(both.now_ms)).toEqual(alone.window.figures(alone.now_ms));
    });
  });
});
