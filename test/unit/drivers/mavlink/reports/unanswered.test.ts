/** How long the answer to a copy of a command may be late. */
import { describe, expect, it } from 'vitest';
import { UnansweredCopies } from '../../../../../drivers/mavlink/reports/unanswered.ts';

const [arm, near, far] = [400, { isFar: false }, { isFar: true }];

describe('A copy of a command without an answer', () => {
  it('may have a late answer for 10 s, and over a satellite for 200 s', () => {
    const copies = new UnansweredCopies();
    copies.sent(arm, 1_000);
    // Until then its answer is expected, and counted.
    expect([copies.count(arm, 4_000), copies.isAmbiguous(arm, 4_000, near)]).toEqual([1, false]);
    expect([copies.count(arm, 6_000), copies.isAmbiguous(arm, 6_000, near)]).toEqual([0, true]);
    expect(copies.isAmbiguous(20, 6_000, near)).toBe(false);
    expect([copies.isAmbiguous(arm, 12_000, near), copies.isAmbiguous(arm, 12_000, far)]).toEqual([
      false,
      true,
    ]);
    expect(copies.isAmbiguous(arm, 202_000, far)).toBe(false);
  });

  it('has none any more once it was answered', () => {
    const copies = new UnansweredCopies();
    copies.sent(arm, 1_000);
    copies.answered(arm);
    expect(copies.isAmbiguous(arm, 6_000, near)).toBe(false);
  });
});
