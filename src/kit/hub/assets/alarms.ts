/** Which messages of an asset are alarms. */
import { laneOfFeed } from '../../../contract/feeds.ts';

export interface Alarm {
  readonly feed: string;
  readonly timestamp: string;
}

/** Undefined for what is no alarm, and for the end of one. */
export function alarmIn(feed: string, message: unknown): Alarm | undefined {
  if (laneOfFeed(feed) !== 'alarm' || typeof message !== 'object' || message === null) return undefined;
  const isDetected = 'detected' in message && message.detected === true;
  const timestamp = 'timestamp' in message ? message.timestamp : undefined;
  return isDetected && typeof timestamp === 'string' ? { feed, timestamp } : undefined;
}
