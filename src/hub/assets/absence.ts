/** The sentence why a device is not served. */
import type { DeviceReport } from '../../driver/driver.ts';
import { texts } from '../texts.ts';

/** A rejection has its time and that of the next attempt, which may be hours away. */
export function absenceOf({ state, tried_at, next_try_at }: DeviceReport, reason: string): string {
  const isTimed = state === 'rejected' && tried_at !== null && next_try_at !== null;
  return isTimed ? texts.rejected_at(reason, tried_at, next_try_at) : reason;
}
