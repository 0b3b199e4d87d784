/** Who keeps the history in order, and how often that is asked. */
import { describe, expect, it, vi } from 'vitest';
import { HistoryKeeper } from '../../../../src/service/history/keeper.ts';
import { gatewayRetention } from '../../../../src/service/history/retention.ts';
import { useFakeTime } from '../../../support/fake-time.ts';
import { recordingLog } from '../../../support/recording-log.ts';

useFakeTime();

const retention = gatewayRetention({ days: 7, max_mb: 100 });

describe('the keeper of the history', () => {
  it('works while its process has the lease, which it renews, and leaves everything alone while another one has it', async () => {
    const done: string[] = [];
    let isLeader = false;
    let asked = 0;
    const keeper = new HistoryKeeper(
      {
        store: {
          leadHistory: async () => {
            asked += 1;
            return isLeader;
          },
          compactHistory: async () => {
            done.push('divided');
            return 0;
          },
          rollUpHistory: async () => {
            done.push('figures');
            return false;
          },
          trimHistory: async () => {
            done.push('trimmed');
            return 0;
          },
          limitLanded: async () => 0,
        },
        retention: { read: async () => ({ retention, source: 'configuration' }) },
        log: recordingLog(),
        now: () => Date.now(),
      },
      { retention, every_ms: 1_000, divides_all: false },
    );
    const end = new AbortController();
    const running = keeper.run(end.signal);
    await vi.advanceTimersByTimeAsync(5_000);
    expect({ done, asked }).toEqual({ done: [], asked: 5 });
    isLeader = true;
    await vi.advanceTimersByTimeAsync(1_000);
    expect(done).toEqual(['divided', 'figures', 'trimmed']);
    await vi.advanceTimersByTimeAsync(15_000);
    // Every ten seconds.
    expect(asked).toBe(7);
    isLeader = false;
    await vi.advanceTimersByTimeAsync(10_000);
    done.length = 0;
    await vi.advanceTimersByTimeAsync(10_000);
    expect(done).toEqual([]);
    end.abort();
    await running;
  });
});
