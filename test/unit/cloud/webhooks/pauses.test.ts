import { describe, expect, it } from 'vitest';
import { messagePause, receiverPause, usual_pauses } from '../../../../src/cloud/webhooks/pauses.ts';

const least = { random: () => 0 };
const most = { random: () => 1 };

describe('Pauses between attempts', () => {
  it('grow, with jitter, and end after ten attempts', () => {
    const pauses = usual_pauses.message_ms.map((_, n) => messagePause(n + 1, least));
    expect(pauses).toEqual([...usual_pauses.message_ms]);
    expect([...pauses].sort((a, b) => Number(a) - Number(b))).toEqual(pauses);
    expect(messagePause(1, most)).toBe(6_000);
    expect(messagePause(10, least)).toBeUndefined();
  });

  it('are as long as the receiver asks for, up to an hour', () => {
    expect(messagePause(1, { ...least, asked_ms: 60_000 })).toBe(60_000);
    expect(messagePause(1, { ...least, asked_ms: 86_400_000 })).toBe(3_600_000);
    expect(receiverPause(1, { ...least, asked_ms: 600_000 })).toBe(600_000);
  });

  it('of a receiver double up to five minutes', () => {
    expect([1, 2, 3, 20].map((failures) => receiverPause(failures, least))).toEqual([
      5_000, 10_000, 20_000, 300_000,
    ]);
  });
});
