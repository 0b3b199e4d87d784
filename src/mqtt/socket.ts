/** Opens the socket that an MQTT session runs on. */
import { connect as connectTcp, isIP, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { connect as connectTls, type ConnectionOptions } from 'node:tls';
import { address_attempt_ms } from '../platform/address-attempts.ts';
import { trustSystemAuthorities } from '../platform/authorities.ts';
import type { BrokerOptions } from './broker.ts';
import { broker_addresses, type BrokerAddresses } from './broker-addresses.ts';

export type BrokerEndpoint = Pick<BrokerOptions, 'url' | 'ca' | 'cert' | 'key'>;

/** Opens the stream that a session runs on. It is connected, or what is written waits until it is. */
export type OpenBrokerSocket = (endpoint: BrokerEndpoint) => Duplex;

const port_default = { 'mqtt:': 1883, 'mqtts:': 8883 } as const;

export type BrokerSocket = Socket;

/** A TCP socket that was made already, and the address of the broker that it is to be connected to. */
export interface OwnSocket {
  readonly fd: number;
  readonly ip: string;
}

/** Name or address, without the brackets of IPv6. */
export function hostOf({ url }: Pick<BrokerEndpoint, 'url'>): string {
  return new URL(url).hostname.replace(/^\[(.*)\]$/u, '$1');
}

/** A connected or connecting socket; small packets leave at once. `own`: to be connected, in place of a new one. */
export function openBrokerSocket(
  { url: address, ca, cert, key }: BrokerEndpoint,
  addresses: Pick<BrokerAddresses, 'lookup' | 'connected'> = broker_addresses,
  own?: OwnSocket,
): Socket {
  const url = new URL(address);
  const host = hostOf({ url: address });
  const secure = url.protocol === 'mqtts:';
  const port = Number(url.port) || port_default[secure ? 'mqtts:' : 'mqtt:'];
  const target = {
    host,
    port,
    lookup: addresses.lookup,
    autoSelectFamilyAttemptTimeout: address_attempt_ms,
  };
  // With a name it would be read from before it is connected, which fails.
  const tcp = own && new Socket({ fd: own.fd }).connect({ host: own.ip, port }).setNoDelay(true);
  const remember = (socket: Socket): void => {
    if (socket.remoteAddress !== undefined) addresses.connected(host, socket.remoteAddress);
  };
  if (!secure) {
    const socket = tcp ?? connectTcp({ ...target, noDelay: true });
    return socket.once('connect', () => remember(socket));
  }
  if (ca === undefined) trustSystemAuthorities();
  const way = tcp ? { socket: tcp, host } : target;
  const socket = connectTls({ ...way, ...tlsOptions(host, { ca, cert, key }) });
  socket.setNoDelay(true);
  return socket.once('secureConnect', () => remember(socket));
}

function tlsOptions(host: string, { ca, cert, key }: Omit<BrokerEndpoint, 'url'>): ConnectionOptions {
  return {
    minVersion: 'TLSv1.2',
    // Regardless of the environment.
    rejectUnauthorized: true,
    ...(isIP(host) === 0 && { servername: host }),
    ...(ca !== undefined && { ca }),
    ...(cert !== undefined && { cert }),
    ...(key !== undefined && { key }),
  };
}
