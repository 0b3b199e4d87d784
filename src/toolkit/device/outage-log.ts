/** Logs the outages of one device. */
import type { DriverLog } from '../driver/driver.ts';
import type { SessionState } from './device-session.ts';
import { texts } from './texts.ts';

export interface OutageLogParts {
  readonly log: DriverLog;
  /** Subject of the log lines: `camera is unavailable`. */
  readonly kind: 'device' | 'camera' | 'radio';
  /** Which one, such as `{ camera: 'Gate' }`. */
  readonly facts?: object;
}

/** Logs the begin and the end of each outage once, however many attempts fail in between. */
export function outageLog({ log, kind, facts = {} }: OutageLogParts): (state: SessionState) => void {
  let isDown = false;
  let isRejected = false;
  return (state) => {
    if (state.state === 'up') {
      if (state.down_ms !== undefined) {
        log.info({ ...facts, down_s: seconds(state.down_ms) }, texts.is_back(kind));
      }
      isDown = false;
      isRejected = false;
    } else if (state.state === 'rejected') {
      if (!isRejected) log.error(failureFacts(facts, state), texts.is_rejected(kind));
      isRejected = true;
      isDown = true;
    } else if (state.state === 'down') {
      if (isDown) log.debug(failureFacts(facts, state), texts.is_still_unavailable(kind));
      else log.warn(failureFacts(facts, state), texts.is_unavailable(kind));
      isDown = true;
    }
  };
}

type FailedState = Extract<SessionState, { readonly reason: string }>;

function failureFacts(facts: object, { reason, retry_ms, error, up_ms }: FailedState): object {
  const up = up_ms === undefined ? {} : { up_s: seconds(up_ms) };
  return { ...facts, reason, retry_ms, err: error, ...up };
}

function seconds(ms: number): number {
  return Math.round(ms) / 1_000;
}
