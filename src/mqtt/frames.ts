/**
 * Cuts the byte stream of a broker into packets. Messages and their acknowledgements (PUBLISH with QoS 0 and 1, PUBACK) are decoded
 * here with mqtt-packet; all others are MQTT.js's. Nothing larger than agreed is ever held in memory, and what the library
 * cannot read although it is legal, or harmless, does not end the connection.
 */
import { type IPublishPacket, type Packet, type Parser, parser } from 'mqtt-packet';
import type { Details } from './codes.ts';
import { texts } from './texts.ts';

/** A PUBLISH above the limit. It is read past and its payload is discarded. */
export interface Oversize {
  readonly topic: string;
  readonly bytes: number;
  /** Undefined at QoS 0. */
  readonly packet_id: number | undefined;
}

/** A PUBACK; `code` may be one that MQTT 5 does not list. */
export interface PubackPacket {
  readonly packet_id: number;
  readonly code: number;
  readonly details?: Details | undefined;
}

export interface FrameOptions {
  readonly protocol: '5' | '3.1.1';
  readonly packet_bytes_max: number;
  readonly onMessage: (message: IPublishPacket) => void;
  /** No further packet is begun meanwhile. */
  readonly isHeld: () => boolean;
  readonly onPuback: (puback: PubackPacket) => void;
  /** As soon as its topic has arrived. */
  readonly onOversize: (message: Oversize) => void;
  /** Once all of it was read past. */
  readonly onSkipped: (message: Oversize) => void;
}

/** The stream is not MQTT, or is not meant for a client: the connection is unusable. */
export class MalformedPacket extends Error {
  override readonly name = 'MalformedPacket';
}

const packet_types = { publish: 3, puback: 4, disconnect: 14 } as const;
/** Packet types that a broker may send, with the flags of MQTT 5 section 2.1.3; undefined: any. */
const flags_by_type: ReadonlyMap<number, number | undefined> = new Map([
  [2, 0],
  [3, undefined],
  [4, 0],
  [5, 0],
  [6, 2],
  [7, 0],
  [9, 0],
  [11, 0],
  [13, 0],
  [14, 0],
  [15, 0],
]);
/** Bytes behind the header without which a packet has no packet id, or no reason codes; the library takes them for the number -1. */
const body_bytes_min: ReadonlyMap<number, number> = new Map([
  [2, 2],
  [4, 2],
  [5, 2],
  [6, 2],
  [7, 2],
  [9, 3],
  [11, 2],
]);
/** MQTT 5 section 3.4.2.1. */
const puback_codes: ReadonlySet<number> = new Set([0, 0x10, 0x80, 0x83, 0x87, 0x90, 0x91, 0x97, 0x99]);

interface Header {
  readonly type: number;
  readonly qos: number;
  readonly body_at: number;
  readonly body_bytes: number;
}

export class FrameFilter {
  readonly #options: FrameOptions;
  readonly #codec: Parser;
  /** The beginning of a packet that cannot be judged yet (a header, and at most a topic), or what came while it was held. */
  #held: Buffer = Buffer.alloc(0);
  /** Bytes that are still to come of the packet under way, and where they go. */
  #left_bytes = 0;
  #target: 'client' | 'codec' | 'nowhere' = 'client';
  #skipping: Oversize | undefined;
  #hasBegun = false;

