/** The retry loop for devices: connect, serve, back off after a loss, reconnect. */
import { DeviceRejected, DeviceUnreachable, messageOf, RetryLater } from '../../platform/errors.ts';
import { backoff, sleep } from '../../platform/time.ts';
import { type RetryLimits, retry_limits } from './retry.ts';
import { texts } from './texts.ts';

/** Why a device does not answer, and when the next attempt follows. */
export interface Failure {
  readonly reason: string;
  readonly error: unknown;
  /** Pause before the next attempt. */
  readonly retry_ms: number;
  /** How long the device was served before; missing when this attempt did not reach it. */
  readonly up_ms?: number;
}

export type SessionState =
  /** Before the first attempt. */
  | { readonly state: 'starting' }
  /** `down_ms`: length of the outage that ends now, if there was one. */
  | { readonly state: 'up'; readonly down_ms?: number }
  /** Lost, or not reached; tried again soon. */
  | ({ readonly state: 'down' } & Failure)
  /** The device rejects the connector; retried rarely, since devices lock accounts. */
  | ({ readonly state: 'rejected' } & Failure)
  | { readonly state: 'stopped' };

/** An outage that was ordered, such as a reboot. */
export interface ExpectedOutage {
  readonly reason: string;
  readonly retry_ms: number;
}

/** Clock and random source; tests replace them. */
export interface SessionTiming {
  /** Monotonic. */
  readonly now_ms: () => number;
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<void>;
  readonly random: () => number;
}

const machine_timing: SessionTiming = {
  now_ms: () => performance.now(),
  sleep,
  random: () => Math.random(),
};

export interface DeviceSession {
  /** Aborts when the device must not be served any more. */
  readonly signal: AbortSignal;
  /**
   * One connection, from the first request to the loss. `signal` aborts when it must end; call `onUp` when the device is
   * announced and answers. Rejects with `DeviceRejected` when a person must act, with `RetryLater` to name the pause.
   */
  readonly run: (signal: AbortSignal, onUp: () => void) => Promise<void>;
  readonly onState: (state: SessionState) => void;
  /** Called after each failure, before the pause; what it throws ends the session. */
  readonly onFailure?: (error: unknown) => Promise<void>;
  /** The outage that is expected now, if any. */
  readonly expected?: () => ExpectedOutage | undefined;
  readonly limits?: RetryLimits;
  readonly timing?: SessionTiming;
}

/** Runs until `signal` aborts. Rejects only with what `onFailure` throws. */
export async function serveDevice(session: DeviceSession): Promise<void> {
  const { signal, run, onState, onFailure, timing = machine_timing } = session;
  const pauseAfter = retryPauses(session, timing);
  let down_since_ms: number | undefined;
  onState({ state: 'starting' });
  while (!signal.aborted) {
    let up_since_ms: number | undefined;
    const onUp = (): void => {
      if (up_since_ms !== undefined) return;
      up_since_ms = timing.now_ms();
      onState({
        state: 'up',
        ...(down_since_ms === undefined ? {} : { down_ms: up_since_ms - down_since_ms }),
      });
      down_since_ms = undefined;
    };
    const error = await runOnce(run, signal, onUp);
    if (signal.aborted) break;
    await onFailure?.(error);
    const now_ms = timing.now_ms();
    const up_ms = up_since_ms === undefined ? undefined : now_ms - up_since_ms;
    const failure = { ...pauseAfter(error, up_ms), error, ...(up_ms === undefined ? {} : { up_ms }) };
    down_since_ms ??= now_ms;
    onState({ state: error instanceof DeviceRejected ? 'rejected' : 'down', ...failure });
    await timing.sleep(failure.retry_ms, signal);
  }
  onState({ state: 'stopped' });
}

/** Chooses the pause before the next attempt. */
function retryPauses({ expected, limits = retry_limits }: DeviceSession, { random }: SessionTiming) {
  const begin = () => ({
    lost: backoff(limits.retry_first_ms, limits.retry_max_ms, random),
    rejected: backoff(limits.rejected_first_ms, limits.rejected_max_ms, random),
    /** Rejections since then that may pass. */
    passing: 0,
  });
  let since = begin();
  const pause_ms = (error: unknown, outage: ExpectedOutage | undefined): number => {
    if (error instanceof RetryLater) return error.retry_ms;
    if (!(error instanceof DeviceRejected)) return outage?.retry_ms ?? since.lost.next().value;
    const passing_ms = error.may_pass ? limits.may_pass_ms[since.passing] : undefined;
    if (passing_ms === undefined) return since.rejected.next().value;
    since.passing += 1;
    return passing_ms * (0.5 + random() / 2);
  };
  return (error: unknown, up_ms: number | undefined): Pick<Failure, 'reason' | 'retry_ms'> => {
    if (up_ms !== undefined && up_ms >= limits.stable_ms) since = begin();
    const outage = expected?.();
    return {
      reason: outage?.reason ?? messageOf(error),
      retry_ms: Math.round(pause_ms(error, outage)),
    };
  };
}

/**
 * Runs once under its own abort signal, so that no listener of a run stays on the long-lived signal, and so that
 * whatever a failed run did not close is aborted as well. Resolves with the failure.
 */
async function runOnce(run: DeviceSession['run'], signal: AbortSignal, onUp: () => void): Promise<unknown> {
  const ending = new AbortController();
  const onAbort = (): void => ending.abort(signal.reason);
  signal.addEventListener('abort', onAbort, { once: true });
  try {
    await run(ending.signal, () => {
      if (!ending.signal.aborted) onUp();
    });
    return new DeviceUnreachable(texts.ended_early);
  } catch (error) {
    return error;
  } finally {
    signal.removeEventListener('abort', onAbort);
    ending.abort();
  }
}
