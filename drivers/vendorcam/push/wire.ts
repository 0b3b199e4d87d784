/**
 * Frames of the vendor's own protocol on TCP port 9000, known as Baichuan: a header of 20 or 24 bytes in little-endian
 * order, then the body. The vendor has not published it; this follows what the documents of neolink and reolink_aio describe.
 */
import { DeviceUnreachable } from '../../../src/platform/errors.ts';
import { texts } from '../texts.ts';

/** Numbers of the messages that are used here. */
export const commands = { login: 1, subscribe: 31, alarms: 33, keep_alive: 93, heartbeat: 234 } as const;

/** Classes of messages. A header of the last three has 24 bytes, with the length of the extension at its end. */
export const classes = {
  hello: 0x6514,
  nonce: 0x6614,
  request: 0x6414,
  reply: 0x0000,
  reply_too: 0x6482,
} as const;
const short_classes: ReadonlySet<number> = new Set([classes.hello, classes.nonce]);
const long_classes: ReadonlySet<number> = new Set([classes.request, classes.reply, classes.reply_too]);

/** Requests that concern the device, and those for its events. Also the offset of the cipher. */
export const origins = { device: 250, events: 251 } as const;

/** Statuses of a reply. */
export const statuses = { ok: 200, unauthorized: 401 } as const;
/** Status of the first request: offers AES. */
export const offers_aes = 0xdc12;

export interface Frame {
  readonly command: number;
  /** Channel or origin in the lowest byte, number of the request above it. A reply repeats it. */
  readonly id: number;
  readonly status: number;
  readonly class: number;
  /** Without the extension before it; encrypted. */
  readonly payload: Buffer;
}

const magic = 0x0abcdef0;
const short_header_bytes = 20;
const long_header_bytes = 24;

/** A frame without an extension, ready to send. */
export function frameBytes(frame: Omit<Frame, 'payload'> & { readonly payload?: Buffer }): Buffer {
  const { payload = Buffer.alloc(0) } = frame;
  const header = Buffer.alloc(short_classes.has(frame.class) ? short_header_bytes : long_header_bytes);
  header.writeUInt32LE(magic, 0);
  header.writeUInt32LE(frame.command, 4);
  header.writeUInt32LE(payload.length, 8);
  header.writeUInt32LE(frame.id, 12);
  header.writeUInt16LE(frame.status, 16);
  header.writeUInt16LE(frame.class, 18);
  return Buffer.concat([header, payload]);
}

/** Splits a stream of bytes into frames. Keeps less than one frame. */
export class FrameReader {
  readonly #bytes_max: number;
  #chunks: Buffer[] = [];
  #length = 0;

  /** @param bytes_max of the body of a frame */
  constructor(bytes_max: number) {
    this.#bytes_max = bytes_max;
  }

  /** Returns the frames that are complete now. Throws DeviceUnreachable for bytes that are none. */
  take(chunk: Buffer): readonly Frame[] {
    this.#chunks.push(chunk);
    this.#length += chunk.length;
    const frames: Frame[] = [];
    for (let frame = this.#next(); frame !== undefined; frame = this.#next()) frames.push(frame);
    return frames;
  }

  #next(): Frame | undefined {
    if (this.#length < short_header_bytes) return undefined;
    const header = this.#peek(long_header_bytes);
    if (header.readUInt32LE(0) !== magic) throw new DeviceUnreachable(texts.push_no_frame);
    const kind = header.readUInt16LE(18);
    if (!short_classes.has(kind) && !long_classes.has(kind)) throw new DeviceUnreachable(texts.push_no_frame);
    const header_bytes = short_classes.has(kind) ? short_header_bytes : long_header_bytes;
    const body_bytes = header.readUInt32LE(8);
    if (body_bytes > this.#bytes_max) throw new DeviceUnreachable(texts.push_frame_large(this.#bytes_max));
    if (this.#length < header_bytes + body_bytes) return undefined;
    const whole = this.#peek(header_bytes + body_bytes).subarray(header_bytes, header_bytes + body_bytes);
    const extension_bytes = header_bytes === long_header_bytes ? header.readUInt32LE(20) : 0;
    this.#drop(header_bytes + body_bytes);
    return {
      command: header.readUInt32LE(4),
      id: header.readUInt32LE(12),
      status: header.readUInt16LE(16),
      class: kind,
      payload: whole.subarray(Math.min(extension_bytes, body_bytes)),
    };
  }

  /** The first bytes in one piece, as far as they are there. Joins the chunks only when the first one is too short. */
  #peek(length: number): Buffer {
    const [first] = this.#chunks;
    if (first === undefined || first.length >= Math.min(length, this.#length))
      return first ?? Buffer.alloc(0);
    const joined = Buffer.concat(this.#chunks);
    this.#chunks = [joined];
    return joined;
  }

  #drop(length: number): void {
    const [first = Buffer.alloc(0), ...rest] = this.#chunks;
    this.#chunks = first.length === length ? rest : [first.subarray(length), ...rest];
    this.#length -= length;
  }
}
