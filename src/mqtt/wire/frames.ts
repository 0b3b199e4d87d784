/**
 * Cuts the byte stream of a broker into packets before MQTT.js reads it, so that nothing larger than agreed is ever held
 * in memory, and so that what MQTT.js cannot read although it is legal, or harmless, does not end the connection.
 */
import { texts } from '../texts.ts';

/** A PUBLISH above the limit. It is read past and its payload is discarded. */
export interface Oversize {
  readonly topic: string;
  readonly bytes: number;
  /** Undefined at QoS 0. */
  readonly packet_id: number | undefined;
}

export interface FrameOptions {
  readonly protocol: '5' | '3.1.1';
  readonly packet_bytes_max: number;
  /** As soon as its topic has arrived. */
  readonly onOversize: (message: Oversize) => void;
  /** Once all of it was read past. */
  readonly onSkipped: (message: Oversize) => void;
  /** A PUBACK has a code that MQTT 5 does not list for it; it is passed on as 0x80. */
  readonly onForeignCode: (packet_id: number, code: number) => void;
  /** Whether `takePubacks` returns the identifier of a PUBACK without a reason code, which is not passed on then. */
  readonly takesPuback: (packet_id: number) => boolean;
}

/** The stream is not MQTT, or is not meant for a client: the connection is unusable. */
export class MalformedPacket extends Error {
  override readonly name = 'MalformedPacket';
}

