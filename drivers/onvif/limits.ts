/** Waits of the driver that tests shorten. */
import { retry_limits } from '../../src/toolkit/device/retry.ts';

export const limits = {
  ...retry_limits,
  /** Presets are read again after this time. */
  presets_again_ms: 600_000,
  /** Profiles and the stream that a camera did not report are asked for again after this time. */
  unread_again_ms: 120_000,
};
export type Limits = typeof limits;
