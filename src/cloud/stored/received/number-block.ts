/** Which of 4,096 consecutive sequence numbers were received, small enough to be written with each commit that adds to it. */
import { z } from 'zod';
import { type Range, sizeOf } from './ranges.ts';

/** Numbers of one block: 512 bytes as bits, 684 characters as text. */
export const block_size = 4_096;
const text_chars_max = 684;

/** An epoch begins with the first number of a block, so a kit that leaves no hole fills it. */
export function blockOf(seq: number): number {
  return Math.floor((seq - 1) / block_size);
}

/** The numbers that the block holds when nothing is missing. */
export function spanOf(block: number): Range {
  return [block * block_size + 1, (block + 1) * block_size];
}

const offsets = z.array(z.tuple([z.int(), z.int()]));

export class NumberBlock {
  readonly block: number;
  readonly #bits: Uint8Array;
  #count: number;
  /** Offsets; undefined: something was added since they were worked out. */
  #ranges: readonly Range[] | undefined;

  /** `text` as `text()` has written it; left out: nothing was received. */
  constructor(block: number, text?: string) {
    this.block = block;
    this.#bits = new Uint8Array(block_size / 8);
    if (text === undefined) this.#count = 0;
    else if (text.startsWith('[')) {
      const ranges = offsets.parse(JSON.parse(text));
      for (const range of ranges) setBits(this.#bits, range);
      this.#ranges = ranges;
      this.#count = sizeOf(ranges);
    } else {
      this.#bits.set(Buffer.from(text, 'base64').subarray(0, this.#bits.length));
      this.#count = this.#bits.reduce((sum, byte) => sum + ones(byte), 0);
    }
  }

  get count(): number {
    return this.#count;
  }

  get isFull(): boolean {
    return this.#count === block_size;
  }

  /** False: it was there already. `seq` lies in the block. */
  add(seq: number): boolean {
    const at = seq - spanOf(this.block)[0];
    const byte = this.#bits[at >> 3] ?? 0;
    const bit = 1 << (at & 7);
    if ((byte & bit) !== 0) return false;
    this.#bits[at >> 3] = byte | bit;
    this.#count += 1;
    this.#ranges = withNext(this.#ranges, at);
    return true;
  }

  ranges(): readonly Range[] {
    const [from] = spanOf(this.block);
    return this.#offsets().map(([first, last]) => [from + first, from + last]);
  }

  /** The shorter one of ranges as JSON and bits in base64, which never begins with a bracket. */
  text(): string {
    const ranges = JSON.stringify(this.#offsets());
    return ranges.length < text_chars_max ? ranges : Buffer.from(this.#bits).toString('base64');
  }

  #offsets(): readonly Range[] {
    this.#ranges ??= rangesOf(this.#bits);
    return this.#ranges;
  }
}

/** The ranges with the number that follows the last one, which is nearly every number; undefined: it does not follow. */
function withNext(ranges: readonly Range[] | undefined, at: number): readonly Range[] | undefined {
  const last = ranges?.at(-1);
  return ranges && last?.[1] === at - 1 ? [...ranges.slice(0, -1), [last[0], at]] : undefined;
}

function setBits(bits: Uint8Array, [first, last]: Range): void {
  for (let at = first; at <= last; at += 1) {
    const isWhole = (at & 7) === 0 && at + 7 <= last;
    bits[at >> 3] = isWhole ? 255 : (bits[at >> 3] ?? 0) | (1 << (at & 7));
    if (isWhole) at += 7;
  }
}

function rangesOf(bits: Uint8Array): readonly Range[] {
  const ranges: Range[] = [];
  let first = -1;
  for (let at = 0; at <= block_size; at += 1) {
    // Eight at once where they are all alike, which is nearly everywhere.
    const isAlike = (at & 7) === 0 && bits[at >> 3] === (first < 0 ? 0 : 255);
    if (isAlike) {
      at += 7;
      continue;
    }
    const isIn = at < block_size && ((bits[at >> 3] ?? 0) & (1 << (at & 7))) !== 0;
    if (isIn && first < 0) first = at;
    if (!isIn && first >= 0) {
      ranges.push([first, at - 1]);
      first = -1;
    }
  }
  return ranges;
}

function ones(byte: number): number {
  let count = 0;
  for (let left = byte; left > 0; left &= left - 1) count += 1;
  return count;
}
