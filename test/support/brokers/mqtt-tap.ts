/** A proxy between a broker and a client of it that notes which messages the client has acknowledged. MQTT 5. */
import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { packetReader, packetTypes, readPublish, withoutProperties } from './raw-mqtt.ts';

export interface Delivery {
  readonly topic: string;
  readonly payload: Buffer;
}

export interface MqttTap {
  readonly port: number;
  close(): Promise<void>;
}

/** `onAcknowledged`: the client has sent the PUBACK of this message; the broker gets it even if the client dies. */
export async function startMqttTap(
  broker_port: number,
  onAcknowledged: (delivery: Delivery) => void,
): Promise<MqttTap> {
  const sockets = new Set<Socket>();
  const server = createServer({ noDelay: true }, (near) => {
    const far = connect({ port: broker_port, host: '127.0.0.1', noDelay: true });
    const under_way = new Map<number, Delivery>();
    const readDown = packetReader((packet) => {
      if (packet.type !== packetTypes.publish) return;
      const { topic, payload, packet_id } = withoutProperties(readPublish(packet));
      // A copy, since the payload is a part of the socket's buffer.
      if (packet_id !== undefined) under_way.set(packet_id, { topic, payload: Buffer.from(payload) });
    });
    const readUp = packetReader(({ type, body }) => {
      if (type !== packetTypes.puback) return;
      const delivery = under_way.get(body.readUInt16BE(0));
      under_way.delete(body.readUInt16BE(0));
      if (delivery) onAcknowledged(delivery);
    });
    near.on('data', readUp);
    far.on('data', readDown);
    near.pipe(far);
    far.pipe(near);
    for (const [one, other] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(one);
      one.on('error', () => undefined);
      one.on('close', () => {
        sockets.delete(one);
        other.end();
      });
    }
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('the tap has no port');
  return {
    port: address.port,
    async close() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}
