/** How late the event loop is: the time that callbacks wait because others take theirs. */
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { every } from './time.ts';

/** Milliseconds over the last 10 to 20 s. */
export interface LagFigures {
  readonly mean_ms: number;
  readonly p99_ms: number;
  readonly max_ms: number;
}

export interface LoopLag {
  readonly figures: () => LagFigures;
}

/** A sample each: ten wake-ups a second take less than a thousandth of one core. */
const resolution_ms = 100;
const window_ms = 10_000;
const nothing: LagFigures = { mean_ms: 0, p99_ms: 0, max_ms: 0 };

/** Measures until `signal` aborts. Reading does not disturb other readers. */
export function measureLoopLag(signal: AbortSignal): LoopLag {
  const histogram = monitorEventLoopDelay({ resolution: resolution_ms });
  let before = nothing;
  histogram.enable();
  signal.addEventListener('abort', () => histogram.disable(), { once: true });
  every(window_ms, signal, () => {
    before = figuresOf(histogram);
    histogram.reset();
  });
  return {
    figures: () => {
      const now = figuresOf(histogram);
      return {
        mean_ms: Math.max(before.mean_ms, now.mean_ms),
        p99_ms: Math.max(before.p99_ms, now.p99_ms),
        max_ms: Math.max(before.max_ms, now.max_ms),
      };
    },
  };
}

/** The histogram holds whole intervals, in nanoseconds; the lag is what they had over their resolution. */
function figuresOf(histogram: ReturnType<typeof monitorEventLoopDelay>): LagFigures {
  if (histogram.count === 0) return nothing;
  const lag_ms = (interval_ns: number): number =>
    Math.max(0, Math.round(interval_ns / 1e5 - resolution_ms * 10) / 10);
  return {
    mean_ms: lag_ms(histogram.mean),
    p99_ms: lag_ms(histogram.percentile(99)),
    max_ms: lag_ms(histogram.max),
  };
}
