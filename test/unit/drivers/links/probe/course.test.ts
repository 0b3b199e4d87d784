import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { hysteresis, type Method, ProbeCourse } from '../../../../../drivers/links/probe/course.ts';
import { judge, undecided } from '../../../../../drivers/links/probe/verdict.ts';
import { texts } from '../../../../../drivers/links/texts.ts';

/** Plays probes one after the other: for each, what ICMP and TCP would say. Answers which methods were asked each time. */
function play(
  course: ProbeCourse,
  from: number,
  net: readonly { readonly icmp: number | null; readonly tcp: number | null }[],
) {
  return net.map((says, at) => {
    const sequence = from + at;
    const methods = course.begin(sequence, 'target', sequence * 1_000);
    for (const method of methods) {
      const rtt_ms = says[method];
      course.settle(sequence, method, rtt_ms === null ? { reason: 'no answer' } : { rtt_ms });
    }
    return methods;
  });
}
const times = <T>(count: number, value: T): T[] => Array.from({ length: count }, () => value);
const up = { icmp: 20, tcp: 30 };
const down = { icmp: null, tcp: null };
const filtered = { icmp: null, tcp: 30 };

describe('the course of a link', () => {
  it('is unknown, reachable with the second answer, unreachable with the fourth loss in a row', () => {
    const course = new ProbeCourse({ timeout_ms: 3_000 });
    expect(course.read(0)).toMatchObject({ reachable: null, method: 'none', packet_loss_pct: null });
    play(course, 0, [up]);
    expect(course.read(0).reachable).toBeNull();
    play(course, 1, [up]);
    expect(course.read(0).reachable).toBe(true);
    play(course, 2, times(3, down));
    expect(course.read(0).reachable).toBe(true);
    play(course, 5, [down]);
    expect(course.read(0)).toMatchObject({
      reachable: false,
      latency_ms: null,
      packet_loss_pct: 100,
      reason: 'no answer',
    });
  });

  it('leaves the first time after a recovery out of the figures', () => {
    const course = new ProbeCourse({ timeout_ms: 3_000 });
    play(course, 0, [up, up, ...times(4, down), { icmp: 1_500, tcp: null }, up, up]);
    expect(course.read(9_000)).toMatchObject({ reachable: true, latency_ms: 20, jitter_ms: 0 });
  });

  it('probes by ICMP alone while it is answered, also on a bad link', () => {
    const course = new ProbeCourse({ timeout_ms: 3_000 });
    const asked = play(course, 0, [up, up, { ...up, icmp: null }, up, { ...up, icmp: null }, up]);
    expect(asked).toEqual(times<Method[]>(6, ['icmp']));
  });

  it('falls back to TCP when only ICMP is silent, and returns when it is answered again', () => {
    const course = new ProbeCourse({ timeout_ms: 3_000 });
    play(course, 0, [up, up, ...times(5, filtered)]);
    expect(course.read(7_000)).toMatchObject({ reachable: true, method: 'tcp', latency_ms: 30 });
    const asked = play(course, 7, times(14, up));
    expect(asked.filter((methods) => methods.length === 2)).toHaveLength(2);
    expect(course.read(21_000)).toMatchObject({ reachable: true, method: 'icmp', latency_ms: 20 });
  });

  it('keeps ICMP when a link recovers and TCP, which retransmits, is answered first', () => {
    const course = new ProbeCourse({ timeout_ms: 3_000 });
    play(course, 0, [up, up, ...times(4, down)]);
    // On their way when the link comes back: the echoes are lost, the handshakes are repeated.
    for (const sequence of [6, 7, 8]) course.begin(sequence, 'target', sequence * 1_000);
    for (const sequence of [6, 7, 8]) course.settle(sequence, 'tcp', { rtt_ms: 900 });
    for (const sequence of [6, 7, 8]) course.settle(sequence, 'icmp', { reason: 'no answer' });
    expect(course.method).toBe('icmp');
    play(course, 9, [up, up]);
    expect(course.read(20_000)).toMatchObject({ reachable: true, method: 'icmp', latency_ms: 20 });
  });

  it('keeps TCP while the process may not use ICMP, and reports why', () => {
    const course = new ProbeCourse({ timeout_ms: 3_000 });
    course.begin(0, 'target', 0);
    course.settle(0, 'icmp', { reason: 'not allowed', refused: true });
    expect(course.read(0)).toMatchObject({ reachable: null, reason: 'not allowed' });
    play(course, 1, times(3, { icmp: null, tcp: 30 }));
    expect(course.read(4_000)).toMatchObject({ reachable: true, method: 'tcp', latency_ms: 30 });
    expect(course.icmp_refusal).toBe('not allowed');
  });

  it('ignores answers to probes of a device that was removed', () => {
    const course = new ProbeCourse({ timeout_ms: 3_000 });
    for (const sequence of [0, 1, 2]) course.begin(sequence, 'target', sequence);
    course.lose(3, { reason: texts.device_gone, reachable: false });
    for (const sequence of [0, 1, 2]) course.settle(sequence, 'icmp', { rtt_ms: 5 });
    expect(course.read(10)).toMatchObject({
      reachable: false,
      latency_ms: null,
      reason: texts.device_gone,
    });
  });
});

describe('the verdict', () => {
  it('follows from the last probes alone when each is settled before the next', () => {
    fc.assert(
      fc.property(fc.array(fc.boolean(), { minLength: 4, maxLength: 60 }), (answers) => {
        let verdict = undecided;
        answers.forEach((answered, sequence) => {
          verdict = judge(verdict, { sequence, answered }, hysteresis);
        });
        const allUp = answers.slice(-hysteresis.up_after).every(Boolean);
        const allDown = !answers.slice(-hysteresis.down_after).some(Boolean);
        const wrong = (allUp && verdict.reachable !== true) || (allDown && verdict.reachable !== false);
        expect(wrong).toBe(false);
      }),
    );
  });

  it('is not changed by a loss that is older than an answer', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(98), { maxLength: 20 }), (older) => {
        let verdict = undecided;
        for (const sequence of [99, 100]) verdict = judge(verdict, { sequence, answered: true }, hysteresis);
        const before = verdict;
        for (const sequence of older) verdict = judge(verdict, { sequence, answered: false }, hysteresis);
        expect(verdict).toEqual(before);
      }),
    );
  });
});
