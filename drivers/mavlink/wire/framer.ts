/**
 * Finds MAVLink frames in bytes. A length is used only after its checksum was verified, and an invalid candidate
 * costs one byte: a stray start byte never hides the valid frames behind it.
 */
import { checksum } from './checksum.ts';
import { baseLengths, crcExtraOf, fullLengths, otherCrcExtras } from './definitions.ts';
import {
  frame_length_max,
  FrameView,
  overhead_v1,
  overhead_v2,
  signature_length,
  stx_v1,
  stx_v2,
} from './frame.ts';

/** Counts what the framer found besides frames. */
export interface FramerTally {
  skipped(bytes: number): void;
  badChecksum(): void;
  unknownId(msgid: number): void;
}

export interface FrameSink {
  readonly tally?: FramerTally;
  frame(frame: FrameView): void;
  /** Receives what looks like a whole frame of a message that no dialect of ours has; its checksum cannot be verified. */
  unknown?: ((frame: FrameView) => void) | undefined;
}

const signed_flag = 1;
const no_frame = 0;
const incomplete = -1;

/** Finds the frames of one datagram; a frame that is cut off at its end is none. */
export function parseDatagram(bytes: Uint8Array, sink: FrameSink): void {
  let at = 0;
  while (at < bytes.length) {
    const length = frameLengthAt(bytes, at, sink);
    at += length === incomplete ? skip(sink) : take(sink, bytes, { at, length });
  }
}

/** Passes on what stands at `at`, and returns how many bytes it has. */
function take(
  sink: FrameSink,
  bytes: Uint8Array,
  { at, length }: { readonly at: number; readonly length: number },
): number {
  if (length === no_frame) return skip(sink);
  const frame = new FrameView(bytes, at);
  if (length > 0) sink.frame(frame);
  else sink.unknown?.(frame);
  return Math.abs(length);
}

function skip({ tally }: FrameSink): number {
  tally?.skipped(1);
  return 1;
}

const nothing = new Uint8Array();
/** A scan ahead counts nothing: the same bytes are looked at again. */
const silent: Reading = {};

/** Frames of one byte stream. It keeps what may become a frame, which is never more than the longest frame. */
export class StreamFramer {
  readonly #sink: FrameSink;
  #rest: Uint8Array = nothing;

  constructor(sink: FrameSink) {
    this.#sink = sink;
  }

  /** How many bytes wait for more. */
  get pending(): number {
    return this.#rest.length;
  }

  /** `chunk` belongs to the framer from now on: frames are views of it. */
  push(chunk: Uint8Array): void {
    const rest = this.#rest;
    // A sink that throws must not make the same bytes come again.
    this.#rest = nothing;
    let at = 0;
    if (rest.length > 0) {
      // Frames that began in the rest end within the longest frame: no more of the chunk has to be copied for them.
      const head = joined(rest, chunk.subarray(0, frame_length_max));
      at = this.#scan(head, 0, rest.length) - rest.length;
      if (at < 0) {
        this.#rest = head.slice(rest.length + at);
        return;
      }
    }
    at = this.#scan(chunk, at, chunk.length);
    // A copy, so that a few bytes do not hold a whole chunk in memory.
    if (at < chunk.length) this.#rest = chunk.slice(at);
  }

  /**
   * Nothing came for a while. What looks like the beginning of a frame may be a stray start byte that holds good frames
   * back: if one stands behind it, it was.
   */
  stalled(): void {
    const bytes = this.#rest;
    for (let at = 1; at < bytes.length; at++) {
      if (frameLengthAt(bytes, at, silent) <= 0) continue;
      this.#sink.tally?.skipped(at);
      this.#rest = nothing;
      this.push(bytes.subarray(at));
      return;
    }
  }

