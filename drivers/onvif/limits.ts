/** Waits of the driver that tests shorten. */
import { retry_limits } from '../../src/toolkit/device/retry.ts';

export const limits = {
  ...retry_limits,
  /** Presets are read again after this time. */
  presets_again_ms: 600_000,
  /** Profiles and the stream that a camera did not report are asked for again after this time. */
  unread_again_ms: 120_000,
  /** A camera without events is asked again after these times, then seldom: another client, or an earlier run, may hold what it serves. */
  events_again_ms: [60_000, 180_000, 300_000] as readonly number[],
  /** A firmware update may have added them. */
  events_seldom_ms: 900_000,
};
export type Limits = typeof limits;
