/** How tests reach a broker: without a login and certificates, unless they say otherwise. */
import type { BrokerOptions } from '../../../src/mqtt/broker.ts';

export function brokerOptions(url: string, changes: Partial<BrokerOptions> = {}): BrokerOptions {
  return {
    url,
    username: undefined,
    password: undefined,
    ca: undefined,
    cert: undefined,
    key: undefined,
    protocol: '5',
    keepalive_s: 30,
    connect_timeout_ms: 5_000,
    ...changes,
  };
}
