import { describe, expect, it } from 'vitest';
import { Resending } from '../../../../../src/kit/outbox/live/cloud-acks.ts';

/** Plays seconds; answers at which of them messages were sent again. `acks`: seconds at which the cloud released so many. */
function play(
  seconds: number,
  rows: (at_s: number) => number,
  acks: readonly number[] = [],
  released = 1,
): number[] {
  let now_ms = 0;
  const resending = new Resending(() => now_ms);
  const rounds: number[] = [];
  for (let at_s = 1; at_s <= seconds; at_s += 1) {
    now_ms = at_s * 1_000;
    if (acks.includes(at_s)) resending.acked(released);
    if (resending.begin() === undefined) continue;
    const resent = rows(at_s);
    resending.resent(resent);
    if (resent > 0) rounds.push(at_s);
  }
  return rounds;
}

describe('Resending', () => {
  it('backs off from a minute to half an hour while the cloud is silent', () => {
    const rounds = play(86_400, () => 100);
    const pauses = rounds.slice(1).map((at, index) => at - (rounds[index] ?? 0));
    expect(pauses.slice(0, 3)).toEqual([60, 120, 240]);
    expect(pauses.at(-1)).toBe(900);
    expect(rounds.length).toBeLessThan(110);
  });

  it('resumes at once when the cloud acknowledges again after a silence', () => {
    const rounds = play(7_200, () => 100, [6_000]);
    expect(rounds).toContain(6_000);
  });

  it('does not resume for each acknowledgement of a cloud that never names the waiting messages', () => {
    const acks = Array.from({ length: 7_200 }, (_, at_s) => at_s);
    expect(play(7_200, () => 100, acks).length).toBeLessThan(20);
    const after_silences = acks.filter((at_s) => at_s % 100 === 0);
    expect(play(7_200, () => 100, after_silences, 0).length).toBeLessThan(20);
  });

  it('comes back to a minute when sending again has helped', () => {
    const acks = Array.from({ length: 720 }, (_, n) => n * 10);
    const rounds = play(7_200, (at_s) => (at_s < 1_000 || at_s > 7_000 ? 100 : 0), acks);
    expect(rounds.filter((at_s) => at_s > 7_000).length).toBeGreaterThan(1);
  });
});
