/** Publishes with QoS 1 over a connection: encodes the packets, and matches the PUBACKs with them. */
import type { MqttClient, Packet } from 'mqtt';
import type { ProtocolVersion } from './broker.ts';
import type { PubackPacket } from './frames.ts';
import type { MqttStream } from './stream.ts';
import { texts } from './texts.ts';

export interface Publication {
  readonly topic: string;
  readonly body: string | Buffer;
  readonly retain: boolean;
  /** MQTT 5 only. */
  readonly expiry_s: number | undefined;
}

type Answered = (answer: PubackPacket | Error) => void;

/**
 * Messages above what the broker takes at once. The uplink keeps what it sends within the Receive Maximum; a birth, a state and a farewell come
 * on top. A broker that answers pings and nothing else would let these grow without end: the connection is ended instead.
 */
export const waiting_max = 100;

/** MQTT packet identifiers (MQTT 5 section 2.2.1): an identifier in use is never issued again. */
const id_max = 65_535;

/** PUBLISH with QoS 1, neither a duplicate nor retained. */
const first_byte = 0x32;
const retain_flag = 1;
const message_expiry_interval = 2;
/** Its identifier and four bytes. */
const expiry_bytes = 5;

interface PublisherParts {
  readonly client: MqttClient;
  readonly stream: MqttStream;
  readonly packet_ids: PacketIds;
  readonly protocol: ProtocolVersion;
}

export class Publisher {
  readonly #stream: MqttStream;
  readonly #packet_ids: PacketIds;
  readonly #protocol: ProtocolVersion;
  /** By packet identifier. */
  readonly #unanswered = new Map<number, Answered>();
  readonly #receive_maximum: number;
  /** As many as the broker takes are unanswered, or all packet identifiers are in use; `waiting_max` at most. */
  readonly #waiting: { readonly publication: Publication; readonly answered: Answered }[] = [];
  #is_closed = false;
  #onIdle: (() => void) | undefined;

