/**
 * How far the clock of a kit is behind, where it says that it is set. A broker that held live messages back delivers them ever less
 * late; what comes equally late for a minute comes from a slow clock (jpmens/from-traccar#4, traccar/traccar#2809). Without this
 * everything that such a kit sends would be history, and raise no alarm.
 */
import type { StoredKit } from '../stored/stored.ts';

/** What was observed longer ago than this opens no alarm: it is history, as what came from the buffer of a kit is. */
export const late_after_ms = 300_000;
const steady_after_ms = 60_000;
/** A lag that falls by more than the first, or rises by more than the second, is that of a queue. */
const [falls_ms, rises_ms] = [5_000, 60_000];

export type Lag = NonNullable<StoredKit['lag']>;

/** @param lag_ms of the live message of a commit that is least late */
export function lagAfter(before: Lag | undefined, lag_ms: number, now_ms: number): Lag | undefined {
  if (lag_ms <= late_after_ms) return undefined;
  const goesOn = before && lag_ms >= before.lag_ms - falls_ms && lag_ms <= before.lag_ms + rises_ms;
  return goesOn ? before : { lag_ms, since_ms: now_ms };
}

export function behindMs(lag: Lag | undefined, now_ms: number): number {
  return lag && now_ms - lag.since_ms >= steady_after_ms ? lag.lag_ms : 0;
}
