/** Every wait and limit of the driver in one place; tests shorten the waits. */
import { retry_limits } from '../../src/toolkit/device/retry.ts';

export const limits = {
  ...retry_limits,
  /** Deadline of one request with its reply. */
  request_ms: 4_000,
  /** A scan leaves the channel for seconds. */
  scan_ms: 20_000,
  reply_bytes_max: 2_000_000,
  /** uhttpd closes the connection above 64 KiB. */
  request_bytes_max: 60_000,
  /** Requests that wait for their turn at one radio. */
  waiting_max: 16,
  /** Polls that fail in a row before the radio counts as lost. */
  lost_after_polls: 3,
  /** rpcd restarts within seconds. */
  rpcd_retry_ms: 5_000,
  /** A login without rights can only be fixed on the radio, so it is retried rarely. */
  rightless_retry_ms: 300_000,
  /** Calls that a radio refused or lacks are sent again after this time. */
  lacking_ms: 300_000,
  /** A peer counts as lost when it was not received for this time: the kernel lists dead ones for five minutes. */
  peer_lost_ms: 30_000,
  /** Polls in a row with a peer before it becomes an asset, and without it before it counts as gone. */
  peer_new_polls: 3,
  peer_gone_polls: 2,
  peer_assets_max: 64,
  neighbours_max: 64,
  /** Signals that a radio measured of its peers count as `remote_rssi` for this long. */
  report_fresh_ms: 30_000,
  /** Interval of checks while a change or a restart is awaited. */
  look_ms: 2_000,
  /** Left of the time for the change when it is confirmed, so that the confirmation is not late. */
  confirm_margin_ms: 5_000,
  /** After the radio's own deadline it takes this long to restart its Wi-Fi with the old settings. */
  revert_ms: 30_000,
  mesh_switch_ms: 60_000,
  reboot_ms: 240_000,
  snmp_timeout_ms: 1_500,
  snmp_retries: 1,
  /** For one answer with all that version 3 exchanges before it: an agent may ask for each request once more. */
  snmp_answer_ms: 15_000,
  snmp_oids_max: 16,
  snmp_repetitions: 20,
  snmp_rows_max: 256,
  /** To restore an LED when the driver stops. */
  farewell_ms: 2_000,
};
export type Limits = typeof limits;
