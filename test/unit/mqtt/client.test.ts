/** What the session needs of MQTT.js beyond its documentation: a release of it that differs fails here. */
import { connect as connectTcp, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { describe, expect, it } from 'vitest';
import {
  isConnackTimeout,
  newClient,
  type MqttClient,
  type Packet,
  subscribeAll,
} from '../../../src/mqtt/client.ts';
import { eventually, letPass } from '../../support/eventually.ts';
import {
  type Script,
  type ScriptedBroker,
  startScriptedBroker,
  suback,
} from '../../support/brokers/scripted-broker.ts';

type Take = Parameters<typeof newClient>[2];

async function withClient(
  script: Script,
  play: (client: MqttClient, broker: ScriptedBroker, socket: () => Socket) => Promise<void>,
  take: Take = (_, resume) => resume(),
  connect_timeout_ms = 10_000,
): Promise<void> {
  const broker = await startScriptedBroker(script);
  const sockets: Socket[] = [];
  const open = (): Duplex => {
    const socket = connectTcp({ port: broker.port, host: '127.0.0.1' });
    sockets.push(socket);
    return socket;
  };
  const client = newClient(
    open,
    { clientId: 'kit', protocolVersion: 5, keepalive: 1, connectTimeout: connect_timeout_ms, clean: false },
    take,
  );
  client.on('error', () => undefined);
  try {
    client.connect();
    await play(client, broker, () => {
      const [socket] = sockets;
      if (!socket) throw new Error('the client opened no socket');
      return socket;
    });
  } finally {
    client.end(true);
    for (const socket of sockets) socket.destroy();
    await broker.close();
  }
}

async function connected(client: MqttClient): Promise<void> {
  await eventually('it is connected', () => client.connected);
}

describe('MQTT.js', () => {
  it('sends no PUBACK for a message and reads the next one as soon as it may', async () => {
    const taken: string[] = [];
    const waiting: (() => void)[] = [];
    await withClient(
      {},
      async (client, broker) => {
        await connected(client);
        broker.peers[0]?.publish('a', 'x', 1);
        broker.peers[0]?.publish('b', 'x', 2);
        await eventually('the first is taken', () => taken.length === 1);
        await letPass(50);
        expect(taken).toEqual(['a']);
        waiting[0]?.();
        await eventually('the second is taken', () => taken.length === 2);
        await letPass(50);
        expect(broker.acknowledged).toEqual([]);
        expect(client.connected).toBe(true);
      },
      ({ topic }, resume) => {
        taken.push(topic);
        waiting.push(resume);
      },
    );
  });

  it('hands over the PUBACK of a message that it did not send, and stays connected', async () => {
    await withClient({}, async (client, broker) => {
      await connected(client);
      const received: Packet[] = [];
      client.on('packetreceive', (packet) => received.push(packet));
      broker.peers[0]?.puback(7, 0x87);
      broker.peers[0]?.puback(8);
      await eventually('both are handed over', () => received.length === 2);
      expect(received).toMatchObject([
        { cmd: 'puback', messageId: 7, reasonCode: 0x87 },
        { cmd: 'puback', messageId: 8 },
      ]);
      await letPass(20);
      expect(client.connected).toBe(true);
    });
  });

  it('returns the codes of a SUBACK that refuses', async () => {
    const script: Script = {
      onSubscribe: (packet_id, _, peer) => peer.write(suback(packet_id, [1, 0x87], peer.version)),
    };
    await withClient(script, async (client) => {
      await connected(client);
      expect(await subscribeAll(client, ['a', 'b'], {})).toEqual([1, 0x87]);
    });
  });

  it('reports a CONNACK that does not come by an error that is recognized', async () => {
    await withClient(
      { onConnect: () => undefined },
      async (client) => {
        const error = await new Promise<Error>((resolve) => {
          client.once('error', resolve);
        });
        expect(isConnackTimeout(error)).toBe(true);
      },
      (_, resume) => resume(),
      200,
    );
  });

  it('measures no keep-alive itself', async () => {
    await withClient({}, async (client, broker, socket) => {
      await connected(client);
      broker.silence();
      const { bytesWritten } = socket();
      await letPass(2_500);
      expect(socket().bytesWritten).toBe(bytesWritten);
      expect(client.connected).toBe(true);
    });
  });

  it('does not reconnect automatically', async () => {
    await withClient({}, async (client, broker) => {
      await connected(client);
      broker.peers[0]?.hangUp();
      await eventually('it is closed', () => !client.connected);
      await letPass(100);
      expect(broker.peers).toHaveLength(1);
    });
  });
});
