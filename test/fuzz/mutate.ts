/** Makes new inputs from known ones: bytes, tokens of the format, and repetitions that build size and depth. */
import type { Random } from '../support/random.ts';

/** Large inputs are slow ones: one repetition of so many may fill the whole input. */
const rarely = 500;
const few_times = 4;
const chunk_max = 64;
const stacked_max = 4;

type Mutation = (input: Buffer, random: Random, material: Material) => Buffer;

export interface Material {
  readonly corpus: readonly Buffer[];
  /** Tokens of the format. */
  readonly dictionary: readonly Buffer[];
  readonly bytes_max: number;
}

/** One to four mutations of an input, never longer than `bytes_max`. */
export function mutate(random: Random, material: Material): Buffer {
  let input = random.of(material.corpus);
  for (let left = 1 + random.below(stacked_max); left > 0; left -= 1) {
    input = random.of(mutations)(input, random, material).subarray(0, material.bytes_max);
  }
  return input;
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

const repeatChunk: Mutation = (input, random, { bytes_max }) => {
  const at = random.below(input.length + 1);
  const chunk = input.subarray(at, at + 1 + random.below(chunk_max));
  const most = random.below(rarely) === 0 ? Math.floor(bytes_max / Math.max(1, chunk.length)) : few_times;
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

/** Replaces a run of digits by a number at an edge. */
const setNumber: Mutation = (input, random) => {
  const text = input.toString('latin1');
  const runs = [...text.matchAll(/-?\d+(?:\.\d+)?/gu)];
  if (runs.length === 0) return input;
  const run = random.of(runs);
  const end = run.index + run[0].length;
  return Buffer.from(text.slice(0, run.index) + random.of(edge_numbers) + text.slice(end), 'latin1');
};
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
];

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
];
