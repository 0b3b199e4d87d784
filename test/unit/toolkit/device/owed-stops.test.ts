/** Owed stops: recorded before a movement, kept until confirmed, never sent into a movement in progress. */
import { describe, expect, it } from 'vitest';
import { OwedStops } from '../../../../src/toolkit/device/owed-stops.ts';

function owedStops(owed: readonly number[] = []) {
  const saved: (readonly number[])[] = [];
  const stops = new OwedStops<number>({ owed, save: async (list) => void saved.push(list) });
  return { stops, saved };
}

describe('OwedStops', () => {
  it('saves each change once', async () => {
    const { stops, saved } = owedStops();
    await stops.owe(1);
    await stops.owe(1);
    await stops.owe(2);
    await stops.confirm(1);
    await stops.confirm(1);
    expect(saved).toEqual([[1], [1, 2], [2]]);
  });

  it('lets wait until something is owed, or until the signal aborts', async () => {
    const { stops } = owedStops();
    const ending = new AbortController();
    const order: string[] = [];
    const first = stops.untilOwed(new AbortController().signal).then(() => order.push('owed'));
    const second = stops.untilOwed(ending.signal).then(() => order.push('over'));
    await Promise.resolve();
    expect(order).toEqual([]);
    ending.abort();
    await second;
    await stops.owe(1);
    await first;
    await stops.untilOwed(new AbortController().signal);
    expect(order).toEqual(['over', 'owed']);
  });

  it('settles what an earlier run owed, and keeps what fails', async () => {
    const { stops, saved } = owedStops([1, 2]);
    const settling = stops.settle(async (motor) => {
      if (motor === 2) throw new Error('no answer');
      await stops.confirm(motor);
    });
    await expect(settling).rejects.toThrow('no answer');
    expect(saved).toEqual([[2]]);
  });

  it('leaves a motor alone while it is in a movement', async () => {
    const { stops } = owedStops([1]);
    const end = Promise.withResolvers<void>();
    const movement = stops.during(1, async () => end.promise);
    const stopped: number[] = [];
    const stop = async (motor: number): Promise<void> => void stopped.push(motor);
    await stops.settle(stop);
    expect(stopped).toEqual([]);
    const idle = stops.idle();
    end.resolve();
    await Promise.all([movement, idle]);
    await stops.settle(stop);
    expect(stopped).toEqual([1]);
  });
});
