/** Bytes that are made to confuse a framer, with intact frames among them, the same in every run with one seed. */
import { frame_length_max } from '../../../../../drivers/mavlink/wire/frame.ts';
import { StreamFramer } from '../../../../../drivers/mavlink/wire/framer.ts';
import { decode } from '../../../../../drivers/mavlink/wire/messages.ts';
import { excerpt } from '../frames.ts';

export interface FuzzResult {
  /** Intact frames that were put among the garbage, and how many of them came out, in their order. */
  readonly intact: number;
  readonly found: number;
  /** Frames that nobody sent: a checksum of 16 bits lets one of 65,536 candidates through. */
  readonly invented: number;
  readonly pending_max: number;
  /** Pieces that took longer than 10 ms each time they were tried, so not because the machine was busy. */
  readonly stalls: number;
}

interface Fuzz {
  readonly seed: number;
  readonly bytes: number;
}

const block_bytes = 65_536;
const piece_max = 3_000;
const stall_ms = 10;
const tries = 3;

export function fuzz({ seed, bytes }: Fuzz): FuzzResult {
  const random = lehmer(seed);
  const wanted: string[] = [];
  let [found, invented, pending_max, stalls] = [0, 0, 0, 0];
  const framer = framerInto((hex) => {
    if (hex === wanted[found]) found++;
    else invented++;
  });
  for (let done = 0; done < bytes;) {
    const block = makeBlock(random, wanted);
    for (const piece of cut(block, random)) {
      const begin_ms = performance.now();
      framer.push(piece);
      if (performance.now() - begin_ms > stall_ms && isSlow(piece)) stalls++;
      pending_max = Math.max(pending_max, framer.pending);
    }
    done += block.length;
  }
  for (let pause = 0; framer.pending > 0 && pause < frame_length_max; pause++) framer.stalled();
  return { intact: wanted.length, found, invented, pending_max, stalls };
}

const good = ['arducopter', 'px4'].flatMap((name) =>
  excerpt(name).frames.map((hex) => Buffer.from(hex, 'hex')),
);

/** Intact frames, which are noted in `wanted`, among spoiled ones and noise. */
function makeBlock(random: () => number, wanted: string[]): Buffer {
  const segments: Buffer[] = [];
  for (let size = 0; size < block_bytes; size += segments.at(-1)?.length ?? 0) {
    const frame = good[Math.floor(random() * good.length)] ?? Buffer.alloc(0);
    const kind = random();
    if (kind < 0.4) {
      segments.push(frame);
      wanted.push(frame.toString('hex'));
    } else {
      segments.push(kind < 0.7 ? spoiled(frame, random) : noise(random));
    }
  }
  return Buffer.concat(segments);
}

function* cut(block: Buffer, random: () => number): Generator<Buffer> {
  for (let at = 0; at < block.length;) {
    const length = random() < 0.3 ? 1 : 1 + Math.floor(random() * piece_max);
    yield block.subarray(at, at + length);
    at += length;
  }
}

function framerInto(found: (hex: string) => void): StreamFramer {
  return new StreamFramer({
    frame: (frame) => {
      JSON.stringify(decode(frame));
      found(Buffer.from(frame.bytes).toString('hex'));
    },
  });
}

function isSlow(piece: Buffer): boolean {
  for (let round = 0; round < tries; round++) {
    const framer = framerInto(() => undefined);
    const begin_ms = performance.now();
    framer.push(piece);
    if (performance.now() - begin_ms <= stall_ms) return false;
  }
  return true;
}

/** A frame with bytes changed, doubled or missing. */
function spoiled(frame: Buffer, random: () => number): Buffer {
  // Not the first two: a start byte put before or behind the start byte would leave the frame intact.
  const at = 2 + Math.floor(random() * (frame.length - 2));
  const kind = random();
  // More than one byte: if the last one is a start byte, the next frame's would complete this one.
  if (kind < 0.3) return frame.subarray(0, at - 1);
  if (kind < 0.5) return Buffer.concat([frame.subarray(0, at), Buffer.of(0xfd), frame.subarray(at)]);
  const changed = Buffer.from(frame);
  changed[at] = (changed[at] ?? 0) ^ (1 + Math.floor(random() * 255));
  return changed;
}

/** Half of it bytes that begin frames or stand in their headers. */
function noise(random: () => number): Buffer {
  const length = 1 + Math.floor(random() * 300);
  const bytes = Array.from({ length }, () => {
    const likely = [0xfd, 0xfe, 0, 1, 33, 9];
    return random() < 0.5 ? (likely[Math.floor(random() * likely.length)] ?? 0) : Math.floor(random() * 256);
  });
  return Buffer.from(bytes);
}

function lehmer(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 48_271) % 2_147_483_647;
    return state / 2_147_483_647;
  };
}
