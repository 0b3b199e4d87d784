/** Makes inputs with the structure of a format, which bytes that are changed by chance hardly ever keep: lengths, nesting, closed tags. */
import type { Random } from '../support/random.ts';

/** Makes one input. */
export type Make = (random: Random) => Buffer;

const depth_max = 4;
const members_max = 6;

/** A message of Protocol Buffers whose fields have these numbers. */
export function protobuf(numbers: readonly number[]): Make {
  const message = (random: Random, depth: number): Buffer =>
    Buffer.concat(several(random, depth, () => field(random, depth)));
  const field = (random: Random, depth: number): Buffer => {
    const number = random.of(numbers);
    const type = random.of(depth < depth_max ? [0, 1, 2, 2, 2, 2, 5] : [0, 1, 2, 5]);
    const tag = varint(number * 8 + type);
    if (type === 0) return Buffer.concat([tag, varint(random.of([0, 1, 2, 127, 128, 2 ** 32, 2 ** 53]))]);
    if (type === 1) return Buffer.concat([tag, random.bytes(8)]);
    if (type === 5) return Buffer.concat([tag, random.bytes(4)]);
    const held = random.below(3) === 0 ? random.bytes(random.below(12)) : message(random, depth + 1);
    return Buffer.concat([tag, varint(held.length), held]);
  };
  return (random) => message(random, 0);
}

function varint(value: number): Buffer {
  const bytes: number[] = [];
  let left = value;
  for (; left >= 0x80; left = Math.floor(left / 0x80)) bytes.push((left % 0x80) | 0x80);
  return Buffer.from([...bytes, left]);
}

/** An envelope, or now and then any element, whose elements have these names. */
export function xml(names: readonly string[], values: readonly string[]): Make {
  const element = (random: Random, depth: number): string => {
    const name = random.of(names);
    const attributes = random.below(4) === 0 ? ` ${random.of(names)}="${random.of(values)}"` : '';
    if (random.below(8) === 0) return `<${name}${attributes}/>`;
    return `<${name}${attributes}>${content(random, depth + 1)}</${name}>`;
  };
  const content = (random: Random, depth: number): string => {
    const kind = random.below(12);
    const value = random.of(values);
    if (kind === 0) return `<![CDATA[${value}]]>`;
    if (kind === 1) return `<!-- ${value} -->${value}`;
    if (kind < 5 || depth > depth_max) return value;
    return several(random, depth, () => element(random, depth)).join('');
  };
  return (random) => {
    const held = several(random, 0, () => element(random, 0)).join('');
    const text = random.below(8) === 0 ? held : `<s:Envelope><s:Body>${held}</s:Body></s:Envelope>`;
    return Buffer.from(text);
  };
}

/** Fewer the deeper they stand, so that most inputs are small. */
function several<T>(random: Random, depth: number, make: () => T): readonly T[] {
  return Array.from({ length: 1 + random.below(Math.max(1, members_max - 2 * depth)) }, make);
}
