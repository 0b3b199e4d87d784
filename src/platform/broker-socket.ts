/** Opens the socket that an MQTT session runs on. */
import { connect as connectTcp, isIP, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';

export interface BrokerEndpoint {
  /** `mqtt://host:port` or `mqtts://host:port`. */
  readonly url: string;
  /** PEM texts. With `ca`, no other authority is trusted. */
  readonly ca?: string | undefined;
  readonly cert?: string | undefined;
  readonly key?: string | undefined;
}

const port_default = { 'mqtt:': 1883, 'mqtts:': 8883 } as const;

/** A connected or connecting socket; small packets leave at once. */
export function openBrokerSocket({ url: address, ca, cert, key }: BrokerEndpoint): Socket {
  const url = new URL(address);
  const host = url.hostname.replace(/^\[(.*)\]$/u, '$1');
  const secure = url.protocol === 'mqtts:';
  const port = Number(url.port) || port_default[secure ? 'mqtts:' : 'mqtt:'];
  if (!secure) return connectTcp({ host, port, noDelay: true });
  const socket = connectTls({
    host,
    port,
    minVersion: 'TLSv1.2',
    ...(isIP(host) === 0 && { servername: host }),
    ...(ca !== undefined && { ca }),
    ...(cert !== undefined && { cert }),
    ...(key !== undefined && { key }),
  });
  socket.setNoDelay(true);
  return socket;
}
