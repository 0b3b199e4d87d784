/** Opens the socket that an MQTT session runs on. */
import { connect as connectTcp, isIP, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { connect as connectTls } from 'node:tls';
import { trustSystemAuthorities } from '../platform/authorities.ts';
import type { BrokerOptions } from './broker.ts';

export type BrokerEndpoint = Pick<BrokerOptions, 'url' | 'ca' | 'cert' | 'key'>;

/** Opens the stream that a session runs on. It is connected, or what is written waits until it is. */
export type OpenBrokerSocket = (endpoint: BrokerEndpoint) => Duplex;

const port_default = { 'mqtt:': 1883, 'mqtts:': 8883 } as const;

/** A connected or connecting socket; small packets leave at once. */
export function openBrokerSocket({ url: address, ca, cert, key }: BrokerEndpoint): Socket {
  const url = new URL(address);
  const host = url.hostname.replace(/^\[(.*)\]$/u, '$1');
  const secure = url.protocol === 'mqtts:';
  const port = Number(url.port) || port_default[secure ? 'mqtts:' : 'mqtt:'];
  if (!secure) return connectTcp({ host, port, noDelay: true });
  if (ca === undefined) trustSystemAuthorities();
  const socket = connectTls({
    host,
    port,
    minVersion: 'TLSv1.2',
    // Whatever the environment says.
    rejectUnauthorized: true,
    ...(isIP(host) === 0 && { servername: host }),
    ...(ca !== undefined && { ca }),
    ...(cert !== undefined && { cert }),
    ...(key !== undefined && { key }),
  });
  socket.setNoDelay(true);
  return socket;
}
