/**
 * Encodes PUBLISH packets (MQTT 5 section 3.3). Nearly everything that a kit sends is one of them: written by MQTT.js, each is
 * copied as an object and goes out in eight pieces.
 */
import type { ProtocolVersion } from '../broker.ts';

export interface Publication {
  readonly topic: string;
  readonly body: string | Buffer;
  readonly retain: boolean;
  /** MQTT 5 only. */
  readonly expiry_s: number | undefined;
}

/** PUBLISH with QoS 1, neither a duplicate nor retained. */
const first_byte = 0x32;
const retain_flag = 1;
const message_expiry_interval = 2;
/** Its identifier and four bytes. */
const expiry_bytes = 5;

/** Bytes of the whole packet. */
export function publishBytes(publication: Publication, protocol: ProtocolVersion): number {
  const remaining = remainingBytes(publication, protocol);
  return 1 + lengthBytes(remaining) + remaining;
}

/** The packet, with QoS 1. Throws `RangeError` when the topic has more than 65,535 bytes. */
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
