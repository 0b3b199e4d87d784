/** Latency and loss of the last minute from the dish's ring of seconds. Pure. */
import type { DishHistory } from './api/messages.ts';

/** A shorter window jumps, a longer one hides an outage that just began. */
export const window_s = 60;

export interface Quality {
  /** Mean of the seconds with an answer; undefined when no second had one. */
  readonly latency_ms: number | undefined;
  readonly packet_loss_pct: number | undefined;
}

/**
 * Only seconds since the dish booted count, what stands in the ring beyond is no sample. A second that lost all its pings
 * has no latency, whatever number stands there.
 */
export function qualityOf({ current, drop_rate, latency_ms }: DishHistory): Quality {
  const drops: number[] = [];
  const latencies: number[] = [];
  const length = drop_rate.length;
  for (let back = 1; back <= Math.min(window_s, length, current); back += 1) {
    const index = (current - back) % length;
    const drop = drop_rate[index] ?? Number.NaN;
    if (!(drop >= 0 && drop <= 1)) continue;
    drops.push(drop);
    const latency = latency_ms[index] ?? Number.NaN;
    if (drop < 1 && latency > 0 && latency < Number.POSITIVE_INFINITY) latencies.push(latency);
  }
  const lost = mean(drops);
  return {
    latency_ms: rounded(mean(latencies), 1),
    packet_loss_pct: rounded(lost === undefined ? undefined : lost * 100, 10),
  };
}

function mean(values: readonly number[]): number | undefined {
  if (values.length === 0) return undefined;
  return values.reduce((sum, each) => sum + each, 0) / values.length;
}

function rounded(value: number | undefined, parts: number): number | undefined {
  return value === undefined ? undefined : Math.round(value * parts) / parts;
}
