/** Keeps one driver running: the only retry loop for drivers, and the only place that says that a device is away or back. */
import type { DriverLog } from '../driver/driver.ts';
import { DeviceRejected, messageOf } from '../errors.ts';
import { aborted, backoff, sleep, within } from '../platform/time.ts';

export type DriverState =
  /** First run, nothing heard from the device yet. */
  | { readonly state: 'starting' }
  | { readonly state: 'up' }
  /** `retry_ms` from now it is tried again. */
  | { readonly state: 'down'; readonly reason: string; readonly retry_ms: number }
  /** The device refuses us; only a new configuration helps. */
  | { readonly state: 'rejected'; readonly reason: string }
  | { readonly state: 'stopped' }
  /** It was told to stop and did not; nobody listens to it any more. */
  | { readonly state: 'hung'; readonly reason: string };

export interface Supervised {
  readonly log: DriverLog;
  /** Aborts when the driver must stop for good. */
  readonly signal: AbortSignal;
  /** One run of the driver. `signal` aborts when this run must end; `onUp` tells that the device answered. */
  readonly run: (signal: AbortSignal, onUp: () => void) => Promise<void>;
  readonly onState: (state: DriverState) => void;
}

const retry_first_ms = 1_000;
const retry_max_ms = 60_000;
/** A device that answered for less than this was not back: the pauses go on growing. */
const stable_ms = 30_000;
/** Time that a driver has to end after its signal aborted. */
export const stop_deadline_ms = 3_000;

/** Runs the driver again and again until `signal` aborts or the device rejects us. Never rejects itself. */
export async function supervise({ log, signal, run, onState }: Supervised): Promise<void> {
  let pauses = backoff(retry_first_ms, retry_max_ms);
  const outage = outageLog(log);
  onState({ state: 'starting' });
  while (!signal.aborted) {
    let up_since_ms: number | undefined;
    const ending = await runOnce(run, signal, () => {
      if (up_since_ms !== undefined) return;
      up_since_ms = performance.now();
      outage.over();
      onState({ state: 'up' });
    });
    if (ending.kind === 'hung') {
      const reason = `did not stop within ${stop_deadline_ms / 1000} s`;
      log.error({ deadline_ms: stop_deadline_ms }, 'driver did not stop in time and is abandoned');
      onState({ state: 'hung', reason });
      return;
    }
    if (signal.aborted) break;
    const reason = ending.kind === 'failed' ? messageOf(ending.error) : 'driver ended before it was stopped';
    if (ending.kind === 'failed' && ending.error instanceof DeviceRejected) {
      log.error({ reason }, 'device refuses the connector; waiting for a new configuration');
      onState({ state: 'rejected', reason });
      return;
    }
    if (up_since_ms !== undefined && performance.now() - up_since_ms >= stable_ms) {
      pauses = backoff(retry_first_ms, retry_max_ms);
    }
    const retry_ms = Math.round(pauses.next().value);
    outage.begins(
      { reason, retry_ms, ...(ending.kind === 'failed' ? { err: ending.error } : {}) },
      up_since_ms,
    );
    onState({ state: 'down', reason, retry_ms });
    await sleep(retry_ms, signal);
  }
  onState({ state: 'stopped' });
}

type Ending = { readonly kind: 'ended' | 'hung' } | { readonly kind: 'failed'; readonly error: unknown };

/**
 * One run under a signal of its own, so that nothing a run leaves behind stays on the long-lived signal, and so that
 * what a failed run forgot to close hears an abort as well.
 */
async function runOnce(run: Supervised['run'], signal: AbortSignal, onUp: () => void): Promise<Ending> {
  const stop = new AbortController();
  const onAbort = (): void => stop.abort(signal.reason);
  signal.addEventListener('abort', onAbort, { once: true });
  // An async function, so that a driver that throws before its first await fails like any other.
  const begin = async (): Promise<void> => run(stop.signal, onUp);
  const settled: Promise<Ending> = begin().then(
    () => ({ kind: 'ended' }),
    (error: unknown) => ({ kind: 'failed', error }),
  );
  try {
    const early = await Promise.race([settled, aborted(stop.signal)]);
    return early ?? (await within(stop_deadline_ms, settled)) ?? { kind: 'hung' };
  } finally {
    signal.removeEventListener('abort', onAbort);
    stop.abort();
  }
}

/** Logs each outage once when it begins and once when it is over, however many attempts lie between. */
function outageLog(log: DriverLog) {
  let down_since_ms: number | undefined;
  return {
    begins(facts: object, up_since_ms: number | undefined): void {
      if (down_since_ms !== undefined) {
        log.debug(facts, 'device is still unavailable');
        return;
      }
      down_since_ms = performance.now();
      const up = up_since_ms === undefined ? {} : { up_s: seconds(down_since_ms - up_since_ms) };
      log.warn({ ...facts, ...up }, 'device is unavailable');
    },
    over(): void {
      if (down_since_ms === undefined) return;
      log.info({ down_s: seconds(performance.now() - down_since_ms) }, 'device is back');
      down_since_ms = undefined;
    },
  };
}

function seconds(ms: number): number {
  return Math.round(ms / 100) / 10;
}
