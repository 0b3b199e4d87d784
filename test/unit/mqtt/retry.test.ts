import { describe, expect, it } from 'vitest';
import { retryPauses } from '../../../src/mqtt/reconnect.ts';

const times = { first_ms: 4_000, max_ms: 60_000 };

function spans(random: number, count: number): number[] {
  const pauses = retryPauses(times, () => random);
  return Array.from({ length: count }, () => pauses.next().value);
}

describe('the pauses between attempts to connect', () => {
  it('are spread over a span that grows with the attempts', () => {
    expect(spans(0, 6)).toEqual([200, 200, 200, 200, 200, 200]);
    expect(spans(1, 6)).toEqual([4_000, 8_000, 16_000, 32_000, 60_000, 60_000]);
  });

  it('let no second of the first span have more than a third of ten thousand kits', () => {
    const kits = 10_000;
    const seconds = new Map<number, number>();
    for (let kit = 0; kit < kits; kit++) {
      const [pause_ms = 0] = spans(kit / kits, 1);
      const second = Math.floor(pause_ms / 1_000);
      seconds.set(second, (seconds.get(second) ?? 0) + 1);
    }
    expect(Math.max(...seconds.values())).toBeLessThan(kits / 3);
  });
});
