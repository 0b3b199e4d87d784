import { describe, expect, it } from 'vitest';
import { Budget } from '../../../../src/kit/uplink/sender.ts';

describe('the bandwidth budget of the backlog', () => {
  it('sends at the configured rate over time, whatever the size of the messages', () => {
    let now_ms = 0;
    const budget = new Budget(() => now_ms);
    let bytes = 0;
    for (; now_ms < 100_000; now_ms += 10) {
      while (budget.allows(64)) {
        budget.spend(1_500);
        bytes += 1_500;
      }
    }
    expect(bytes / 100).toBeGreaterThan(8_000 * 0.97);
    expect(bytes / 100).toBeLessThan(8_000 * 1.03);
  });

  it('does not save up more than two seconds of a pause', () => {
    let now_ms = 0;
    const budget = new Budget(() => now_ms);
    expect(budget.allows(8)).toBe(false);
    now_ms = 3_600_000;
    let bytes = 0;
    while (budget.allows(8)) {
      budget.spend(100);
      bytes += 100;
    }
    expect(bytes).toBe(2_000);
  });

  it('does not limit the rate at 0', () => {
    const budget = new Budget(() => 0);
    budget.spend(1e9);
    expect(budget.allows(0)).toBe(true);
  });
});