const packet = { publish: 3, puback: 4, disconnect: 14 } as const;
/** A PUBACK without a reason code. */
const puback_byte = 0x40;
const short_puback_bytes = 4;
const none: readonly number[] = [];
const unspecified_error = 0x80;
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
/** Bytes behind the header without which a packet has no packet id, or no reason codes; MQTT.js takes them for the number -1. */
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
  /** The beginning of a packet that cannot be judged yet: a header, and at most a topic. */
  #held: Buffer = Buffer.alloc(0);
  #pass_bytes = 0;
  #skip_bytes = 0;
  #skipping: Oversize | undefined;
  #pubacks: number[] = [];
  /** Passed on and not handled yet: those behind them follow, so that all are handled in their order. */
  #pubacks_passed = 0;

  constructor(options: FrameOptions) {
    this.#options = options;
  }

  /** Bytes that are still to come of the packet that is passed on or read past. */
  get bytes_left(): number {
    return this.#pass_bytes + this.#skip_bytes;
  }

  /** Part of a message that is being read past. */
  get skipping(): Oversize | undefined {
    return this.#skipping;
  }

  /** The identifiers of the PUBACKs that were not passed on since the last call. */
  takePubacks(): readonly number[] {
    if (this.#pubacks.length === 0) return none;
    const pubacks = this.#pubacks;
    this.#pubacks = [];
    return pubacks;
  }

  /** One of the PUBACKs that were passed on has been handled. */
  pubackHandled(): void {
    this.#pubacks_passed = Math.max(0, this.#pubacks_passed - 1);
  }

  /** Takes what arrived; returns what is to be passed on. Throws `MalformedPacket`. */
  push(chunk: Buffer): readonly Buffer[] {
    const bytes = this.#held.length > 0 ? Buffer.concat([this.#held, chunk]) : chunk;
    this.#held = Buffer.alloc(0);
    const out: Buffer[] = [];
    let run_at = 0;
    let at = 0;
    const endRun = (next: number): void => {
      if (at > run_at) out.push(bytes.subarray(run_at, at));
      at = next;
      run_at = next;
    };
    while (at < bytes.length) {
      if (this.#pass_bytes > 0) {
        const some = Math.min(this.#pass_bytes, bytes.length - at);
        this.#pass_bytes -= some;
        at += some;
      } else if (this.#skip_bytes > 0) {
        endRun(at + this.#skip(bytes.length - at));
      } else if (this.#takesPuback(bytes, at)) {
        endRun(at + short_puback_bytes);
      } else {
        const header = readHeader(bytes, at);
        const next = header && this.#begin(bytes, at, header);
        if (!next) {
          this.#held = bytes.subarray(at);
          break;
        }
        if (header.type === packet.puback) this.#pubacks_passed += 1;
        if (next.instead === undefined) {
          at = next.at;
          continue;
        }
        endRun(next.at);
        if (next.instead.length > 0) out.push(next.instead);
      }
    }
    if (at > run_at) out.push(bytes.subarray(run_at, at));
    return out;
  }

  #takesPuback(bytes: Buffer, at: number): boolean {
    if (bytes[at] !== puback_byte || bytes[at + 1] !== 2 || bytes.length < at + short_puback_bytes)
      return false;
    const packet_id = bytes.readUInt16BE(at + 2);
    if (this.#pubacks_passed > 0 || !this.#options.takesPuback(packet_id)) return false;
    this.#pubacks.push(packet_id);
    return true;
  }

  #skip(available: number): number {
    const some = Math.min(this.#skip_bytes, available);
    this.#skip_bytes -= some;
    if (this.#skip_bytes === 0 && this.#skipping) {
      const skipped = this.#skipping;
      this.#skipping = undefined;
      this.#options.onSkipped(skipped);
    }
    return some;
  }

  /**
   * Checks the packet that begins at `at`. Returns where the next begins; `instead`: what is passed on in place of the bytes up to
   * there. Undefined while too little of it has arrived.
   */
  #begin(
    bytes: Buffer,
    at: number,
    header: Header,
  ): { readonly at: number; readonly instead?: Buffer } | undefined {
    const { type, body_at, body_bytes } = header;
    const { protocol, packet_bytes_max } = this.#options;
    const size = body_at - at + body_bytes;
    if (size > packet_bytes_max) return this.#beginOversize(bytes, size, header);
    if (!isWhole(bytes, header)) return undefined;
    if (protocol === '5' && type === packet.disconnect && body_bytes < 2) {
      if (bytes.length < body_at + body_bytes) return undefined;
      // MQTT 5 section 3.14.2.2.1 lets it end before the length of its properties; MQTT.js does not.
      const code = body_bytes === 1 ? bytes.readUInt8(body_at) : 0;
      return { at: body_at + body_bytes, instead: Buffer.from([0xe0, 2, code, 0]) };
    }
    if (protocol === '5' && type === packet.puback && body_bytes >= 3)
      return this.#beginPuback(bytes, at, header);
    this.#pass_bytes = body_bytes;
    return { at: body_at };
  }

  #beginPuback(
    bytes: Buffer,
    at: number,
    { body_at, body_bytes }: Header,
  ): { readonly at: number; readonly instead?: Buffer } | undefined {
    if (bytes.length < body_at + 3) return undefined;
    const code = bytes.readUInt8(body_at + 2);
    if (puback_codes.has(code)) {
      this.#pass_bytes = body_bytes;
      return { at: body_at };
    }
    this.#options.onForeignCode(bytes.readUInt16BE(body_at), code);
    const instead = Buffer.from(bytes.subarray(at, body_at + 3));
    instead.writeUInt8(unspecified_error, instead.length - 1);
    this.#pass_bytes = body_bytes - 3;
    return { at: body_at + 3, instead };
  }

  #beginOversize(
    bytes: Buffer,
    size: number,
    header: Header,
  ): { readonly at: number; readonly instead: Buffer } | undefined {
    const { type, qos, body_at, body_bytes } = header;
    if (type !== packet.publish) throw new MalformedPacket(texts.packet_too_large(type, size));
    const head = publishHead(bytes, header);
    if (head === undefined || bytes.length < head.head_end) return undefined;
    const { topic_end } = head;
    const topic = bytes.toString('utf8', body_at + 2, topic_end);
    const packet_id = qos > 0 ? bytes.readUInt16BE(topic_end) : undefined;
    this.#skipping = { topic, bytes: size, packet_id };
    this.#skip_bytes = body_bytes;
    this.#options.onOversize(this.#skipping);
    return { at: body_at, instead: Buffer.alloc(0) };
  }
}

/** Throws when the packet is too short for its type. False while too little of it has arrived. */
function isWhole(bytes: Buffer, header: Header): boolean {
  const { type, body_bytes } = header;
  if (body_bytes < (body_bytes_min.get(type) ?? 0)) throw new MalformedPacket(texts.packet_cut(type));
  return type !== packet.publish || publishHead(bytes, header) !== undefined;
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