  /** `receive_maximum`: messages that the broker takes before it has acknowledged one of them. */
  constructor({ client, stream, packet_ids, protocol }: PublisherParts, receive_maximum: number) {
    this.#stream = stream;
    this.#packet_ids = packet_ids;
    this.#protocol = protocol;
    this.#receive_maximum = receive_maximum;
    stream.handlePubacks((puback) => this.#answer(puback.packet_id, puback));
    // What answers no message with QoS 1.
    client.on('packetreceive', (packet) => {
      if (isWrongAnswer(packet))
        this.#answer(packet.messageId ?? 0, new Error(texts.wrong_answer(packet.cmd)));
    });
  }

  /** `answered` gets the PUBACK, or an error after which none can come. Not called when the connection ends first. */
  publish(publication: Publication, answered: Answered): void {
    if (this.#is_closed || !this.#stream.writable) return;
    if (this.#waiting.length === 0 && this.#send(publication, answered)) return;
    if (this.#waiting.length < waiting_max) this.#waiting.push({ publication, answered });
    else answered(new Error(texts.acknowledges_too_few));
  }

  /** Sends nothing more. Resolves when every message has its answer. */
  async close(): Promise<void> {
    this.#is_closed = true;
    this.#waiting.length = 0;
    if (this.#unanswered.size === 0) return;
    return new Promise((resolve) => {
      this.#onIdle = resolve;
    });
  }

  /** False: it has to wait until another one is answered. */
  #send(publication: Publication, answered: Answered): boolean {
    if (this.#unanswered.size >= this.#receive_maximum) return false;
    const packet_id = this.#packet_ids.allocate();
    if (packet_id === null) return false;
    this.#unanswered.set(packet_id, answered);
    this.#stream.send(encodePublish(publication, packet_id, this.#protocol));
    return true;
  }

  #answer(packet_id: number, answer: PubackPacket | Error): void {
    const answered = this.#unanswered.get(packet_id);
    if (!answered) return;
    this.#unanswered.delete(packet_id);
    this.#packet_ids.deallocate(packet_id);
    answered(answer);
    const [next] = this.#waiting;
    if (next && this.#stream.writable && this.#send(next.publication, next.answered)) this.#waiting.shift();
    if (this.#unanswered.size === 0) this.#onIdle?.();
  }
}

/** The answers to another kind of packet. */
function isWrongAnswer(packet: Packet) {
  const { cmd } = packet;
  return cmd === 'pubrec' || cmd === 'pubcomp' || cmd === 'suback' || cmd === 'unsuback';
}

/** Has the methods that MQTT.js calls on a `messageIdProvider`. */
export class PacketIds {
  readonly #used = new Set<number>();
  #last = 0;

  /** The next free identifier; null while all 65,535 are in use. */
  allocate(): number | null {
    if (this.#used.size >= id_max) return null;
    do this.#last = this.#last >= id_max ? 1 : this.#last + 1;
    while (this.#used.has(this.#last));
    this.#used.add(this.#last);
    return this.#last;
  }

  getLastAllocated(): number | null {
    return this.#last === 0 ? null : this.#last;
  }

  register(id: number): boolean {
    if (this.#used.has(id)) return false;
    this.#used.add(id);
    return true;
  }

  deallocate(id: number): void {
    this.#used.delete(id);
  }

  clear(): void {
    this.#used.clear();
  }
}

/** Bytes of the whole packet. */
export function publishBytes(publication: Publication, protocol: ProtocolVersion): number {
  const remaining = remainingBytes(publication, protocol);
  return 1 + lengthBytes(remaining) + remaining;
}

/**
 * The packet, with QoS 1, in one buffer. Written by mqtt-packet, each would go out in eight pieces, and the library would keep a slice
 * of a pool of small buffers for every length that a packet ever had: up to 64 KiB each. Throws `RangeError` when the topic has more than 65,535 bytes.
 */
export function encodePublish(
  publication: Publication,
  packet_id: number,
  protocol: ProtocolVersion,
): Buffer {
  const { topic, body, retain, expiry_s } = publication;
  const remaining = remainingBytes(publication, protocol);
  const packet = Buffer.allocUnsafe(1 + lengthBytes(remaining) + remaining);
  packet[0] = first_byte | (retain ? retain_flag : 0);
  let at = writeLength(packet, remaining, 1);
  const topic_bytes = packet.write(topic, at + 2);
  at = packet.writeUInt16BE(topic_bytes, at) + topic_bytes;
  at = packet.writeUInt16BE(packet_id, at);
  if (protocol === '5') {
    packet[at++] = expiry_s === undefined ? 0 : expiry_bytes;
    if (expiry_s !== undefined) {
      packet[at++] = message_expiry_interval;
      at = packet.writeUInt32BE(expiry_s, at);
    }
  }
  if (typeof body === 'string') packet.write(body, at);
  else packet.set(body, at);
  return packet;
}

/** Of what follows the Remaining Length. */
function remainingBytes(publication: Publication, protocol: ProtocolVersion): number {
  const { topic, body } = publication;
  return 2 + Buffer.byteLength(topic) + 2 + propertiesBytes(publication, protocol) + Buffer.byteLength(body);
}

/** With their length; MQTT 3.1.1 has none. */
function propertiesBytes({ expiry_s }: Publication, protocol: ProtocolVersion): number {
  if (protocol !== '5') return 0;
  return expiry_s === undefined ? 1 : 1 + expiry_bytes;
}

/** Of a Variable Byte Integer (MQTT 5 section 1.5.5). */
function lengthBytes(length: number): number {
  if (length < 128) return 1;
  if (length < 16_384) return 2;
  return length < 2_097_152 ? 3 : 4;
}

/** Returns where it ends. */
function writeLength(packet: Buffer, length: number, from: number): number {
  let at = from;
  let rest = length;
  while (rest >= 128) {
    packet[at++] = (rest % 128) | 128;
    rest = Math.floor(rest / 128);
  }
  packet[at++] = rest;
  return at;
}
