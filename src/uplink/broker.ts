/** Where the broker is and how to prove who we are. */
import type { BrokerEndpoint } from '../platform/broker-socket.ts';

export interface BrokerOptions extends BrokerEndpoint {
  readonly username: string;
  readonly password?: string | undefined;
  readonly protocol: 'auto' | '5' | '3.1.1';
  readonly keepalive_s: number;
  readonly connect_timeout_ms: number;
}
