/** The stream between a socket and MQTT.js, over a real TCP connection whose other end the test holds. */
import { once } from 'node:events';
import { createServer, connect, type Socket } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { describe, expect, it, onTestFinished } from 'vitest';
import { type Oversize } from '../../../src/mqtt/frames.ts';
import { MqttStream } from '../../../src/mqtt/stream.ts';
import { framed, string, uint16 } from '../../support/brokers/scripted-broker.ts';
import { eventually } from '../../support/eventually.ts';

const puback = (id: number, ...code: number[]): Buffer => framed(0x40, uint16(id), Buffer.from(code));
/** What is MQTT.js's, of any length. */
const suback = (id: number, codes_bytes = 1): Buffer =>
  framed(0x90, uint16(id), Buffer.from([0]), Buffer.alloc(codes_bytes, 1));
const publish = (payload: Buffer): Buffer =>
  framed(0x32, string('k1/x/down/task'), uint16(9), Buffer.from([0]), payload);

async function pair(packet_bytes_max = 1_000) {
  const server = createServer();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  const port = typeof address === 'object' && address ? address.port : 0;
  const accepted = once(server, 'connection') as Promise<[Socket]>;
  const tcp = connect(port, '127.0.0.1');
  await once(tcp, 'connect');
  const oversize: Oversize[] = [];
  const skipped: Oversize[] = [];
  const messages: string[] = [];
  const stream = new MqttStream(
    { stream: tcp, tcp },
    {
      protocol: '5',
      packet_bytes_max,
      onMessage: ({ payload }) => messages.push(payload.toString()),
      onOversize: (message) => oversize.push(message),
      onSkipped: (message) => skipped.push(message),
    },
  );
  const [broker] = await accepted;
  broker.on('error', () => undefined);
  onTestFinished(() => {
    stream.destroy();
    broker.destroy();
    server.close();
  });
  return { stream, broker, port, messages, oversize, skipped };
}

describe('MqttStream', () => {
  it('knows both addresses while it is connected', async () => {
    const { stream } = await pair();
    expect(stream.endpoints).toEqual({ local_ip: '127.0.0.1', remote_ip: '127.0.0.1' });
    stream.destroy();
    await eventually('its addresses are gone', () => stream.endpoints === null);
  });

  it('passes on what arrives, however it was cut, and ends with the broker', async () => {
    const { stream, broker } = await pair();
    const sent = Buffer.concat([suback(1), suback(2, 500), suback(3)]);
    const read = buffer(stream);
    for (let at = 0; at < sent.length; at += 100) broker.write(sent.subarray(at, at + 100));
    broker.end();
    expect(await read).toEqual(sent);
    expect(stream.failure).toBeUndefined();
  });

  it('passes on little in one turn of the event loop, however much a broker sends', async () => {
    const { stream, broker } = await pair();
    const sent = Buffer.alloc(400_000, Buffer.from([0xd0, 0]));
    let [bytes, in_turn, in_turn_max] = [0, 0, 0];
    const nextTurn = (): void => {
      in_turn = 0;
      if (!stream.destroyed) setImmediate(nextTurn);
    };
    nextTurn();
    stream.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
      in_turn += chunk.length;
      in_turn_max = Math.max(in_turn_max, in_turn);
    });
    broker.write(sent);
    await eventually('all of it is read', () => bytes === sent.length);
    // Between two turns of this test there is one of the socket and one of the stream.
    expect(in_turn_max).toBeLessThanOrEqual(2 * 8_192);
  });

  it.each<[string, Buffer]>([
    ['of acknowledgements', Buffer.concat(Array.from({ length: 30_000 }, (_, id) => puback(id)))],
    ['of a packet above the limit', publish(Buffer.alloc(300_000))],
  ])('reads on after many bytes %s, of which it passes on none', async (_, sent) => {
    const { stream, broker, messages } = await pair();
    let answered = 0;
    stream.handlePubacks(() => (answered += 1));
    const read = buffer(stream);
    broker.write(sent);
    broker.end(Buffer.concat([publish(Buffer.from('last')), suback(1)]));
    expect(await read).toEqual(suback(1));
    expect(messages).toEqual(['last']);
    expect(answered).toBe(sent[0] === 0x40 ? 30_000 : 0);
  });

  it('counts every byte as a sign of life, those that are read past included', async () => {
    const { stream, broker } = await pair(100);
    stream.on('data', () => undefined);
    const large = publish(Buffer.alloc(50_000, 1));
    broker.write(large.subarray(0, 1_000));
    await eventually('it is being read past', () => stream.skipping !== undefined);
    const before_ms = stream.last_received_ms;
    broker.write(large.subarray(1_000, 2_000));
    await eventually('a later byte counts', () => stream.last_received_ms > before_ms);
  });

  it('takes a broker for alive while it does not read itself', async () => {
    const { stream, broker } = await pair(1_000_000);
    for (let each = 0; each < 40; each += 1) broker.write(suback(each, 50_000));
    // Nothing reads the stream: its buffer fills, and it stops reading the socket.
    await eventually('it has stopped reading', () => {
      const first_ms = stream.last_received_ms;
      const until_ms = performance.now() + 5;
      while (performance.now() < until_ms);
      return stream.last_received_ms > first_ms && stream.readableLength > 0;
    });
    expect(stream.readableLength).toBeGreaterThan(0);
  });

  it('takes nothing more from the socket while it is held, and all of it afterwards', async () => {
    const { stream, broker, messages } = await pair(1_000_000);
    stream.on('data', () => undefined);
    broker.write(publish(Buffer.from('first')));
    await eventually('the first arrives', () => messages.length === 1);
    stream.hold();
    broker.write(Buffer.concat([publish(Buffer.from('second')), publish(Buffer.from('third'))]));
    const held_ms = performance.now();
    await eventually('some time has passed', () => performance.now() > held_ms + 50);
    expect(messages).toEqual(['first']);
    expect(stream.last_received_ms).toBeGreaterThan(held_ms + 50);
    stream.readOn();
    await eventually('the others arrive', () => messages.length === 3);
  });
});
