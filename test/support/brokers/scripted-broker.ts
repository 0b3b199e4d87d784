/** A broker on the loopback that does what a test tells it to, also what no real one may: MQTT 3.1.1 and 5, QoS 1 only. */
import { once } from 'node:events';
import { createServer, type Socket } from 'node:net';
import { type Packet, packetReader, packetTypes } from './raw-mqtt.ts';

export interface Published {
  readonly topic: string;
  readonly packet_id: number;
  readonly retain: boolean;
  readonly payload: string;
  readonly body: Buffer;
}

/** One connection of a client. */
export interface Peer {
  readonly version: 4 | 5;
  /** Bytes of the CONNECT packet behind its fixed header. */
  readonly connect: Buffer;
  /** Its CONNECT has a will, which is to be retained. */
  readonly retains_will: boolean;
  write(bytes: Buffer | string): void;
  connack(code?: number, properties?: Buffer): void;
  puback(packet_id: number, code?: number): void;
  suback(packet_id: number, codes: readonly number[]): void;
  /** Reads nothing for so long. */
  pause(ms: number): void;
  /** QoS 1; with `packet_id`. */
  publish(topic: string, payload: Buffer | string, packet_id?: number): void;
  /** DISCONNECT of MQTT 5, then the end of the connection. */
  disconnect(code: number, reason?: string): void;
  /** Ends the connection without a word. */
  hangUp(): void;
  /** Called once the connection is closed, by either side. */
  onClose(closed: () => void): void;
}

export interface Script {
  /** Default: CONNACK 0. */
  readonly onConnect?: (peer: Peer) => void;
  /** Default: PUBACK 0. */
  readonly onPublish?: (message: Published, peer: Peer) => void;
  /** Called before the PINGRESP. */
  readonly onPing?: () => void;
  /** Called after the SUBACK. */
  readonly onSubscribed?: (filters: readonly string[], peer: Peer) => void;
  /** Default: SUBACK that grants everything. `options`: the byte behind each filter. */
  readonly onSubscribe?: (
    packet_id: number,
    filters: readonly string[],
    peer: Peer,
    options: readonly number[],
  ) => void;
}

export interface ScriptedBroker {
  readonly port: number;
  readonly url: string;
  /** Every connection so far that sent its CONNECT, in order. */
  readonly peers: readonly Peer[];
  /** Everything that clients published so far. */
  readonly published: readonly Published[];
  /** Packet ids of the PUBACKs that clients sent, in order. */
  readonly acknowledged: readonly number[];
  /** Replaces the script; what it leaves out is the default again. */
  follow(script: Script): void;
  /** Nothing that arrives is read any more. */
  silence(): void;
  close(): Promise<void>;
}

const connect_type = 1;
const subscribe_type = 8;
const unsubscribe_type = 10;
const ping_type = 12;
const will_retain_flag = 0x20;

