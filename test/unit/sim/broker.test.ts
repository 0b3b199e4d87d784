/** The broker of the simulator, spoken to with packets: what MQTT demands of it. */
import { generate, type Packet, parser } from 'mqtt-packet';
import { expect, test } from 'vitest';
import { Broker } from '../../sim/world/broker.ts';
import { topicMatches } from '../../sim/world/broker-session.ts';
import { Network } from '../../sim/world/network.ts';
import { Rng } from '../../sim/world/rng.ts';
import { withWorld } from './lab.ts';

interface Client {
  readonly packets: Packet[];
  readonly send: (packet: Packet) => void;
  readonly drop: () => void;
}

interface Parts {
  readonly broker: Broker;
  /** Connects and says CONNECT. */
  readonly client: (id: string, more?: object) => Promise<Client>;
  readonly after: (ms: number) => Promise<void>;
  readonly lost: string[];
}

async function withBroker(play: (parts: Parts) => Promise<void>): Promise<void> {
  await withWorld('broker', async (world, proc) => {
    const lost: string[] = [];
    const broker = new Broker(world, proc.machine, {
      taken: () => undefined,
      lost: (messages) => lost.push(...messages.map(({ topic }) => topic)),
      trace: () => undefined,
      broken: () => undefined,
    });
    const network = new Network(world, new Rng('network'));
    const link = network.link('link', 10);
    const after = async (ms: number): Promise<void> => world.run(world.now_ms + ms);
    const client = async (clientId: string, more: object = {}): Promise<Client> => {
      const packets: Packet[] = [];
      const read = parser({ protocolVersion: 5 });
      read.on('packet', (packet: Packet) => packets.push(packet));
      const socket = Promise.withResolvers<ReturnType<Network['connect']>>();
      world.after(0, proc, () => {
        const opened = network.connect(link, broker);
        opened.on('data', (bytes: Buffer) => void read.parse(bytes));
        opened.on('error', () => undefined);
        socket.resolve(opened);
      });
      await after(1);
      const stream = await socket.promise;
      const send = (packet: Packet): void => {
        world.after(0, proc, () => void stream.write(generate(packet, { protocolVersion: 5 })));
      };
      send({
        cmd: 'connect',
        protocolId: 'MQTT',
        protocolVersion: 5,
        clean: false,
        clientId,
        keepalive: 60,
        ...more,
      });
      await after(100);
      return { packets, send, drop: () => void world.after(0, proc, () => stream.destroy()) };
    };
    await play({ broker, client, after, lost });
  });
}

function publish(
  topic: string,
  payload: string,
  more: Partial<Extract<Packet, { cmd: 'publish' }>> = {},
): Packet {
  return { cmd: 'publish', qos: 1, messageId: 7, dup: false, retain: false, topic, payload, ...more };
}

function subscribe(topic: string): Packet {
  return { cmd: 'subscribe', messageId: 1, subscriptions: [{ topic, qos: 1 }] };
}

const kept = { properties: { sessionExpiryInterval: 600 } };

test('wildcards match as in the MQTT specification', () => {
  expect(topicMatches('k1/+/up/#', 'k1/a/up/feed/x')).toBe(true);
  expect(topicMatches('k1/+/up/#', 'k1/a/down/ack')).toBe(false);
  expect(topicMatches('k1/a/down/#', 'k1/a/down')).toBe(true);
  expect(topicMatches('a/+', 'a/b/c')).toBe(false);
});

test('a publication is acknowledged with 0x10 without a subscriber, and with 0 with one', async () => {
  await withBroker(async ({ client, after }) => {
    const kit = await client('kit');
    kit.send(publish('up/x', '1'));
    await after(100);
    expect(kit.packets.at(-1)).toMatchObject({ cmd: 'puback', messageId: 7, reasonCode: 0x10 });
    const cloud = await client('cloud');
    cloud.send(subscribe('up/#'));
    await after(100);
    kit.send(publish('up/x', '2'));
    await after(100);
    expect(kit.packets.at(-1)).toMatchObject({ cmd: 'puback', reasonCode: 0 });
    expect(cloud.packets.at(-1)).toMatchObject({ cmd: 'publish', topic: 'up/x', dup: false });
  });
});

test('what a client has not acknowledged comes again after it is back, marked as a duplicate', async () => {
  await withBroker(async ({ client, after }) => {
    const first = await client('cloud', kept);
    first.send(subscribe('up/#'));
    await after(100);
    const kit = await client('kit');
    kit.send(publish('up/x', '1'));
    await after(100);
    first.drop();
    await after(100);
    kit.send(publish('up/x', '2'));
    await after(100);
    const again = await client('cloud', kept);
    expect(again.packets[0]).toMatchObject({ cmd: 'connack', sessionPresent: true });
    const texts = again.packets.flatMap((packet) =>
      packet.cmd === 'publish' ? [`${packet.payload.toString()} ${packet.dup}`] : [],
    );
    expect(texts).toEqual(['1 true', '2 false']);
  });
});

test('retained messages come with a subscription, and an empty one clears them', async () => {
  await withBroker(async ({ broker, client, after }) => {
    const kit = await client('kit');
    kit.send(publish('up/asset', 'here', { retain: true }));
    await after(100);
    const cloud = await client('cloud');
    cloud.send(subscribe('up/#'));
    await after(100);
    expect(cloud.packets.at(-1)).toMatchObject({ cmd: 'publish', retain: true });
    kit.send(publish('up/asset', '', { retain: true }));
    await after(100);
    expect(broker.retained.size).toBe(0);
  });
});

test('a will goes out after its delay, and not when the client is back before', async () => {
  const will = {
    topic: 'up/state',
    payload: Buffer.from('gone'),
    qos: 1 as const,
    retain: true,
    properties: { willDelayInterval: 20 },
  };
  await withBroker(async ({ broker, client, after }) => {
    const first = await client('kit', { will, ...kept });
    first.drop();
    await after(10_000);
    const second = await client('kit', { will, ...kept });
    await after(60_000);
    expect(broker.retained.size).toBe(0);
    second.drop();
    await after(19_000);
    expect(broker.retained.size).toBe(0);
    await after(2_000);
    expect(broker.retained.get('up/state')?.payload.toString()).toBe('gone');
  });
});

test('a second client with the same id takes over, and the first one gets the reason', async () => {
  await withBroker(async ({ client, after }) => {
    const first = await client('kit');
    await client('kit');
    await after(100);
    expect(first.packets.at(-1)).toMatchObject({ cmd: 'disconnect', reasonCode: 0x8e });
  });
});

test('a broker that is killed names what it lost without persistence, and loses nothing with it', async () => {
  await withBroker(async ({ broker, client, after, lost }) => {
    const cloud = await client('cloud', kept);
    cloud.send(subscribe('up/#'));
    await after(100);
    cloud.drop();
    const kit = await client('kit');
    kit.send(publish('up/x', '1'));
    await after(100);
    broker.kill(true);
    broker.start();
    expect(broker.session('cloud')?.held).toHaveLength(1);
    expect(lost).toEqual([]);
    broker.kill(false);
    broker.start();
    expect(lost).toEqual(['up/x']);
    expect(broker.session('cloud')).toBeUndefined();
  });
});
