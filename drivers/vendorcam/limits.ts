/** Every wait and limit of the driver in one place; tests shorten the waits. */
import { push_retry, retry_limits } from '../../src/toolkit/device/retry.ts';

export const limits = {
  ...retry_limits,
  /** One less than elsewhere: more than three wrong passwords may lock the address out (home-assistant/core#181837). */
  may_pass_ms: [60_000, 1_500_000],
  /** Deadline of one request with its reply. */
  request_ms: 8_000,
  reply_bytes_max: 2_000_000,
  /** Larger batches are answered with "send failed". */
  batch_commands_max: 35,
  /** A command that made a whole batch fail is left out for this long, or until the next connection. */
  spoiler_ms: 300_000,
  /** Requests that wait for their turn at one host. */
  waiting_max: 64,
  /** A Stop waits this long for a poll in progress, then the poll is cancelled; at once when the driver stops. */
  urgent_wait_ms: 500,
  /** A slower poll increases the poll interval. */
  slow_reply_ms: 1_000,
  /** Polls that fail in a row before the host counts as lost. */
  lost_after_polls: 2,
  /** Names and presets are read again after this time. */
  describe_again_ms: 600_000,
  /** After "get config failed" and similar errors: a sleeping part of the device wakes up. */
  again_ms: 1_000,
  /** After a reply with fewer parts than asked for: the device is busy. */
  busy_ms: 5_000,
  /** Sessions of other clients expire within an hour; the block after too many logins ends within minutes. */
  sessions_full_ms: 900_000,
  privacy_ms: 120_000,
  lease_default_ms: 3_600_000,
  renew_before_ms: 300_000,
  stop_tries: 6,
  stop_gap_ms: 250,
  reboot_leaves_ms: 60_000,
  reboot_deadline_ms: 240_000,
  /** Pause between two attempts while a reboot is awaited. */
  reboot_retry_ms: 2_000,
  /** From the connection to the vendor's own port to the accepted subscription. */
  push_login_ms: 8_000,
  /** Some firmware closes a connection that was silent for ten seconds. */
  push_keep_alive_ms: 9_000,
  /** Least time between two answers to questions of the device whether the connection is alive. */
  push_heartbeat_ms: 1_000,
  /** A device that sends nothing for this long, though it is asked meanwhile, is lost. */
  push_silent_ms: 20_000,
  push_retry,
  /** After a refusal, also over restarts of the daemon. */
  push_refused_ms: 3_600_000,
  push_frame_bytes_max: 262_144,
  push_frames_per_s_max: 200,
  /** Least time between two polls for cameras that wake up. */
  woken_gap_ms: 500,
  /** Answers to polls lag behind: they do not replace what was pushed less than this before. */
  push_settle_ms: 1_000,
  /** For the last Stop and the logout when the driver stops; the rest of the hub's three seconds is for what they leave behind. */
  farewell_ms: 1_800,
};
export type Limits = typeof limits;
