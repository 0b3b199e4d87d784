import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  hysteresis,
  type Method,
  ProbeCourse,
  judge,
  undecided,
} from '../../../../../drivers/links/probe/course.ts';
import { texts } from '../../../../../drivers/links/texts.ts';
import { forAll } from '../../../../support/for-all.ts';

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

  it('reports that its figures are those of TCP while TCP stands in', () => {
    const course = new ProbeCourse({ timeout_ms: 3_000 });
    play(course, 0, [up, up]);
    expect(course.read(2_000).note).toBeNull();
    play(course, 2, times(5, filtered));
    expect(course.read(7_000)).toMatchObject({ reachable: true, note: texts.tcp_stands_in });
  });

  it('counts a handshake that the kernel had to repeat as a loss, but not against the link', () => {
    const course = new ProbeCourse({ timeout_ms: 1_000 });
    play(course, 0, [up, up, ...times(5, filtered)]);
    for (let sequence = 7; sequence < 26; sequence += 1) {
      course.begin(sequence, 'target', sequence * 1_000);
      course.settle(sequence, 'icmp', { reason: 'no answer' });
      course.settle(sequence, 'tcp', { rtt_ms: 30, isRepeated: sequence % 4 === 1 });
    }
    expect(course.read(30_000)).toMatchObject({ reachable: true, method: 'tcp', packet_loss_pct: 25 });
  });

  it('never asks by TCP where that is switched off, and calls a link that answers no echo unreachable', () => {
    const course = new ProbeCourse({ timeout_ms: 3_000, tcp: false });
    const asked = play(course, 0, [up, up, ...times(20, filtered)]);
    expect(new Set(asked.flat())).toEqual(new Set(['icmp']));
    expect(course.read(30_000)).toMatchObject({ reachable: false, method: 'icmp', packet_loss_pct: 100 });
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

/** Plays a prober with time: probes to chosen targets; a loss becomes known at once or after the timeout. */
function playTargets(
  targets: readonly string[],
  {
    probes = 120,
    isAlive,
    isErrorImmediate = false,
  }: {
    readonly probes?: number;
    readonly isAlive: (target: string, at_ms: number) => boolean;
    readonly isErrorImmediate?: boolean;
  },
) {
  const timeout_ms = 3_000;
  const loss_known_ms = isErrorImmediate ? 0 : timeout_ms;
  const course = new ProbeCourse({ timeout_ms, targets: targets.length });
  const asked = targets.map((ip) => ({ ip, port: 443 }));
  const readings: { readonly at_ms: number; readonly reading: ReturnType<ProbeCourse['read']> }[] = [];
  let pending: { readonly due_ms: number; readonly settle: () => void }[] = [];
  let at_ms = 0;
  for (let sequence = 0; sequence < probes; sequence += 1) {
    const target = course.choose(sequence, asked)?.ip ?? '';
    const answered = isAlive(target, at_ms);
    const echo = answered ? { rtt_ms: 40 } : { reason: 'no answer' };
    const due_ms = at_ms + (answered ? 40 : loss_known_ms);
    for (const method of course.begin(sequence, target, at_ms))
      pending.push({ due_ms, settle: () => course.settle(sequence, method, echo) });
    const next_ms = at_ms + (course.in_doubt ? 1_000 : 2_000);
    const due = pending.filter((each) => each.due_ms <= next_ms);
    for (const each of due.toSorted((a, b) => a.due_ms - b.due_ms)) {
      each.settle();
      readings.push({ at_ms: each.due_ms, reading: course.read(each.due_ms) });
    }
    pending = pending.filter((each) => each.due_ms > next_ms);
    at_ms = next_ms;
  }
  return readings;
}

describe('the course of a link with dead targets', () => {
  const v6 = ['2001:db8::1', '2001:db8::2', '2001:db8::3', '2001:db8::4'];
  const v4 = ['192.0.2.1', '192.0.2.2'];

  it.each([
    ['four of six, listed last', [...v4, ...v6]],
    ['four of six, listed first', [...v6, ...v4]],
    ['two of four, in turn', ['192.0.2.1', '2001:db8::1', '192.0.2.2', '2001:db8::2']],
    ['one of two', ['192.0.2.1', '2001:db8::1']],
    ['seven of eight', [...v6, '198.51.100.1', '198.51.100.2', '198.51.100.3', '192.0.2.1']],
  ])('keeps a healthy link reachable and without loss: %s', (_, targets) => {
    for (const isErrorImmediate of [false, true]) {
      const readings = playTargets(targets, {
        isAlive: (target) => target.startsWith('192.'),
        isErrorImmediate,
      });
      const states = readings.map(({ reading }) => reading.reachable);
      expect(states.at(-1)).toBe(true);
      expect(states).not.toContain(false);
      const losses = readings.map(({ reading }) => reading.packet_loss_pct ?? 0);
      expect(Math.max(...losses)).toBe(0);
    }
  });

  it('keeps it reachable while targets die and return', () => {
    const readings = playTargets([...v4, ...v6], {
      isAlive: (target, at_ms) => target === v4[0] || at_ms < 60_000 || at_ms > 120_000,
      isErrorImmediate: true,
    });
    expect(readings.filter(({ reading }) => reading.reachable === false)).toEqual([]);
  });

  it('reports an outage that all targets share as soon as without dead targets, with the time of the last answer', () => {
    const readings = playTargets([...v6, ...v4], {
      isAlive: (target, at_ms) => v4.includes(target) && at_ms < 60_000,
    });
    const down = readings.find(({ reading }) => reading.reachable === false);
    expect(down?.at_ms).toBeLessThan(71_000);
    expect(down?.reading.since_ms).toBeGreaterThan(57_000);
    expect(down?.reading.since_ms).toBeLessThanOrEqual(60_000);
  });
});

describe('the verdict', () => {
  it('follows from the last probes alone when each is settled before the next', () => {
    forAll(fc.array(fc.boolean(), { minLength: 4, maxLength: 60 }), (answers) => {
      let verdict = undecided;
      answers.forEach((answered, sequence) => {
        verdict = judge(verdict, { sequence, answered }, hysteresis);
      });
      const allUp = answers.slice(-hysteresis.up_after).every(Boolean);
      const allDown = !answers.slice(-hysteresis.down_after).some(Boolean);
      const wrong = (allUp && verdict.reachable !== true) || (allDown && verdict.reachable !== false);
      expect(wrong).toBe(false);
    });
  });

  it('is not changed by a loss that is older than an answer', () => {
    forAll(fc.array(fc.nat(98), { maxLength: 20 }), (older) => {
      let verdict = undecided;
      for (const sequence of [99, 100]) verdict = judge(verdict, { sequence, answered: true }, hysteresis);
      const before = verdict;
      for (const sequence of older) verdict = judge(verdict, { sequence, answered: false }, hysteresis);
      expect(verdict).toEqual(before);
    });
  });
});
