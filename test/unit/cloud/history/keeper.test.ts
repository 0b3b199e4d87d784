/** Who keeps the history in order, and how often that is asked. */
import { describe, expect, it, vi } from 'vitest';
import { HistoryKeeper } from '../../../../src/cloud/history/keeper.ts';
import { gatewayRetention } from '../../../../src/cloud/history/retention.ts';
import { useFakeTime } from '../../../support/fake-time.ts';
import { recordingLog } from '../../../support/recording-log.ts';

useFakeTime();

const retention = gatewayRetention({ days: 7, max_mb: 100 });

function keeperOf(store: Partial<ConstructorParameters<typeof HistoryKeeper>[0]['store']>): HistoryKeeper {
  return new HistoryKeeper(
    {
      store: {
        leadHistory: async () => true,
        compactHistory: async () => 0,
        rollUpHistory: async () => false,
        trimHistory: async () => 0,
        limitLanded: async () => 0,
        ...store,
      },
      retention: { read: async () => ({ retention, source: 'configuration' }) },
      log: recordingLog(),
      now: () => Date.now(),
    },
    { retention, every_ms: 1_000, divides_all: false },
  );
}

describe('the keeper of the history', () => {
  it('works while its process has the lease, which it renews, and leaves everything alone while another one has it', async () => {
    const done: string[] = [];
    let isLeader = false;
    let asked = 0;
    const keeper = keeperOf({
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
    });
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

  it('lets others have a turn between two of its calls', async () => {
    let turns = 0;
    const seen: number[] = [];
    const calls_max = 20;
    const goesOn = (): boolean => {
      seen.push(turns);
      return seen.length % calls_max !== 0;
    };
    const keeper = keeperOf({
      compactHistory: async () => Number(goesOn()),
      rollUpHistory: async () => goesOn(),
      trimHistory: async () => Number(goesOn()),
    });
    const end = new AbortController();
    const running = keeper.run(end.signal);
    const count = (): void => {
      turns += 1;
      if (seen.length < 3 * calls_max) setImmediate(count);
    };
    setImmediate(count);
    await vi.advanceTimersByTimeAsync(1_500);
    expect(seen).toHaveLength(3 * calls_max);
    // The first call of a kind follows the last one of another.
    expect(new Set(seen).size).toBe(3 * (calls_max - 1) + 1);
    end.abort();
    await running;
  });
});
