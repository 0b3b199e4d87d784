/** The uplink on a gateway with two WANs: what a change of the route does to deliveries. */
import { once } from 'node:events';
import { connect, Socket } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { BrokerAddresses } from '../../../../src/mqtt/broker-addresses.ts';
import { openTransport } from '../../../../src/mqtt/socket.ts';
import { segments } from '../../../../src/platform/linux/tcp-info.ts';
import { kernelRoutes } from '../../../../src/platform/linux/route-lookup.ts';
import { descriptorOf } from '../../../../src/platform/linux/unsent-bytes.ts';
import { texts } from '../../../../src/kit/uplink/texts.ts';
import { type Broker, startMosquitto } from '../../../support/brokers/broker.ts';
import { eventually } from '../../../support/eventually.ts';
import { lab_ports, lab_targets, startWanLab, type WanLab } from '../../../support/gateway/wan-lab.ts';
import { type Connector, startConnector } from '../../../support/kit/connector.ts';
import { peerMissing, rootMissing } from '../../../support/peers.ts';
import { makeDirectory } from '../../../support/temporary.ts';

const broker_port = 1883;

describe.skipIf(rootMissing() || peerMissing('ip', 'nft', 'sysctl', 'mosquitto'))(
  'failover of the uplink',
  () => {
    let lab: WanLab;
    let broker: Broker;
    let connector: Connector;
    let leave: () => void = () => undefined;
    const lines: string[] = [];

    beforeAll(async () => {
      lab = await startWanLab();
      await lab.set('sat0', { rtt_ms: 100 });
      await lab.set('wwan0', { rtt_ms: 40 });
      const conf = [`listener ${broker_port} ${lab_targets[0]}`, 'log_type debug'];
      broker = await startMosquitto({ prefix: lab.internet, conf });
      const file = join(await makeDirectory(), 'buffer.db');
      leave = lab.enter();
      connector = await startConnector({
        url: `mqtt://${lab_targets[0]}:${broker_port}`,
        file,
        routes: kernelRoutes,
        log: (sentence, facts) => void lines.push(`${sentence} ${JSON.stringify(facts)}`),
      });
      await eventually('connected', () => connector.uplink.online);
    });
    afterAll(async () => {
      await connector?.stop();
      leave();
      await broker?.stop();
      await lab?.stop();
    });

    const interfaceIs = async (name: string): Promise<void> =>
      eventually(`the session leaves by ${name}`, () => connector.uplink.interface === name);
    /** Messages that the broker received. */
    const arrived = (): number => broker.log().match(/Received PUBLISH/gu)?.length ?? 0;
    /** Sends a message and waits until the broker has it. */
    const deliver = async (): Promise<void> => {
      const before = arrived();
      connector.send('alarm', 1, { at: performance.now() });
      await eventually('delivered', () => arrived() > before);
    };
    const reasons = (): readonly string[] => lines.filter((line) => line.startsWith(texts.broker_lost));

    it('names the interface of the session', async () => {
      await interfaceIs('sat0');
      await deliver();
      expect(reasons()).toEqual([]);
    });

    it('reconnects over the other WAN when the route moves, and back, before the link could be found dead', async () => {
      const dead = ['route', 'add', 'default', 'via', '10.64.0.1', 'dev', 'wwan0', 'metric', '50'];
      await lab.ip(...dead);
      await lab.set('sat0', { blackhole: true });
      await deliver();
      await interfaceIs('wwan0');
      await lab.set('sat0', { rtt_ms: 100 });
      await lab.ip('route', 'del', 'default', 'dev', 'wwan0', 'metric', '50');
      await deliver();
      await interfaceIs('sat0');
      // Each time for the route, never for the silence of the broker.
      expect(reasons()).toHaveLength(2);
      expect(reasons().every((line) => line.includes(texts.route_changed))).toBe(true);
    });

    it('connects by satellite to a broker by name that has an address of IPv6 as well', async () => {
      await lab.set('sat0', { rtt_ms: 400 });
      const addresses = new BrokerAddresses({
        system: async () => [
          { address: lab_targets[0], family: 4 },
          { address: '::1', family: 6 },
        ],
        servers: async () => Promise.reject(new Error('not asked')),
      });
      const url = `mqtt://broker.test:${broker_port}`;
      const endpoint = { url, ca: undefined, cert: undefined, key: undefined };
      const { tcp } = await openTransport(endpoint, new AbortController().signal, { addresses });
      expect(tcp?.remoteAddress).toBe(lab_targets[0]);
      tcp?.destroy();
      await lab.set('sat0', { rtt_ms: 100 });
    });

    it('sees the large packets that the path loses, in both directions, and has sockets without any', async () => {
      const { look, openSmall } = await segments();
      await lab.set('sat0', { mtu_bytes: 600 });
      const [host, port] = [lab_targets[0], lab_ports.what_is_my_ip];
      const exchange = async (socket: Socket): Promise<Socket> => {
        socket.on('error', () => undefined).resume();
        await once(socket, 'connect');
        return socket;
      };
      const get = 'GET /down?bytes=5000 HTTP/1.1\r\nHost: lab\r\nConnection: close\r\n';
      const bare = await exchange(connect({ host, port }));
      const filled = await exchange(connect({ host, port }));
      bare.write(`${get}\r\n`);
      filled.write(`${get}X-Filler: ${'x'.repeat(5_000)}\r\n\r\n`);
      const isMissing = (socket: Socket): boolean => look(descriptorOf(socket) ?? -1)?.isMissing === true;
      await eventually('one received segment is missing', () => isMissing(bare));
      await eventually('one sent segment is missing', () => isMissing(filled));
      const small = await exchange(new Socket({ fd: openSmall(host) }).connect({ host, port }));
      small.write(`${get}X-Filler: ${'x'.repeat(5_000)}\r\n\r\n`);
      await once(small, 'end');
      expect(small.bytesRead).toBeGreaterThan(5_000);
      for (const socket of [bare, filled, small]) socket.destroy();
      await lab.set('sat0', { rtt_ms: 100 });
    });

    it('keeps a session whose source survives, and names the interface that carries it now', async () => {
      const before = lines.length;
      await lab.ip('addr', 'add', '10.99.0.1/32', 'dev', 'lo');
      const host = `${lab_targets[0]}/32`;
      await lab.ip('route', 'add', host, 'via', '10.64.0.1', 'dev', 'wwan0', 'src', '100.64.0.2');
      await interfaceIs('wwan0');
      expect(lines.slice(before).filter((line) => line.includes(texts.route_changed))).toEqual([]);
      await lab.ip('route', 'del', host);
      await interfaceIs('sat0');
    });

    // espressif/esp-idf#2850, mqttjs/MQTT.js#702: a link that is back waits for the timer of a client that does not know of it.
    it(
      'ends a pause when the carrier of its link is back, although no route has changed',
      { tags: 'long' },
      async () => {
        await lab.carrier('sat0', 'off');
        const patient = await startConnector({
          url: `mqtt://${lab_targets[0]}:${broker_port}`,
          file: join(await makeDirectory(), 'buffer.db'),
          kit_id: '0c5e3c1e-9d6b-4e52-a4c0-1f2a7c9e4b11',
          routes: kernelRoutes,
          // The only attempt after the pause: on a busy machine it may take long, and the next would be an hour later.
          connect_timeout_ms: 30_000,
          retry_ms: 3_600_000,
        });
        onTestFinished(async () => patient.stop());
        await eventually('it waits', () => patient.uplink.status().state === 'waiting');
        await lab.carrier('sat0', 'on');
        await eventually('connected', () => patient.uplink.online);
      },
    );
  },
);
