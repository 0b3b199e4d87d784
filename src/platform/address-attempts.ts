/** How long a connection to a name with several addresses is given to each of them. */
import { setDefaultAutoSelectFamilyAttemptTimeout } from 'node:net';

/**
 * Limit of each attempt while further addresses of the name are left. The default of Node.js, 250 ms, is less than a round trip
 * by satellite: only the last address could be connected, often one of IPv6 without a route.
 */
export const address_attempt_ms = 2_000;

/** Applies the limit to every connection of this process: doctor, webhooks, PostgreSQL, AMQP, devices by name. */
export function allowSlowLinks(): void {
  setDefaultAutoSelectFamilyAttemptTimeout(address_attempt_ms);
}