  constructor(options: FrameOptions) {
    this.#options = options;
    this.#codec = parser({ protocolVersion: options.protocol === '5' ? 5 : 4 });
    this.#codec.on('packet', (packet) => this.#decoded(packet));
    this.#codec.on('error', (error: Error) => {
      throw new MalformedPacket(error.message, { cause: error });
    });
  }

  /** Bytes that are still to come of the packet that is passed on, decoded or read past. */
  get bytes_left(): number {
    return this.#left_bytes;
  }

  /** Part of a message that is being read past. */
  get skipping(): Oversize | undefined {
    return this.#skipping;
  }

  /** Takes what arrived, with what was kept before; returns what MQTT.js is to read. Throws when the connection is unusable. */
  push(chunk: Buffer): readonly Buffer[] {
    const bytes = this.#held.length > 0 ? Buffer.concat([this.#held, chunk]) : chunk;
    this.#held = Buffer.alloc(0);
    const out: Buffer[] = [];
    let at = 0;
    while (at < bytes.length) {
      if (this.#left_bytes > 0) {
        const end = Math.min(at + this.#left_bytes, bytes.length);
        this.#take(bytes.subarray(at, end), out);
        at = end;
        continue;
      }
      const next = this.#options.isHeld() ? undefined : this.#next(bytes, at, out);
      if (next === undefined) {
        this.#held = bytes.subarray(at);
        break;
      }
      at = next;
    }
    return out;
  }

  /** As `#begin`; what a connection begins with may show that no broker is there. */
  #next(bytes: Buffer, at: number, out: Buffer[]): number | undefined {
    try {
      const header = readHeader(bytes, at);
      const next = header && this.#begin(bytes, at, header, out);
      this.#hasBegun ||= next !== undefined;
      return next;
    } catch (error) {
      const words = this.#hasBegun ? undefined : otherServer(bytes);
      throw words === undefined ? error : new MalformedPacket(words);
    }
  }

  #take(some: Buffer, out: Buffer[]): void {
    this.#left_bytes -= some.length;
    if (this.#target === 'client') out.push(some);
    else if (this.#target === 'codec') this.#codec.parse(some);
    else if (this.#left_bytes === 0 && this.#skipping) {
      const skipped = this.#skipping;
      this.#skipping = undefined;
      this.#options.onSkipped(skipped);
    }
  }

  /**
   * Checks the packet that begins at `at` and decides where it goes. Returns where to go on reading; undefined while too little of
   * it has arrived.
   */
  #begin(bytes: Buffer, at: number, header: Header, out: Buffer[]): number | undefined {
    const { type, qos, body_at, body_bytes } = header;
    const { protocol, packet_bytes_max } = this.#options;
    const size = body_at - at + body_bytes;
    if (size > packet_bytes_max) return this.#beginOversize(bytes, size, header);
    if (!isWhole(bytes, header)) return undefined;
    if (protocol === '5' && type === packet_types.disconnect && body_bytes < 2) {
      if (bytes.length < body_at + body_bytes) return undefined;
      // MQTT 5 section 3.14.2.2.1 lets it end before the length of its properties; the library does not.
      const code = body_bytes === 1 ? bytes.readUInt8(body_at) : 0;
      out.push(Buffer.from([0xe0, 2, code, 0]));
      return body_at + body_bytes;
    }
    if (type === packet_types.puback) return this.#beginPuback(bytes, at, header);
    // QoS 2, which is not subscribed to, is left to MQTT.js.
    this.#route(type === packet_types.publish && qos < 2 ? 'codec' : 'client', size);
    return at;
  }

  #beginPuback(bytes: Buffer, at: number, { body_at, body_bytes }: Header): number | undefined {
    const hasCode = this.#options.protocol === '5' && body_bytes > 2;
    if (bytes.length < body_at + (hasCode ? 3 : 2)) return undefined;
    const code = hasCode ? bytes.readUInt8(body_at + 2) : 0;
    if (hasCode && puback_codes.has(code)) {
      this.#route('codec', body_at - at + body_bytes);
      return at;
    }
    // Without a code it needs no decoder; the library ends the connection at one that is not listed.
    this.#options.onPuback({ packet_id: bytes.readUInt16BE(body_at), code });
    this.#route('nowhere', body_bytes - 2);
    return body_at + 2;
  }

  #beginOversize(bytes: Buffer, size: number, header: Header): number | undefined {
    const { type, qos, body_at, body_bytes } = header;
    if (type !== packet_types.publish) throw new MalformedPacket(texts.packet_too_large(type, size));
    const head = publishHead(bytes, header);
    if (head === undefined || bytes.length < head.head_end) return undefined;
    const { topic_end } = head;
    const topic = bytes.toString('utf8', body_at + 2, topic_end);
    const packet_id = qos > 0 ? bytes.readUInt16BE(topic_end) : undefined;
    this.#skipping = { topic, bytes: size, packet_id };
    this.#route('nowhere', body_bytes);
    this.#options.onOversize(this.#skipping);
    return body_at;
  }

  #route(target: 'client' | 'codec' | 'nowhere', bytes: number): void {
    this.#target = target;
    this.#left_bytes = bytes;
  }

  #decoded(packet: Packet): void {
    if (packet.cmd === 'publish') {
      // None was agreed on, so that the topic is not known.
      if (packet.properties?.topicAlias !== undefined) throw new MalformedPacket(texts.topic_alias);
      this.#options.onMessage(packet);
    } else if (packet.cmd === 'puback') {
      const { messageId = 0, reasonCode = 0, properties } = packet;
      this.#options.onPuback({ packet_id: messageId, code: reasonCode, details: properties });
    }
  }
}

