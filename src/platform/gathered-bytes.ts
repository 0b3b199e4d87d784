/** Bytes that arrive in pieces. A sender chooses their number: a list of a million pieces of one byte takes 100 MB and its collection a second. */

const bytes_at_first = 4_096;

/** Copies each piece into one buffer that doubles, so that only the bytes count and not the pieces. */
export class GatheredBytes {
  readonly #bytes_max: number;
  #held = Buffer.alloc(0);
  #length = 0;

  /** Past `bytes_max` nothing more is taken. */
  constructor(bytes_max: number) {
    this.#bytes_max = bytes_max;
  }

  get length(): number {
    return this.#length;
  }

  /** False, and nothing is taken, when there would be more than the limit. */
  add(piece: Uint8Array): boolean {
    const length = this.#length + piece.length;
    if (length > this.#bytes_max) return false;
    if (length > this.#held.length) this.#grow(length);
    this.#held.set(piece, this.#length);
    this.#length = length;
    return true;
  }

  /** The last bytes, `count` at most; valid until the next `add`. */
  last(count: number): Buffer<ArrayBuffer> {
    return this.#held.subarray(Math.max(0, this.#length - count), this.#length);
  }

  all(): Buffer<ArrayBuffer> {
    return this.#held.subarray(0, this.#length);
  }

  #grow(length: number): void {
    const bytes = Math.max(length, Math.min(2 * this.#held.length, this.#bytes_max), bytes_at_first);
    const larger = Buffer.allocUnsafeSlow(bytes);
    this.#held.copy(larger, 0, 0, this.#length);
    this.#held = larger;
  }
}

/** All bytes of a stream; undefined, and the stream is destroyed, when they are more than the limit. Rejects as the stream does. */
export async function gather(
  stream: AsyncIterable<unknown>,
  bytes_max: number,
): Promise<Buffer<ArrayBuffer> | undefined> {
  const bytes = new GatheredBytes(bytes_max);
  for await (const piece of stream) {
    if (piece instanceof Uint8Array && !bytes.add(piece)) return undefined;
  }
  return bytes.all();
}