export async function startScriptedBroker(first: Script = {}): Promise<ScriptedBroker> {
  let script = first;
  const sockets = new Set<Socket>();
  const peers: Peer[] = [];
  const published: Published[] = [];
  const acknowledged: number[] = [];
  const server = createServer({ noDelay: true }, (socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    socket.on('close', () => sockets.delete(socket));
    let peer: Peer | undefined;
    const read = packetReader((packet) => {
      if (packet.type === connect_type) {
        peer = peerOn(socket, packet.body);
        peers.push(peer);
        if (script.onConnect) script.onConnect(peer);
        else peer.connack();
      } else if (peer) {
        serve(packet, peer);
      }
    });
    socket.on('data', read);
  });
  const serve = (packet: Packet, peer: Peer): void => {
    switch (packet.type) {
      case packetTypes.publish: {
        const message = readPublished(packet, peer.version);
        published.push(message);
        if (script.onPublish) script.onPublish(message, peer);
        else peer.puback(message.packet_id);
        break;
      }
      case packetTypes.puback:
        acknowledged.push(packet.body.readUInt16BE(0));
        break;
      case subscribe_type: {
        const { packet_id, filters, options } = readSubscribe(packet.body, peer.version);
        if (script.onSubscribe) script.onSubscribe(packet_id, filters, peer, options);
        else
          peer.suback(
            packet_id,
            filters.map(() => 1),
          );
        script.onSubscribed?.(filters, peer);
        break;
      }
      case unsubscribe_type: {
        const id = packet.body.subarray(0, 2);
        peer.write(framed(0xb0, peer.version === 5 ? Buffer.concat([id, Buffer.from([0, 0])]) : id));
        break;
      }
      case ping_type:
        script.onPing?.();
        peer.write(framed(0xd0, Buffer.alloc(0)));
        break;
      default:
        break;
    }
  };
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('the broker has no port');
  return {
    port: address.port,
    url: `mqtt://127.0.0.1:${address.port}`,
    peers,
    published,
    acknowledged,
    follow: (next) => (script = next),
    silence() {
      for (const socket of sockets) socket.pause();
    },
    async close() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}

function peerOn(socket: Socket, connect: Buffer): Peer {
  // Behind the length and the letters of `MQTT`.
  const version = connect.readUInt8(6) === 5 ? 5 : 4;
  const write = (bytes: Buffer | string): void => {
    if (!socket.destroyed) socket.write(bytes);
  };
  const isV5 = version === 5;
  return {
    version,
    connect,
    retains_will: (connect.readUInt8(7) & will_retain_flag) > 0,
    write,
    connack: (code = 0, properties = Buffer.alloc(0)) =>
      write(framed(0x20, Buffer.from([0, code]), isV5 ? withLength(properties) : Buffer.alloc(0))),
    puback: (packet_id, code = 0) =>
      write(framed(0x40, uint16(packet_id), isV5 && code !== 0 ? Buffer.from([code, 0]) : Buffer.alloc(0))),
    suback: (packet_id, codes) => write(suback(packet_id, codes, version)),
    pause(ms) {
      socket.pause();
      setTimeout(() => socket.resume(), ms);
    },
    publish: (topic, payload, packet_id = 1) => {
      const head = [string(topic), uint16(packet_id), isV5 ? Buffer.from([0]) : Buffer.alloc(0)];
      write(framed(0x32, ...head, Buffer.from(payload)));
    },
    disconnect(code, reason) {
      const properties = reason === undefined ? Buffer.alloc(0) : property(0x1f, string(reason));
      write(framed(0xe0, Buffer.from([code]), withLength(properties)));
      socket.end();
    },
    hangUp: () => void socket.end(),
    onClose: (closed) => void socket.once('close', closed),
  };
}

/** A property of MQTT 5, for `connack`. */
export function property(id: number, value: Buffer): Buffer {
  return Buffer.concat([Buffer.from([id]), value]);
}

export function suback(packet_id: number, codes: readonly number[], version: 4 | 5): Buffer {
  return framed(
    0x90,
    uint16(packet_id),
    version === 5 ? Buffer.from([0]) : Buffer.alloc(0),
    Buffer.from(codes),
  );
}

export function framed(first: number, ...parts: readonly Buffer[]): Buffer {
  const body = Buffer.concat(parts);
  return Buffer.concat([Buffer.from([first]), varint(body.length), body]);
}

/** The fixed header alone, of a packet whose body is sent piece by piece. */
export function headerOf(first: number, body_bytes: number): Buffer {
  return Buffer.concat([Buffer.from([first]), varint(body_bytes)]);
}

export function string(value: string): Buffer {
  const bytes = Buffer.from(value);
  return Buffer.concat([uint16(bytes.length), bytes]);
}

export function uint16(value: number): Buffer {
  const bytes = Buffer.alloc(2);
  bytes.writeUInt16BE(value);
  return bytes;
}

function withLength(properties: Buffer): Buffer {
  return Buffer.concat([varint(properties.length), properties]);
}

function varint(value: number): Buffer {
  const bytes: number[] = [];
  let left = value;
  do {
    const isMore = left >= 128;
    bytes.push((left % 128) | (isMore ? 128 : 0));
    left = Math.floor(left / 128);
  } while (left > 0);
  return Buffer.from(bytes);
}

function readPublished({ flags, body }: Packet, version: 4 | 5): Published {
  const topic_end = 2 + body.readUInt16BE(0);
  const hasId = ((flags >> 1) & 3) > 0;
  let at = topic_end + (hasId ? 2 : 0);
  if (version === 5) at = endOfProperties(body, at);
  return {
    topic: body.toString('utf8', 2, topic_end),
    packet_id: hasId ? body.readUInt16BE(topic_end) : 0,
    retain: (flags & 1) === 1,
    payload: body.toString('utf8', at),
    body: body.subarray(at),
  };
}

function readSubscribe(body: Buffer, version: 4 | 5) {
  const filters: string[] = [];
  const options: number[] = [];
  let at = version === 5 ? endOfProperties(body, 2) : 2;
  while (at < body.length) {
    const end = at + 2 + body.readUInt16BE(at);
    filters.push(body.toString('utf8', at + 2, end));
    options.push(body.readUInt8(end));
    at = end + 1;
  }
  return { packet_id: body.readUInt16BE(0), filters, options };
}

function endOfProperties(body: Buffer, from: number): number {
  let length = 0;
  for (let n = 0; n < 4; n++) {
    const byte = body.readUInt8(from + n);
    length += (byte & 127) * 128 ** n;
    if (byte < 128) return from + n + 1 + length;
  }
  throw new Error('properties without an end');
}
