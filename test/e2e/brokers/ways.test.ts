/**
 * Every way to every broker: TCP, TLS, WebSocket and WebSocket over TLS, each alone and through the proxies of Debian, with an outage
 * on the way.
 */
import { createServer as createWeb } from 'node:http';
import { createServer as createSecureWeb } from 'node:https';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { type AddressInfo, createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { createServer as createSecure } from 'node:tls';
import { Aedes } from 'aedes';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { createWebSocketStream, WebSocketServer } from 'ws';
import type { Proxy } from '../../../src/platform/proxy.ts';
import { startMosquitto } from '../../support/brokers/broker.ts';
import { type ErlangBroker, startEjabberd } from '../../support/brokers/erlang-brokers.ts';
import { startMicrosocks, startSquid, startTinyproxy } from '../../support/brokers/proxies.ts';
import { startProxy } from '../../support/brokers/proxy.ts';
import { startRabbitmq } from '../../support/brokers/rabbitmq.ts';
import { startSubscriber } from '../../support/brokers/subscriber.ts';
import { type Certificates, makeCertificates } from '../../support/certificates.ts';
import { eventually } from '../../support/eventually.ts';
import { type Connector, startConnector } from '../../support/kit/connector.ts';
import { peerMissing } from '../../support/peers.ts';
import { freePort } from '../../support/ports.ts';
import { makeDirectory } from '../../support/temporary.ts';

const patience_ms = 120_000;
const messages = 400;

/** Sends messages around an outage; resolves once the broker has acknowledged all. */
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

/** A broker that serves each transport. */
interface Served {
  readonly ports: Readonly<Record<'mqtt' | 'mqtts' | 'ws' | 'wss', number>>;
  readonly path?: string;
  readonly login?: { readonly username: string; readonly password: string };
  stop(): Promise<void>;
}

async function mosquitto({ ca, server }: Certificates): Promise<Served> {
  const [mqtts, ws, wss] = [await freePort(), await freePort(), await freePort()];
  const tls = [`cafile ${ca}`, `certfile ${server.cert}`, `keyfile ${server.key}`];
  const web = 'protocol websockets';
  const [secure, open, both] = [mqtts, ws, wss].map((port) => `listener ${port} 127.0.0.1`);
  const conf = [secure, ...tls, open, web, both, web, ...tls].map(String);
  const broker = await startMosquitto({ conf });
  return { ports: { mqtt: broker.port, mqtts, ws, wss }, stop: async () => broker.stop() };
}

function erlang(broker: ErlangBroker, path: string): Served {
  const { port, tls_port, ws_port, wss_port, username, password } = broker;
  return {
    ports: { mqtt: port, mqtts: tls_port, ws: ws_port, wss: wss_port },
    path,
    login: { username, password },
    stop: async () => broker.stop(),
  };
}

async function aedes({ server }: Certificates): Promise<Served> {
  const broker = await Aedes.createBroker();
  const pair = { cert: await readFile(server.cert), key: await readFile(server.key) };
  const servers: Server[] = [];
  const listen = async (each: Server): Promise<number> => {
    servers.push(each.listen(0, '127.0.0.1'));
    await once(each, 'listening');
    return (each.address() as AddressInfo).port;
  };
  const [ws, wss] = [createWeb(), createSecureWeb(pair)];
  for (const web of [ws, wss])
    new WebSocketServer({ server: web }).on('connection', (socket) =>
      broker.handle(createWebSocketStream(socket)),
    );
  const ports = {
    mqtt: await listen(createServer((socket) => void broker.handle(socket))),
    mqtts: await listen(createSecure(pair, (socket) => void broker.handle(socket))),
    ws: await listen(ws),
    wss: await listen(wss),
  };
  const stop = async (): Promise<void> => {
    await new Promise<void>((resolve) => {
      broker.close(resolve);
    });
    for (const each of servers) each.close();
  };
  return { ports, stop };
}

function proxyAt(kind: Proxy['kind'], { port }: { readonly port: number }): Proxy {
  return { kind, host: '127.0.0.1', port };
}

const proxies_missing = peerMissing('openssl', 'tinyproxy', 'squid', 'microsocks');
const start_ms = 400_000;

describe.each([
  { name: 'mosquitto', start: mosquitto, isMissing: peerMissing('mosquitto') },
  {
    name: 'RabbitMQ',
    start: async (made: Certificates) => erlang(await startRabbitmq(made), '/ws'),
    isMissing: peerMissing('rabbitmq-server', 'epmd'),
  },
  {
    name: 'ejabberd',
    start: async (made: Certificates) => erlang(await startEjabberd(made), '/mqtt'),
    isMissing: peerMissing('erl', 'ejabberdctl'),
  },
  { name: 'aedes', start: aedes, isMissing: false },
])('$name', ({ start, isMissing }) => {
  describe.skipIf(proxies_missing || isMissing)('as a broker', () => {
    const stops: (() => Promise<void>)[] = [];
    let dir = '';
    let ca = '';
    let broker: Served;
    let ways: readonly (readonly [name: string, proxy: Proxy | null])[] = [];
    beforeAll(async () => {
      dir = await makeDirectory();
      const made = await makeCertificates(dir, 'kit');
      ({ ca } = made);
      broker = await start(made);
      const [tinyproxy, squid, socks] = [
        await startTinyproxy(dir),
        await startSquid(dir),
        await startMicrosocks(),
      ];
      for (const each of [broker, tinyproxy, squid, socks]) stops.push(async () => each.stop());
      ways = [
        ['alone', null],
        ['tinyproxy', proxyAt('http', tinyproxy)],
        ['squid', proxyAt('http', squid)],
        ['microsocks', proxyAt('socks5', socks)],
      ];
    }, start_ms);
    afterAll(async () => {
      for (const stop of stops) await stop();
    });

    it.each(['mqtt', 'mqtts', 'ws', 'wss'] as const)(
      'is reached by %s, alone and through each proxy, and nothing is lost in an outage',
      async (scheme) => {
        const { ports, path = '', login } = broker;
        const way = await startProxy(ports[scheme]);
        onTestFinished(async () => way.close());
        for (const [name, proxy] of ways) {
          const witness = await startSubscriber(ports.mqtt, login);
          const kit = await startConnector({
            file: join(dir, `${scheme}-${name}.db`),
            ack: 'broker',
            url: `${scheme}://localhost:${way.port}${scheme.startsWith('ws') ? path : ''}`,
            proxy,
            retry_ms: 500,
            ...login,
            ...(scheme.endsWith('s') && scheme !== 'ws' && { ca }),
          });
          try {
            await sendThrough(kit, async () => {
              way.setAdmission('refuse');
              way.cut();
              await eventually(`${name}: the loss is seen`, () => !kit.uplink.online, patience_ms);
              way.setAdmission('pass');
            });
            const { unique } = await witness.until((seen) => seen.unique >= messages, patience_ms);
            expect({ name, isWhole: unique >= messages }).toEqual({ name, isWhole: true });
          } finally {
            await kit.stop();
            await witness.stop();
          }
        }
      },
      8 * patience_ms,
    );
  });
});
