/** An embedded MQTT 3.1.1 broker on loopback, for the demo and for runs without a configured broker. */
import { createServer, type Server } from 'node:net';
import { Aedes } from 'aedes';
import type { BrokerConfig } from '../../kit/config/broker.ts';
import { aborted } from '../../platform/time.ts';

export const loopback = '127.0.0.1';
const mqtt_port = 1883;

export interface EmbeddedBroker {
  readonly port: number;
  /** Resolves when it is closed, after `signal` aborted. */
  readonly closed: Promise<void>;
}

/** Listens on port 1883, or on a free one when that is taken, until `signal` aborts. */
export async function startEmbeddedBroker(signal: AbortSignal): Promise<EmbeddedBroker> {
  const broker = await Aedes.createBroker();
  const server = createServer({ noDelay: true }, (socket) => {
    broker.handle(socket);
  });
  const port = await listen(server, mqtt_port).catch(async () => listen(server, 0));
  return { port, closed: closeOnAbort(broker, server, signal) };
}

/** The broker options of the daemon for it. */
export function embeddedBrokerOptions(kit_id: string, port: number): BrokerConfig {
  return {
    url: `mqtt://${loopback}:${port}`,
    username: kit_id,
    password: undefined,
    ca: undefined,
    cert: undefined,
    key: undefined,
    protocol: '3.1.1',
    keepalive_s: 30,
    connect_timeout_ms: 5_000,
    ack: 'broker',
  };
}

async function listen(server: Server, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, loopback, () => {
      server.off('error', reject);
      const address = server.address();
      resolve(typeof address === 'object' && address ? address.port : port);
    });
  });
}

async function closeOnAbort(broker: Aedes, server: Server, signal: AbortSignal): Promise<void> {
  await aborted(signal);
  await new Promise<void>((resolve) => {
    broker.close(() => server.close(() => resolve()));
  });
}
