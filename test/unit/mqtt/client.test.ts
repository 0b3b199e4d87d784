/** What the session needs of MQTT.js beyond its documentation: a release of it that differs fails here. */
import { connect as connectTcp, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { describe, expect, it } from 'vitest';
import {
  isConnackTimeout,
  newClient,
  Publisher,
  type MqttClient,
  type PubackPacket,
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
    { clientId: 'kit', protocolVersion: 5, keepalive: 1, connectTimeout: 200, clean: false },
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

const message = { topic: 'a', body: 'x', retain: false, expiry_s: undefined };

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

  it('calls the callback of a message right after the event of its PUBACK', async () => {
    const ids: number[] = [];
    const script: Script = {
      onPublish: ({ packet_id }, peer) => {
        ids.push(packet_id);
        if (ids.length < 3) return;
        for (const [n, code] of [0x10, 0x87, 0].entries()) peer.puback(ids[n] ?? 0, code);
      },
    };
    await withClient(script, async (client) => {
      await connected(client);
      const publisher = new Publisher(client);
      const answers: (PubackPacket | Error)[] = [];
      for (let n = 0; n < 3; n += 1) publisher.publish(message, (answer) => answers.push(answer));
      await eventually('all are answered', () => answers.length === 3);
      expect(
        answers.map((answer) => !(answer instanceof Error) && [answer.messageId, answer.reasonCode ?? 0]),
      ).toEqual([0x10, 0x87, 0].map((code, n) => [ids[n], code]));
    });
  });

  it('returns an error for a message after its end was requested', async () => {
    await withClient({}, async (client) => {
      await connected(client);
      client.end(false);
      const answers: unknown[] = [];
      new Publisher(client).publish(message, (answer) => answers.push(answer));
      await eventually('it is answered', () => answers.length === 1);
      expect(answers[0]).toBeInstanceOf(Error);
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
    await withClient({ onConnect: () => undefined }, async (client) => {
      const error = await new Promise<Error>((resolve) => {
        client.once('error', resolve);
      });
      expect(isConnackTimeout(error)).toBe(true);
    });
  });

  it('measures no keep-alive of its own', async () => {
    await withClient({}, async (client, broker, socket) => {
      await connected(client);
      broker.silence();
      const { bytesWritten } = socket();
      await letPass(2_500);
      expect(socket().bytesWritten).toBe(bytesWritten);
      expect(client.connected).toBe(true);
    });
  });

  it('does not reconnect by itself', async () => {
    await withClient({}, async (client, broker) => {
      await connected(client);
      broker.peers[0]?.hangUp();
      await eventually('it is closed', () => !client.connected);
      await letPass(100);
      expect(broker.peers).toHaveLength(1);
    });
  });
});
