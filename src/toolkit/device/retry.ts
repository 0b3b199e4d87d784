/** When a device is tried again, for every driver. */

/** Pauses before retries double from the first to the last, with up to half of each taken off at random. */
export interface RetryLimits {
  readonly retry_first_ms: number;
  readonly retry_max_ms: number;
  /** After the first rejections of credentials that the device accepted before; then as after any other rejection. */
  readonly may_pass_ms: readonly number[];
  /** After a rejection. */
  readonly rejected_first_ms: number;
  readonly rejected_max_ms: number;
  /** Refused credentials are not tried again within this time after a restart of the daemon either. */
  readonly refused_ms: number;
  /** A device that was served for less does not reset the back-off. */
  readonly stable_ms: number;
}

/**
 * The usual limits. A device without power costs one attempt a minute. After a rejection the pause is at least an hour
 * and at most a day: devices lock an account after three to ten failures within half an hour or so, and forget them then.
 * A device that accepted the same password before gets three attempts within half an hour: it may be booting, or locked
 * because of another client.
 */
export const retry_limits: RetryLimits = {
  retry_first_ms: 1_000,
  retry_max_ms: 60_000,
  may_pass_ms: [60_000, 300_000, 1_500_000],
  rejected_first_ms: 7_200_000,
  rejected_max_ms: 86_400_000,
  refused_ms: 600_000,
  stable_ms: 30_000,
};

/** Of links to vehicles and stations: operators expect a vehicle on the map within seconds after it is switched on. */
export const link_retry: RetryLimits = { ...retry_limits, retry_first_ms: 500, retry_max_ms: 15_000 };

/** Of subscriptions: some cameras end each of them after seconds, so that one with an answer counts as good. */
export const subscription_retry: RetryLimits = { ...retry_limits, retry_max_ms: 8_000, stable_ms: 0 };

/** Of what can be done without: where nothing listens, or the login fails, polling is enough. */
export const push_retry = { retry_first_ms: 30_000, retry_max_ms: 3_600_000 };
