/** Opens the socket that an MQTT session runs on. */
import { connect as connectTcp, isIP, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { connect as connectTls } from 'node:tls';
import { address_attempt_ms } from '../platform/address-attempts.ts';
import { trustSystemAuthorities } from '../platform/authorities.ts';
import type { BrokerOptions } from './broker.ts';
import { broker_addresses, type BrokerAddresses } from './broker-addresses.ts';

export type BrokerEndpoint = Pick<BrokerOptions, 'url' | 'ca' | 'cert' | 'key'>;

/** Opens the stream that a session runs on. It is connected, or what is written waits until it is. */
export type OpenBrokerSocket = (endpoint: BrokerEndpoint) => Duplex;

const port_default = { 'mqtt:': 1883, 'mqtts:': 8883 } as const;

/** A connected or connecting socket; small packets leave at once. */
export function openBrokerSocket(
  { url: address, ca, cert, key }: BrokerEndpoint,
  addresses: Pick<BrokerAddresses, 'lookup' | 'connected'> = broker_addresses,
): Socket {
  const url = new URL(address);
  const host = url.hostname.replace(/^\[(.*)\]$/u, '$1');
  const secure = url.protocol === 'mqtts:';
  const port = Number(url.port) || port_default[secure ? 'mqtts:' : 'mqtt:'];
  const target = { host, port, lookup: addresses.lookup, autoSelectFamilyAttemptTimeout: address_attempt_ms };
  const remember = (socket: Socket): void => {
    if (socket.remoteAddress !== undefined) addresses.connected(host, socket.remoteAddress);
  };
  if (!secure) {
    const socket = connectTcp({ ...target, noDelay: true });
    return socket.once('connect', () => remember(socket));
  }
  if (ca === undefined) trustSystemAuthorities();
  const socket = connectTls({
    ...target,
    minVersion: 'TLSv1.2',
    // Regardless of the environment.
    rejectUnauthorized: true,
    ...(isIP(host) === 0 && { servername: host }),
    ...(ca !== undefined && { ca }),
    ...(cert !== undefined && { cert }),
    ...(key !== undefined && { key }),
  });
  socket.setNoDelay(true);
  return socket.once('secureConnect', () => remember(socket));
}
