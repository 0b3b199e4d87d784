/** Keeps one driver running: a device session whose runs have a deadline to stop. */
import { outageLog } from '../device/outage-log.ts';
import { serveDevice, type SessionState } from '../device/device-session.ts';
import type { DriverLog } from '../driver/driver.ts';
import { DeviceUnreachable } from '../errors.ts';
import { aborted, within } from '../platform/time.ts';
import { texts } from './texts.ts';

export type DriverState =
  /** First run, no answer from the device yet. */
  | { readonly state: 'starting' }
  | { readonly state: 'up' }
  /** Tried again after `retry_ms`. `rejected`: the device rejects the connector, so that the pauses are hours. */
  | { readonly state: 'down' | 'rejected'; readonly reason: string; readonly retry_ms: number }
  | { readonly state: 'stopped' }
  /** It did not stop in time and was abandoned. */
  | { readonly state: 'hung'; readonly reason: string };

export interface Supervised {
  readonly log: DriverLog;
  /** Aborts when the driver must stop for good. */
  readonly signal: AbortSignal;
  /** One run of the driver. `signal` aborts when this run must end; call `onUp` when the device answers. */
  readonly run: (signal: AbortSignal, onUp: () => void) => Promise<void>;
  readonly onState: (state: DriverState) => void;
}

/** Time that a driver has to end after its signal aborted. */
export const stop_deadline_ms = 3_000;
/** A stall of the process, such as on a machine without a free processor, counts as one of these: no driver could have ended meanwhile. */
const stop_slice_ms = 100;

/** Runs the driver again and again until `signal` aborts. Never rejects. */
export async function supervise({ log, signal, run, onState }: Supervised): Promise<void> {
  const logOutage = outageLog({ log, kind: 'device' });
  let isHung = false;
  await serveDevice({
    signal,
    run: async (run_signal, onUp) => {
      const ending = await runUntilDeadline(async () => run(run_signal, onUp), run_signal);
      if (ending === 'hung') isHung = true;
      else if (!signal.aborted) throw new DeviceUnreachable(texts.driver_ended);
    },
    onState: (state) => {
      logOutage(state);
      if (!isHung) onState(driverState(state));
    },
  });
  if (!isHung) return;
  log.error({ deadline_ms: stop_deadline_ms }, texts.driver_abandoned);
  onState({ state: 'hung', reason: `did not stop within ${stop_deadline_ms / 1000} s` });
}

function driverState(state: SessionState): DriverState {
  if (state.state === 'up') return { state: 'up' };
  if (state.state !== 'down' && state.state !== 'rejected') return state;
  return { state: state.state, reason: state.reason, retry_ms: state.retry_ms };
}

/** A late failure of an abandoned run is swallowed. */
async function runUntilDeadline(run: () => Promise<void>, signal: AbortSignal): Promise<'ended' | 'hung'> {
  const ended = run().then(() => 'ended' as const);
  let ending = (await Promise.race([ended, aborted(signal)])) ?? undefined;
  for (let used_ms = 0; !ending && used_ms < stop_deadline_ms; used_ms += stop_slice_ms) {
    ending = await within(stop_slice_ms, ended);
  }
  return ending ?? 'hung';
}