  /** Takes what begins before `until`; answers where the rest begins, which is before `until` if it is not complete. */
  #scan(bytes: Uint8Array, from: number, until: number): number {
    let at = from;
    while (at < until) {
      const length = frameLengthAt(bytes, at, this.#sink);
      if (length === incomplete) return at;
      at += take(this.#sink, bytes, { at, length });
    }
    return at;
  }
}

function joined(first: Uint8Array, second: Uint8Array): Uint8Array {
  const both = new Uint8Array(first.length + second.length);
  both.set(first);
  both.set(second, first.length);
  return both;
}

type Reading = Pick<FrameSink, 'tally' | 'unknown'>;

/**
 * Length of the frame that begins at `at`, `no_frame`, or `incomplete` when the bytes end too early to know; negative for a frame of
 * an unknown message, where these are read.
 */
function frameLengthAt(bytes: Uint8Array, at: number, sink: Reading): number {
  const start = bytes[at];
  if (start === stx_v2) return lengthV2(bytes, at, sink);
  if (start === stx_v1) return lengthV1(bytes, at, sink);
  return no_frame;
}

function lengthV2(bytes: Uint8Array, at: number, sink: Reading): number {
  const left = bytes.length - at;
  if (left < 10) return left > 2 && hasForeignFlags(bytes, at) ? no_frame : incomplete;
  if (hasForeignFlags(bytes, at)) return no_frame;
  const payload_length = byteAt(bytes, at + 1);
  const isSigned = bytes[at + 2] === signed_flag;
  const length = overhead_v2 + payload_length + (isSigned ? signature_length : 0);
  const msgid = byteAt(bytes, at + 7) | (byteAt(bytes, at + 8) << 8) | (byteAt(bytes, at + 9) << 16);
  const crc_extra = crcExtraOf(msgid);
  if (crc_extra < 0) return lengthUnknown(bytes, { at, length, msgid }, sink);
  if (left < length) return incomplete;
  const crc_at = at + 10 + payload_length;
  if (isIntact(bytes, at, crc_at, crc_extra) || isIntactOther(bytes, at, crc_at, msgid)) return length;
  sink.tally?.badChecksum();
  return no_frame;
}

/** Where nothing that follows shows that it ends as its length says, or a verified frame begins in it, it is none. */
function lengthUnknown(
  bytes: Uint8Array,
  { at, length, msgid }: { readonly at: number; readonly length: number; readonly msgid: number },
  { tally, unknown }: Reading,
): number {
  const end = at + length;
  if (unknown && end > bytes.length) return incomplete;
  if (!endsLikeFrame(bytes, end)) return no_frame;
  tally?.unknownId(msgid);
  if (!unknown) return no_frame;
  for (let inside = at + 1; inside < end; inside += 1)
    if (frameLengthAt(bytes, inside, silent) > 0) return no_frame;
  return -length;
}

/** The caller has checked the bounds; the zero is for the compiler. */
function byteAt(bytes: Uint8Array, at: number): number {
  return bytes[at] ?? 0;
}

/** A receiver must discard what carries an incompatibility flag that it does not know. */
function hasForeignFlags(bytes: Uint8Array, at: number): boolean {
  return (byteAt(bytes, at + 2) & ~signed_flag) !== 0;
}

function lengthV1(bytes: Uint8Array, at: number, sink: Reading): number {
  const left = bytes.length - at;
  if (left < 6) return incomplete;
  const payload_length = byteAt(bytes, at + 1);
  const length = overhead_v1 + payload_length;
  const msgid = byteAt(bytes, at + 5);
  const crc_extra = crcExtraOf(msgid);
  if (crc_extra < 0) return lengthUnknown(bytes, { at, length, msgid }, sink);
  if (payload_length !== baseLengths[msgid] && payload_length !== fullLengths[msgid]) return no_frame;
  if (left < length) return incomplete;
  if (isIntact(bytes, at, at + 6 + payload_length, crc_extra)) return length;
  sink.tally?.badChecksum();
  return no_frame;
}

function isIntact(bytes: Uint8Array, at: number, crc_at: number, crc_extra: number): boolean {
  const crc = checksum(bytes, at + 1, crc_at, crc_extra);
  return (crc & 0xff) === bytes[crc_at] && crc >>> 8 === bytes[crc_at + 1];
}

/** As an older definition of the message has it. */
function isIntactOther(bytes: Uint8Array, at: number, crc_at: number, msgid: number): boolean {
  const crc_extra = otherCrcExtras.get(msgid);
  return crc_extra !== undefined && isIntact(bytes, at, crc_at, crc_extra);
}

/** Without its CRC_EXTRA a frame cannot be verified; that another one follows at its end makes it likely. */
function endsLikeFrame(bytes: Uint8Array, end: number): boolean {
  return end === bytes.length || bytes[end] === stx_v2 || bytes[end] === stx_v1;
}
