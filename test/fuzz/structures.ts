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

/** Headers of the kernel's messages about addresses, routes and rules, neighbours, nexthops: their bytes after the family. */
const header_bytes = [8, 12, 12, 8] as const;
/** Those that are read of any of these messages, the paths of a route first. */
const attribute_types = [9, 9, 9, 1, 1, 2, 2, 3, 4, 4, 5, 6, 7, 8, 10, 14, 15, 19, 30] as const;
const edge_lengths = [0, 1, 2, 3, 4, 5, 0xff_ff] as const;

/** Messages of rtnetlink with attributes, some of which hold others. */
export function netlink(random: Random): Buffer {
  return Buffer.concat(several(random, 0, () => netlinkMessage(random)));
}

function netlinkMessage(random: Random): Buffer {
  const header = Buffer.alloc(random.of(header_bytes));
  header[0] = random.of([2, 2, 10, 0]);
  // Masks and tables are nothing in most messages, and what is decoded depends on that.
  for (let at = 1; at < header.length; at += 1) header[at] = random.of([0, 0, 0, 1, 2, 6, 7, 254, 255]);
  const body = Buffer.concat([header, ...several(random, 0, () => attribute(random, 0))]);
  const message = Buffer.concat([Buffer.alloc(16), body]);
  message.writeUInt32LE(random.below(16) === 0 ? random.of(edge_lengths) : message.length);
  message.writeUInt16LE(random.of([2, 3, 20, 24, 28, 32, 104]), 4);
  return message;
}

function attribute(random: Random, depth: number): Buffer {
  const held =
    depth < 2 && random.below(4) === 0
      ? Buffer.concat(several(random, depth + 1, () => attribute(random, depth + 1)))
      : random.bytes(random.of([0, 1, 4, 4, 4, 6, 8, 8, 16, 16]));
  const header = Buffer.alloc(4);
  header.writeUInt16LE(random.below(16) === 0 ? random.of(edge_lengths) : held.length + 4);
  header.writeUInt16LE(random.of(attribute_types), 2);
  return Buffer.concat([header, held, Buffer.alloc(-held.length & 3)]);
}

/** Fewer the deeper they stand, so that most inputs are small. */
function several<T>(random: Random, depth: number, make: () => T): readonly T[] {
  return Array.from({ length: 1 + random.below(Math.max(1, members_max - 2 * depth)) }, make);
}
