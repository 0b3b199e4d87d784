/**
 * Every way to a broker: TCP, TLS, WebSocket and WebSocket over TLS, each alone and through the proxies of Debian, with an outage on
 * the way; and WebSocket as RabbitMQ, ejabberd and aedes serve it.
 */
import { createServer } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { Aedes } from 'aedes';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createWebSocketStream, WebSocketServer } from 'ws';
import type { Proxy } from '../../../src/platform/proxy.ts';
import { startMosquitto } from '../../support/brokers/broker.ts';
import { type ErlangBroker, startEjabberd } from '../../support/brokers/erlang-brokers.ts';
import { startMicrosocks, startSquid, startTinyproxy } from '../../support/brokers/proxies.ts';
import { startProxy } from '../../support/brokers/proxy.ts';
import { startRabbitmq } from '../../support/brokers/rabbitmq.ts';
import { startSubscriber } from '../../support/brokers/subscriber.ts';
import { makeCertificates } from '../../support/certificates.ts';
import { eventually } from '../../support/eventually.ts';
import { type Connector, type ConnectorOptions, startConnector } from '../../support/kit/connector.ts';
import { peerMissing } from '../../support/peers.ts';
import { freePort } from '../../support/ports.ts';
import { withDirectory } from '../../support/temporary.ts';

const patience_ms = 120_000;
const messages = 400;

async function connector(dir: string, options: Omit<ConnectorOptions, 'file'>): Promise<Connector> {
  const file = join(dir, `buffer-${Math.floor(performance.now() * 1_000)}.db`);
  const started = await startConnector({ file, ack: 'broker', ...options });
  onTestFinished(async () => started.stop());
  return started;
}

/** Sends messages around an outage; resolves with the connector once the broker has acknowledged all. */
async function sendThrough(kit: Connector, outage: () => Promise<void>): Promise<void> {
  const send = (from: number): void => {
    for (let n = from; n < from + messages / 2; n += 1) kit.send('alarm', n, { n });
  };
  await eventually('connected', () => kit.uplink.online, patience_ms);
  send(0);
  await outage();
  send(messages / 2);
  await eventually('all are delivered', () => kit.outbox.ledger().buffered === 0, patience_ms);
  expect(kit.outbox.ledger()).toMatchObject({ accepted: messages, delivered: messages });
}

type Kind = Proxy['kind'];

describe.skipIf(peerMissing('mosquitto', 'openssl', 'tinyproxy', 'squid', 'microsocks'))('a broker', () => {
  it.each(['tcp', 'tls', 'ws', 'wss'] as const)(
    'is reached over %s, alone and through each proxy, and nothing is lost in an outage',
    async (transport) => {
      await withDirectory(async (dir) => {
        const { ca, server } = await makeCertificates(dir, 'kit');
        const plain = await freePort();
        const isTls = transport === 'tls' || transport === 'wss';
        const tls = [`cafile ${ca}`, `certfile ${server.cert}`, `keyfile ${server.key}`];
        const broker = await startMosquitto({
          conf: [
            ...(transport.startsWith('ws') ? ['protocol websockets'] : []),
            ...(isTls ? tls : []),
            `listener ${plain} 127.0.0.1`,
          ],
        });
        onTestFinished(async () => broker.stop());
        const scheme = { tcp: 'mqtt', tls: 'mqtts', ws: 'ws', wss: 'wss' }[transport];
        const way = await startProxy(broker.port);
        onTestFinished(async () => way.close());
        const http = [await startTinyproxy(dir), await startSquid(dir)];
        const socks = await startMicrosocks();
        const ways: readonly (readonly [name: string, proxy: Proxy | null])[] = [
          ['alone', null],
          ...http.map((each) => ['http', proxyAt('http', each.port)] as const),
          ['socks5', proxyAt('socks5', socks.port)],
        ];
        for (const each of [...http, socks]) onTestFinished(async () => each.stop());
        for (const [name, proxy] of ways) {
          const witness = await startSubscriber(plain);
          const url = `${scheme}://localhost:${way.port}`;
          const kit = await connector(dir, { url, proxy, ...(isTls && { ca }) });
          await sendThrough(kit, async () => {
            way.setAdmission('refuse');
            way.cut();
            await eventually(`${name}: the loss is seen`, () => !kit.uplink.online, patience_ms);
            way.setAdmission('pass');
          });
          const { unique } = await witness.until((seen) => seen.unique >= messages, patience_ms);
          expect({ name, isWhole: unique >= messages }).toEqual({ name, isWhole: true });
          await kit.stop();
          await witness.stop();
        }
      });
    },
    8 * patience_ms,
  );
});

function proxyAt(kind: Kind, port: number): Proxy {
  return { kind, host: '127.0.0.1', port };
}

function loginOf({ port, username, password }: ErlangBroker) {
  return { port, username, password };
}

describe('MQTT over WebSocket', () => {
  const expectToServe = async (
    url: string,
    broker: { readonly port?: number; readonly username?: string; readonly password?: string } = {},
  ): Promise<void> =>
    withDirectory(async (dir) => {
      const { port, ...login } = broker;
      // What has no subscriber stays with the kit.
      const witness = port === undefined ? undefined : await startSubscriber(port, login);
      const kit = await connector(dir, { url, proxy: null, retry_ms: 500, ...login });
      await sendThrough(kit, async () => undefined);
      await kit.stop();
      await witness?.stop();
    });

  it.skipIf(peerMissing('rabbitmq-server', 'epmd'))(
    'is spoken with RabbitMQ',
    async () => {
      const broker = await startRabbitmq();
      onTestFinished(async () => broker.stop());
      await expectToServe(`ws://127.0.0.1:${broker.ws_port}/ws`, loginOf(broker));
    },
    400_000,
  );

  it.skipIf(peerMissing('erl', 'ejabberdctl'))(
    'is spoken with ejabberd',
    async () => {
      const broker = await startEjabberd();
      onTestFinished(async () => broker.stop());
      await expectToServe(`ws://127.0.0.1:${broker.ws_port}/mqtt`, loginOf(broker));
    },
    400_000,
  );

  it('is spoken with aedes', async () => {
    const broker = await Aedes.createBroker();
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    new WebSocketServer({ server }).on('connection', (socket) =>
      broker.handle(createWebSocketStream(socket)),
    );
    onTestFinished(() => broker.close(() => server.close()));
    await expectToServe(`ws://127.0.0.1:${(server.address() as AddressInfo).port}`);
  });
});
