import { once } from 'node:events';
import { createServer } from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import type { BrokerOptions } from '../../../src/mqtt/broker.ts';
import { sleep } from '../../../src/platform/time.ts';
import { ConnectFailed } from '../../../src/mqtt/connect-failed.ts';
import { connectOnce, type Connection, type ConnectOptions } from '../../../src/mqtt/connect.ts';
import { BrokerAddresses } from '../../../src/mqtt/broker-addresses.ts';
import { openTransport } from '../../../src/mqtt/socket.ts';
import { texts } from '../../../src/mqtt/texts.ts';
import { eventually } from '../../support/eventually.ts';
import {
  headerOf,
  property,
  startScriptedBroker,
  string,
  uint16,
  type Script,
  type ScriptedBroker,
} from '../../support/brokers/scripted-broker.ts';
import { brokerOptions } from '../../support/brokers/broker-options.ts';

const packet_bytes_max = 10_000;
const never = new AbortController().signal;

function brokerAt(url: string, keepalive_s = 30): BrokerOptions {
  return brokerOptions(url, { keepalive_s, connect_timeout_ms: 500 });
}

async function withBroker(
  script: Script,
  play: (
    broker: ScriptedBroker,
    connect: (changes?: Partial<ConnectOptions>) => Promise<Connection>,
  ) => Promise<void>,
): Promise<void> {
  const broker = await startScriptedBroker(script);
  const end = new AbortController();
  const opened: Connection[] = [];
  try {
    await play(broker, async (changes = {}) => {
      const connection = await connectOnce(
        {
          broker: brokerAt(broker.url),
          client_id: 'kit',
          protocol: '5',
          session_expiry_s: 0,
          receive_maximum: 100,
          packet_bytes_max,
          onMessage: async () => true,
          onOversize: () => undefined,
          ...changes,
        },
        end.signal,
        (made) => {
          made.client.on('error', () => undefined);
          return made;
        },
      );
      opened.push(connection);
      return connection;
    });
  } finally {
    end.abort();
    for (const { client, stream } of opened) {
      client.end(true);
      stream.destroy();
    }
    await broker.close();
  }
}

async function failureOf(attempt: Promise<unknown>): Promise<ConnectFailed> {
  const error: unknown = await attempt.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (!(error instanceof ConnectFailed)) throw new Error(`not a ConnectFailed: ${String(error)}`);
  return error;
}

