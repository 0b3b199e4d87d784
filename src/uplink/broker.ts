/** Where the broker is and how to prove who we are; opens the socket that an MQTT session runs on. */
import { connect as connectTcp, isIP, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';

export interface BrokerOptions {
  /** `mqtt://host:port` or `mqtts://host:port`. */
  readonly url: string;
  readonly username: string;
  readonly password?: string | undefined;
  /** PEM texts. With `ca`, no other authority is trusted. */
  readonly ca?: string | undefined;
  readonly cert?: string | undefined;
  readonly key?: string | undefined;
  readonly protocol: 'auto' | '5' | '3.1.1';
  readonly keepalive_s: number;
  readonly connect_timeout_ms: number;
}

const port_default = { 'mqtt:': 1883, 'mqtts:': 8883 } as const;

/** A connected or connecting socket; small packets leave at once. */
export function openSocket(broker: BrokerOptions): Socket {
  const url = new URL(broker.url);
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1');
  const secure = url.protocol === 'mqtts:';
  const port = Number(url.port) || port_default[secure ? 'mqtts:' : 'mqtt:'];
  if (!secure) return connectTcp({ host, port, noDelay: true });
  const { ca, cert, key } = broker;
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
