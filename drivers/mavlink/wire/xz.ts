/** Unpacks the .xz files that PX4 serves: one LZMA2 block (xz-file-format 1.2, LZMA specification). Node has no decoder for them. */

const stream_header = 12;
const magic = [0xfd, 0x37, 0x7a, 0x58, 0x5a, 0];
const probability_bits = 11;
const probability_start = 1 << (probability_bits - 1);
const adapt_shift = 5;
const states = 12;
const position_states = 16;
const state_literal_max = 7;
const first_model_slot = 4;
const last_model_slot = 14;
const align_bits = 4;
const length_min = 2;

/** Throws RangeError for what is no such file, or is longer than `size_max` when it is unpacked. */
export function unpackXz(packed: Uint8Array, size_max: number): Uint8Array {
  if (!magic.every((byte, at) => packed[at] === byte)) throw new RangeError('no .xz file');
  const unpacker = new Unpacker(packed, size_max);
  return unpacker.run(stream_header + ((packed[stream_header] ?? 0) + 1) * 4);
}

function probabilities(count: number): Uint16Array {
  return new Uint16Array(count).fill(probability_start);
}

/** Models of the length of a copy. */
const newLengths = () => ({
  choices: probabilities(2),
  low: probabilities(position_states * 8),
  middle: probabilities(position_states * 8),
  high: probabilities(256),
});

const newModels = (literals: number) => ({
  isMatch: probabilities(states * position_states),
  isRepeat: probabilities(states),
  isOther: probabilities(states),
  isThird: probabilities(states),
  isFourth: probabilities(states),
  isLong: probabilities(states * position_states),
  slots: probabilities(4 * 64),
  distances: probabilities(115),
  align: probabilities(1 << align_bits),
  lengths: newLengths(),
  repeats: newLengths(),
  literals: probabilities(0x300 << literals),
});

class Unpacker {
  readonly #packed: Uint8Array;
  readonly #size_max: number;
  #out = new Uint8Array(65_536);
  #size = 0;
  #at = 0;
  #range = 0;
  #code = 0;
  #models = newModels(0);
  #literal_bits = 0;
  #literal_position_mask = 0;
  #position_mask = 0;
  #state = 0;
  /** Distances of the latest copies, less 1. */
  #recent: [number, number, number, number] = [0, 0, 0, 0];

  constructor(packed: Uint8Array, size_max: number) {
    this.#packed = packed;
    this.#size_max = size_max;
  }

  run(at: number): Uint8Array {
    this.#at = at;
    for (;;) {
      const control = this.#byte();
      if (control === 0) return this.#out.subarray(0, this.#size);
      if (control < 0x80) this.#plain();
      else this.#chunk(control);
    }
  }

