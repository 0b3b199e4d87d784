import { describe, expect, it } from 'vitest';
import { Window } from '../../../../src/kit/uplink/sender.ts';

/** A link with a fixed round trip and rate, seen from the window: each batch waits for those before it. */
function simulate(link: { rtt_ms: number; bytes_per_ms: number }, batch_bytes: number, until_ms: number) {
  let now_ms = 0;
  const window = new Window(64, () => now_ms);
  const under_way: { bytes: number; sent_ms: number; arrives_ms: number }[] = [];
  let line_free_ms = 0;
  let delivered_bytes = 0;
  let queue_ms_max = 0;
  while (now_ms < until_ms) {
    while (window.open && window.open_for_backlog) {
      window.sent(batch_bytes, { backlog: true });
      line_free_ms = Math.max(line_free_ms, now_ms) + batch_bytes / link.bytes_per_ms;
      queue_ms_max = Math.max(queue_ms_max, line_free_ms - now_ms);
      under_way.push({ bytes: batch_bytes, sent_ms: now_ms, arrives_ms: line_free_ms + link.rtt_ms });
    }
    const next = under_way.shift();
    if (!next) break;
    now_ms = Math.max(now_ms, next.arrives_ms);
    delivered_bytes += next.bytes;
    window.acked(next.bytes, { backlog: true, delay_ms: now_ms - next.sent_ms });
  }
  return { window, bytes_per_ms: delivered_bytes / now_ms, queue_ms_max };
}

describe('the window of the uplink', () => {
  it('fills a narrow link with a long round trip without building a queue before live messages', () => {
    const { bytes_per_ms, queue_ms_max } = simulate({ rtt_ms: 600, bytes_per_ms: 32 }, 1_200, 60_000);
    expect(bytes_per_ms).toBeGreaterThan(32 * 0.8);
    expect(queue_ms_max).toBeLessThan(300);
  });

  it('opens wide on a fast link', () => {
    const { window } = simulate({ rtt_ms: 1, bytes_per_ms: 200 }, 3_000, 2_000);
    expect(window.batch_rows).toBe(200);
  });

  it.each([
    [1_000, 400],
    [4_000, 1_000],
  ])('requests batches that take a few milliseconds: at %d bytes a millisecond %d rows', (rate, rows) => {
    const { window } = simulate({ rtt_ms: 1, bytes_per_ms: rate }, 6_000, 2_000);
    expect(window.batch_rows).toBe(rows);
  });

  it('measures a link that waits for the disk after each batch', () => {
    let now_ms = 0;
    const window = new Window(64, () => now_ms);
    while (now_ms < 1_000) {
      window.sent(1_000, { backlog: true });
      now_ms += 1;
      window.acked(1_000, { backlog: true, delay_ms: 1 });
      now_ms += 4;
    }
    expect(window.batch_rows).toBe(400);
  });

  it('requests small batches while it is narrow, since a large one would itself be the queue', () => {
    const { window } = simulate({ rtt_ms: 600, bytes_per_ms: 8 }, 1_200, 60_000);
    expect(window.batch_rows).toBe(50);
  });

  it('keeps a quarter of its places for live messages while the backlog drains', () => {
    const window = new Window(20, () => 0);
    while (window.open && window.open_for_backlog) window.sent(10, { backlog: true });
    expect(window.in_flight).toBe(15);
    expect(window.open).toBe(true);
  });

  it('always sends one backlog message, however small the window of the broker is', () => {
    const window = new Window(1, () => 0);
    expect(window.open_for_backlog).toBe(true);
    window.sent(100_000, { backlog: true });
    expect(window.open).toBe(false);
    window.acked(100_000, { backlog: true, delay_ms: 10 });
    expect(window.open_for_backlog).toBe(true);
    expect(window.in_flight).toBe(0);
  });
});