/** Throws when the packet is too short for its type. False while too little of it has arrived. */
function isWhole(bytes: Buffer, header: Header): boolean {
  const { type, body_bytes } = header;
  if (body_bytes < (body_bytes_min.get(type) ?? 0)) throw new MalformedPacket(texts.packet_cut(type));
  return type !== packet_types.publish || publishHead(bytes, header) !== undefined;
}

/** Where the topic of a PUBLISH and its packet id end. Undefined while the length of the topic has not arrived. */
function publishHead(
  bytes: Buffer,
  { qos, body_at, body_bytes }: Header,
): { readonly topic_end: number; readonly head_end: number } | undefined {
  if (body_bytes < 2) throw new MalformedPacket(texts.topic_cut);
  if (bytes.length < body_at + 2) return undefined;
  const topic_end = body_at + 2 + bytes.readUInt16BE(body_at);
  const head_end = topic_end + (qos > 0 ? 2 : 0);
  if (head_end > body_at + body_bytes) throw new MalformedPacket(texts.topic_cut);
  return { topic_end, head_end };
}

const words_max = 60;

/** What the first bytes of a connection show of a server that is no broker; undefined: nothing. */
function otherServer(bytes: Buffer): string | undefined {
  const [type, major] = bytes;
  // An alert or a handshake record: RFC 8446 section 5.1.
  if ((type === 0x15 || type === 0x16) && major === 3) return texts.speaks_tls;
  const line = /^[ -~]{4,}/u.exec(bytes.toString('latin1', 0, words_max))?.[0];
  if (line === undefined) return undefined;
  // As web servers, login pages of networks and proxies answer a CONNECT of MQTT.
  return line.startsWith('HTTP/') ? texts.speaks_http : texts.speaks_otherwise(line.trim());
}

/** Undefined while its bytes have not all arrived. */
function readHeader(bytes: Buffer, at: number): Header | undefined {
  const first = bytes.readUInt8(at);
  const type = first >> 4;
  const qos = (first >> 1) & 3;
  const flags = flags_by_type.get(type);
  const isValid = flags_by_type.has(type) && (flags === undefined ? qos < 3 : flags === (first & 15));
  if (!isValid) throw new MalformedPacket(texts.not_mqtt(first.toString(16)));
  let body_bytes = 0;
  for (let n = 0; n < 4; n++) {
    if (at + 1 + n >= bytes.length) return undefined;
    const byte = bytes.readUInt8(at + 1 + n);
    body_bytes += (byte & 127) * 128 ** n;
    if (byte < 128) return { type, qos, body_at: at + 2 + n, body_bytes };
  }
  throw new MalformedPacket(texts.length_unreadable);
}