  #plain(): void {
    const length = this.#word() + 1;
    this.#reserve(length);
    for (let count = 0; count < length; count++) this.#out[this.#size++] = this.#byte();
  }

  #chunk(control: number): void {
    const length = ((control & 0x1f) << 16) + this.#word() + 1;
    const packed_length = this.#word() + 1;
    const reset = (control >> 5) & 3;
    if (reset >= 2) this.#properties(this.#byte());
    if (reset >= 1) this.#reset();
    const end = this.#at + packed_length;
    this.#reserve(length);
    this.#range = 0xffff_ffff;
    this.#at += 1;
    this.#code = ((this.#word() << 16) | this.#word()) >>> 0;
    const until = this.#size + length;
    while (this.#size < until) this.#symbol(until);
    this.#at = end;
  }

  #properties(byte: number): void {
    this.#literal_bits = byte % 9;
    const rest = Math.floor(byte / 9);
    const literal_position_bits = rest % 5;
    this.#literal_position_mask = (1 << literal_position_bits) - 1;
    this.#position_mask = (1 << Math.floor(rest / 5)) - 1;
    this.#models = newModels(this.#literal_bits + literal_position_bits);
  }

  #reset(): void {
    this.#models = newModels(Math.log2(this.#models.literals.length / 0x300));
    this.#state = 0;
    this.#recent = [0, 0, 0, 0];
  }

  #symbol(until: number): void {
    const position = this.#size & this.#position_mask;
    const at = this.#state * position_states + position;
    if (this.#bit(this.#models.isMatch, at) === 0) {
      this.#literal();
      return;
    }
    const length =
      this.#bit(this.#models.isRepeat, this.#state) === 0
        ? this.#match(position)
        : this.#repeat(position, at);
    const from = this.#size - this.#recent[0] - 1;
    if (from < 0 || this.#size + length > until) throw new RangeError('damaged .xz file');
    for (let count = 0; count < length; count++) this.#out[this.#size++] = this.#out[from + count] ?? 0;
  }

  #literal(): void {
    const before = this.#size > 0 ? (this.#out[this.#size - 1] ?? 0) : 0;
    const place =
      ((this.#size & this.#literal_position_mask) << this.#literal_bits) +
      (before >> (8 - this.#literal_bits));
    const base = 0x300 * place;
    let symbol = 1;
    if (this.#state >= state_literal_max) {
      let match = this.#out[this.#size - this.#recent[0] - 1] ?? 0;
      while (symbol < 0x100) {
        const expected = (match >> 7) & 1;
        match <<= 1;
        const bit = this.#bit(this.#models.literals, base + ((1 + expected) << 8) + symbol);
        symbol = (symbol << 1) | bit;
        if (bit !== expected) break;
      }
    }
    while (symbol < 0x100) symbol = (symbol << 1) | this.#bit(this.#models.literals, base + symbol);
    this.#out[this.#size++] = symbol & 0xff;
    this.#state = this.#state < 4 ? 0 : this.#state - (this.#state < 10 ? 3 : 6);
  }

  #match(position: number): number {
    const length = this.#length(this.#models.lengths, position);
    this.#state = this.#state < state_literal_max ? 7 : 10;
    const [first, second, third] = this.#recent;
    this.#recent = [this.#distance(Math.min(length - length_min, 3)), first, second, third];
    return length;
  }

  #repeat(position: number, at: number): number {
    const { isOther, isThird, isFourth, isLong, repeats } = this.#models;
    const [first, second, third, fourth] = this.#recent;
    const isShort = this.#state < state_literal_max;
    if (this.#bit(isOther, this.#state) === 0) {
      if (this.#bit(isLong, at) === 0) {
        this.#state = isShort ? 9 : 11;
        return 1;
      }
    } else if (this.#bit(isThird, this.#state) === 0) this.#recent = [second, first, third, fourth];
    else if (this.#bit(isFourth, this.#state) === 0) this.#recent = [third, first, second, fourth];
    else this.#recent = [fourth, first, second, third];
    const length = this.#length(repeats, position);
    this.#state = isShort ? 8 : 11;
    return length;
  }

  #length({ choices, low, middle, high }: ReturnType<typeof newLengths>, position: number): number {
    if (this.#bit(choices, 0) === 0) return length_min + this.#tree(low, position * 8, 3);
    if (this.#bit(choices, 1) === 0) return length_min + 8 + this.#tree(middle, position * 8, 3);
    return length_min + 16 + this.#tree(high, 0, 8);
  }

  #distance(length_state: number): number {
    const slot = this.#tree(this.#models.slots, length_state * 64, 6);
    if (slot < first_model_slot) return slot;
    const bits = (slot >> 1) - 1;
    const base = ((2 | (slot & 1)) << bits) >>> 0;
    if (slot < last_model_slot) return base + this.#reverseTree(this.#models.distances, base - slot, bits);
    let direct = 0;
    for (let count = bits - align_bits; count > 0; count--) direct = direct * 2 + this.#direct();
    return base + direct * (1 << align_bits) + this.#reverseTree(this.#models.align, 0, align_bits);
  }

  #tree(models: Uint16Array, base: number, bits: number): number {
    let symbol = 1;
    for (let count = 0; count < bits; count++) symbol = (symbol << 1) | this.#bit(models, base + symbol);
    return symbol - (1 << bits);
  }

  #reverseTree(models: Uint16Array, base: number, bits: number): number {
    let node = 1;
    let symbol = 0;
    for (let count = 0; count < bits; count++) {
      const bit = this.#bit(models, base + node);
      node = (node << 1) | bit;
      symbol |= bit << count;
    }
    return symbol;
  }

  #bit(models: Uint16Array, at: number): 0 | 1 {
    const probability = models[at] ?? 0;
    const bound = (this.#range >>> probability_bits) * probability;
    const bit = this.#code < bound ? 0 : 1;
    if (bit === 0) {
      this.#range = bound;
      models[at] = probability + (((1 << probability_bits) - probability) >> adapt_shift);
    } else {
      this.#range -= bound;
      this.#code -= bound;
      models[at] = probability - (probability >> adapt_shift);
    }
    this.#normalize();
    return bit;
  }

  #direct(): 0 | 1 {
    this.#range = this.#range >>> 1;
    const bit = this.#code >= this.#range ? 1 : 0;
    if (bit === 1) this.#code -= this.#range;
    this.#normalize();
    return bit;
  }

  #normalize(): void {
    if (this.#range >= 0x100_0000) return;
    this.#range = (this.#range << 8) >>> 0;
    this.#code = ((this.#code << 8) | (this.#packed[this.#at++] ?? 0)) >>> 0;
  }

  #byte(): number {
    const byte = this.#packed[this.#at++];
    if (byte === undefined) throw new RangeError('incomplete .xz file');
    return byte;
  }

  /** Big-endian. */
  #word(): number {
    return (this.#byte() << 8) | this.#byte();
  }

  #reserve(length: number): void {
    const size = this.#size + length;
    if (size > this.#size_max) throw new RangeError(`.xz file is larger than ${this.#size_max} bytes`);
    if (size <= this.#out.length) return;
    const larger = new Uint8Array(Math.max(size, 2 * this.#out.length));
    larger.set(this.#out);
    this.#out = larger;
  }
}
