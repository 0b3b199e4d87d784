/** Refuses to start when the environment disables certificate verification. */
import { ConfigInvalid } from '../errors.ts';

export function refuseUnverifiedTls(env: Readonly<Record<string, string | undefined>>): void {
  if (env['NODE_TLS_REJECT_UNAUTHORIZED'] !== '0') return;
  throw new ConfigInvalid([
    'NODE_TLS_REJECT_UNAUTHORIZED=0 in the environment disables certificate verification; remove it, and set broker.ca_file to the CA certificate of the broker',
  ]);
}
