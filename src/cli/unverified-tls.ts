/** Refuses to start when the environment disables certificate verification. */
import { ConfigInvalid } from '../errors.ts';
import { texts } from './texts.ts';

export function refuseUnverifiedTls(env: Readonly<Record<string, string | undefined>>): void {
  if (env['NODE_TLS_REJECT_UNAUTHORIZED'] !== '0') return;
  throw new ConfigInvalid([texts.tls_not_verified]);
}
