/** Makes new inputs from known ones: bytes, tokens of the format, and repetitions that build size and depth. */
import type { Random } from '../support/random.ts';
import { mutateJson } from './mutate-json.ts';
import type { Make } from './structures.ts';

/** Large inputs are slow ones: one repetition of so many may fill the whole input. */
const rarely = 500;
const few_times = 4;
const chunk_max = 64;
const stacked_max = 4;
/** Of so many inputs one is made anew, where the target has a structure. */
const made_every = 4;

type Mutation = (input: Buffer, random: Random, material: Material) => Buffer;

export interface Material {
  readonly corpus: readonly Buffer[];
  /** Tokens of the format. */
  readonly dictionary: readonly Buffer[];
  readonly bytes_max: number;
  /** Makes inputs with the structure of the format. */
  readonly make?: Make | undefined;
}

/** One to four mutations of an input, or of one that was made, none at times; never longer than `bytes_max`. */
export function mutate(random: Random, material: Material): Buffer {
  const { corpus, bytes_max, make } = material;
  const made = make && random.below(made_every) === 0 ? make(random).subarray(0, bytes_max) : undefined;
  let input = made ?? smaller(random.of(corpus), random.of(corpus));
  for (let left = (made ? 0 : 1) + random.below(stacked_max); left > 0; left -= 1) {
    input = random.of(mutations)(input, random, material).subarray(0, bytes_max);
  }
  return input;
}

/** Of two known inputs the smaller one is read sooner, and small inputs reach most of what large ones reach. */
function smaller(one: Buffer, other: Buffer): Buffer {
  return one.length <= other.length ? one : other;
}

const flipBit: Mutation = (input, random) => {
  if (input.length === 0) return input;
  const copy = Buffer.from(input);
  const at = random.below(copy.length);
  copy[at] = (copy[at] ?? 0) ^ (1 << random.below(8));
  return copy;
};

const setByte: Mutation = (input, random) => {
  if (input.length === 0) return input;
  const copy = Buffer.from(input);
  copy[random.below(copy.length)] = random.of(telling_bytes);
  return copy;
};
const telling_bytes = [
  0, 1, 9, 10, 13, 32, 34, 38, 39, 47, 60, 62, 91, 92, 93, 123, 125, 127, 128, 155, 254, 255,
];

const insertToken: Mutation = (input, random, { dictionary }) => {
  if (dictionary.length === 0) return input;
  const at = random.below(input.length + 1);
  return Buffer.concat([input.subarray(0, at), random.of(dictionary), input.subarray(at)]);
};

const removeChunk: Mutation = (input, random) => {
  const at = random.below(input.length + 1);
  return Buffer.concat([input.subarray(0, at), input.subarray(at + 1 + random.below(chunk_max))]);
};

const repeatChunk: Mutation = (input, random, { bytes_max, dictionary }) => {
  const at = random.below(input.length + 1);
  const fills = random.below(rarely) === 0;
  const part = input.subarray(at, at + 1 + random.below(chunk_max));
  const chunk = fills ? random.of([part, part.subarray(0, 1), random.of([part, ...dictionary])]) : part;
  const most = fills ? Math.max(1, Math.floor(bytes_max / Math.max(1, chunk.length))) : few_times;
  const repeated = Buffer.alloc(chunk.length * (1 + random.below(most)), chunk);
  return Buffer.concat([input.subarray(0, at), repeated, input.subarray(at)]);
};

const splice: Mutation = (input, random, { corpus }) => {
  const other = random.of(corpus);
  return Buffer.concat([
    input.subarray(0, random.below(input.length + 1)),
    other.subarray(random.below(other.length + 1)),
  ]);
};

const insertNoise: Mutation = (input, random) => {
  const at = random.below(input.length + 1);
  return Buffer.concat([input.subarray(0, at), random.bytes(1 + random.below(8)), input.subarray(at)]);
};

/** Writes a number at an edge as formats of bytes do: lengths, counts, offsets. */
const setInteger: Mutation = (input, random) => {
  if (input.length < 4) return input;
  const copy = Buffer.from(input);
  const at = random.below(copy.length - 3);
  const value = random.of(edge_integers);
  const kind = random.below(4);
  if (kind === 0) copy.writeUInt16LE(value & 0xff_ff, at);
  else if (kind === 1) copy.writeUInt16BE(value & 0xff_ff, at);
  else if (kind === 2) copy.writeUInt32LE(value, at);
  else copy.writeUInt32BE(value, at);
  return copy;
};
const edge_integers = [
  0, 1, 2, 3, 4, 5, 7, 8, 12, 15, 16, 20, 63, 64, 127, 128, 255, 256, 0x7f_ff, 0xff_ff, 0x7f_ff_ff_ff,
  0xff_ff_ff_ff,
];

/** Replaces a run of digits by a number at an edge: the first run after a place at random, which is not far away in most texts. */
const setNumber: Mutation = (input, random) => {
  const from = random.below(input.length + 1);
  const seen = input.subarray(from, from + number_search_bytes);
  const start = seen.findIndex(isDigit);
  if (start < 0) return input;
  const rest = seen.subarray(start);
  const length = rest.findIndex((byte) => !isDigit(byte));
  const end = from + start + (length < 0 ? rest.length : length);
  return Buffer.concat([input.subarray(0, from + start), random.of(edge_numbers), input.subarray(end)]);
};
const number_search_bytes = 256;
const isDigit = (byte: number): boolean => (byte >= 0x30 && byte <= 0x39) || byte === 0x2e;
const edge_numbers = [
  '-1',
  '0',
  '255',
  '65536',
  '2147483648',
  '9007199254740993',
  '1e308',
  '1e999',
  '-0.0',
  'NaN',
].map((text) => Buffer.from(text));

const setValue: Mutation = (input, random, { corpus }) => mutateJson(input, random, corpus);

const mutations: readonly Mutation[] = [
  flipBit,
  flipBit,
  setByte,
  insertToken,
  insertToken,
  removeChunk,
  repeatChunk,
  splice,
  insertNoise,
  setNumber,
  setInteger,
  setValue,
  setValue,
];