describe('a connection to a broker', () => {
  it('announces the largest packet that it reads', async () => {
    await withBroker({}, async (broker, connect) => {
      await connect();
      const announced = Buffer.alloc(5);
      announced.writeUInt8(0x27);
      announced.writeUInt32BE(packet_bytes_max, 1);
      expect(broker.peers[0]?.connect.includes(announced)).toBe(true);
    });
  });

  it('acknowledges each message when that one is handled, in any order, and none by itself', async () => {
    await withBroker({}, async (broker, connect) => {
      const first = Promise.withResolvers<boolean>();
      const handled: string[] = [];
      await connect({
        onMessage: async ({ topic }) => {
          handled.push(topic);
          if (topic === 'a') return first.promise;
          return topic !== 'left';
        },
      });
      const [peer] = broker.peers;
      peer?.publish('a', 'x', 1);
      peer?.publish('left', 'x', 2);
      peer?.publish('b', 'x', 3);
      await eventually('the last is acknowledged', () => broker.acknowledged.includes(3));
      expect(handled).toEqual(['a', 'left', 'b']);
      expect(broker.acknowledged).toEqual([3]);
      first.resolve(true);
      await eventually('the first is acknowledged', () => broker.acknowledged.includes(1));
      expect(broker.acknowledged).toEqual([3, 1]);
    });
  });

  it('reads no further while as many messages are being handled as may be, whatever the broker sends', async () => {
    const sent = 200;
    const unhandled_max = 5;
    const release: (() => void)[] = [];
    let handled = 0;
    const onSubscribed: Script['onSubscribed'] = (_filters, peer) => {
      for (let id = 1; id <= sent; id += 1) peer.publish('k1/down', `${id}`, id);
    };
    await withBroker({ onSubscribed }, async (broker, connect) => {
      const { client } = await connect({
        unhandled_max,
        onMessage: async () => {
          handled += 1;
          await new Promise<void>((resolve) => release.push(resolve));
          return true;
        },
      });
      client.subscribe('k1/down', { qos: 1 });
      await eventually('the first are being handled', () => handled === unhandled_max);
      await nextTurn();
      expect(handled).toBe(unhandled_max);
      await eventually('all are handled', () => {
        for (const go of release.splice(0)) go();
        return broker.acknowledged.length === sent;
      });
      expect(handled).toBe(sent);
    });
  });

  it('ends when a message cannot be handled', async () => {
    await withBroker({}, async (broker, connect) => {
      const { stream } = await connect({ onMessage: async () => Promise.reject(new Error('full')) });
      broker.peers[0]?.publish('a', 'x', 1);
      await eventually('it is closed', () => stream.destroyed);
      expect(stream.failure?.message).toBe('full');
      expect(broker.acknowledged).toEqual([]);
    });
  });

  it.each(['5', '3.1.1'] as const)(
    'reads past a message over the limit and acknowledges it, with MQTT %s',
    async (protocol) => {
      await withBroker({}, async (broker, connect) => {
        const handled: string[] = [];
        const refused: string[] = [];
        const { stream } = await connect({
          protocol,
          onMessage: async ({ topic }) => handled.push(topic) > 0,
          onOversize: ({ topic }) => refused.push(topic),
        });
        broker.peers[0]?.publish('large', Buffer.alloc(packet_bytes_max), 1);
        broker.peers[0]?.publish('small', 'x', 2);
        await eventually('both are acknowledged', () => broker.acknowledged.length === 2);
        expect(handled).toEqual(['small']);
        expect(refused).toEqual(['large']);
        expect(stream.destroyed).toBe(false);
      });
    },
  );

  it('stays when a PUBACK comes for a message that was not sent, and does not connect again by itself', async () => {
    await withBroker({}, async (broker, connect) => {
      const { client, stream } = await connect();
      broker.peers[0]?.puback(7, 0x87);
      broker.peers[0]?.puback(8);
      broker.peers[0]?.publish('a', 'x', 1);
      await eventually('what follows is read', () => broker.acknowledged.includes(1));
      expect(stream.destroyed).toBe(false);
      broker.peers[0]?.hangUp();
      await eventually('it is closed', () => !client.connected);
      expect(client.reconnecting).toBe(false);
      expect(broker.peers).toHaveLength(1);
    });
  });

  it('counts every byte as a sign of life while a message comes slowly', async () => {
    await withBroker({}, async (broker, connect) => {
      const { stream } = await connect({ broker: brokerAt(broker.url, 1) });
      const [peer] = broker.peers;
      const from_ms = performance.now();
      peer?.write(headerOf(0x30, 9_000));
      let sent = 0;
      while (performance.now() - from_ms < 3_000) {
        peer?.write(sent++ === 0 ? string('slow') : Buffer.alloc(10));
        await sleep(100, never);
      }
      expect(stream.destroyed).toBe(false);
    });
  });

  it('pings when nothing is sent, and ends when nothing at all follows the ping', async () => {
    let pings = 0;
    await withBroker({ onPing: () => (pings += 1) }, async (broker, connect) => {
      const { stream } = await connect({ broker: brokerAt(broker.url, 1) });
      await eventually('two pings are answered', () => pings === 2);
      expect(stream.destroyed).toBe(false);
      broker.silence();
      await eventually('it is closed', () => stream.destroyed, 4_000);
      expect(stream.failure?.message).toMatch(/no answer to a ping/);
    });
  });

  // `max_keepalive` of mosquitto, shamblett/mqtt5_client#51 and #69.
  it('pings as often as configured where the broker announces no keep alive, or one of hours', async () => {
    let pings = 0;
    const announced = [0, 65_535];
    const onConnect: Script['onConnect'] = (peer) =>
      peer.connack(0, property(0x13, uint16(announced.shift() ?? 1)));
    await withBroker({ onConnect, onPing: () => (pings += 1) }, async (broker, connect) => {
      await Promise.all([1, 2].map(async () => connect({ broker: brokerAt(broker.url, 1) })));
      await eventually('both are pinged', () => pings >= 2);
    });
  });

  it('does not take a stall of its own process for a silent broker', async () => {
    let pings = 0;
    const stall = (): void => {
      pings += 1;
      const until_ms = performance.now() + 800;
      while (performance.now() < until_ms);
    };
    await withBroker({ onPing: stall }, async (broker, connect) => {
      const { stream } = await connect({ broker: brokerAt(broker.url, 1) });
      await eventually('a ping follows the stall', () => pings === 2 || stream.destroyed);
      expect(stream.failure).toBeUndefined();
    });
  });

  it.each([
    ['closed', (): Script => ({ onConnect: (peer) => peer.hangUp() }), texts.closed_early],
    ['silent', (): Script => ({ onConnect: () => undefined }), texts.no_answer],
    [
      'refused',
      (): Script => ({ onConnect: (peer) => peer.connack(0x87, property(0x1f, string('no such tenant'))) }),
      'not authorized (0x87): "no such tenant"',
    ],
    [
      'refused',
      (): Script => ({ onConnect: (peer) => peer.connack(0x9d, property(0x1c, string('b2.example.com'))) }),
      'server moved (0x9d); the broker names b2.example.com',
    ],
  ] as const)('reports an attempt that is %s', async (stage, script, message) => {
    await withBroker(script(), async (_, connect) => {
      const failure = await failureOf(connect());
      expect({ stage: failure.stage, message: failure.message }).toEqual({ stage, message });
    });
  });

  it('tries another address of the name where the first takes the connection and has no broker', async () => {
    const broker = await startScriptedBroker();
    const { port } = broker;
    const hung = createServer((socket) => socket.on('error', () => undefined).destroy());
    hung.listen(port, '127.0.0.2');
    await once(hung, 'listening');
    const addresses = new BrokerAddresses({
      system: async () => ['127.0.0.2', '127.0.0.1'].map((address) => ({ address, family: 4 })),
      servers: async () => [],
    });
    const attempt = async () =>
      connectOnce(
        {
          broker: { ...brokerAt(`mqtt://b.example.com:${port}`), connect_timeout_ms: 60_000 },
          client_id: 'kit',
          protocol: '5',
          session_expiry_s: 0,
          receive_maximum: 100,
          packet_bytes_max,
          onMessage: async () => true,
          onOversize: () => undefined,
          openTransport: async (endpoint, signal) => openTransport(endpoint, signal, { addresses }),
        },
        never,
        (made) => made,
      );
    try {
      expect((await failureOf(attempt())).stage).toBe('closed');
      const { client, stream } = await attempt();
      client.end(true);
      stream.destroy();
    } finally {
      hung.close();
      await broker.close();
    }
  });

  it('reports a broker that cannot be reached', async () => {
    await withBroker({}, async (broker, connect) => {
      await broker.close();
      expect((await failureOf(connect())).stage).toBe('unreachable');
    });
  });

  it.each([
    ['that is no packet', Buffer.from([0, 0, 0, 0])],
    ['that MQTT.js cannot read', Buffer.from([0x40, 5, 0, 1, 0, 1, 0xff])],
  ])('ends when garbage follows the CONNACK %s', async (_, garbage) => {
    const script: Script = {
      onConnect: (peer) => {
        peer.write(Buffer.concat([Buffer.from([0x20, 3, 0, 0, 0]), garbage]));
      },
    };
    await withBroker(script, async (_, connect) => {
      const outcome = await connect().then(
        async ({ stream }) => {
          await eventually('it is closed', () => stream.destroyed);
          return 'closed';
        },
        () => 'closed',
      );
      expect(outcome).toBe('closed');
    });
  });
});
