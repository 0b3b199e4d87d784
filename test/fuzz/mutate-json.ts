/** Changes one value of a text of JSON and leaves the text valid: what stands behind a parser is reached more often so. */
import type { Random } from '../support/random.ts';

/** Larger texts take too long to be read and written again for each input. */
const bytes_max = 4_096;
const depth_max = 12;
const [brace, bracket] = [0x7b, 0x5b];
const edge_values: readonly unknown[] = [
  null,
  true,
  false,
  0,
  -1,
  0.5,
  255,
  65_536,
  2 ** 31,
  2 ** 53 + 2,
  -1e308,
  '',
  '0',
  'a',
  '\u0000',
  '\ud800',
  '\u202e',
  '2026-11-21T10:00:00.000Z',
  '3f0c1f6e-52a4-4c0e-9d6b-1f2a7c9e4b10',
  [],
  {},
  [[]],
  [{}],
];

/** The input with one value changed, removed, doubled or taken from another input; as it is when it is no JSON. */
export function mutateJson(input: Buffer, random: Random, others: readonly Buffer[]): Buffer {
  const value = parsed(input);
  if (value === undefined) return input;
  const other = parsed(random.of(others));
  const text = JSON.stringify(changed(value, random, other, 0));
  return text === undefined ? input : Buffer.from(text);
}

function parsed(input: Buffer): unknown {
  if (input.length > bytes_max || (input[0] !== brace && input[0] !== bracket)) return undefined;
  try {
    return JSON.parse(input.toString());
  } catch {
    return undefined;
  }
}

/** Goes down by chance and changes what it stops at. */
function changed(value: unknown, random: Random, other: unknown, depth: number): unknown {
  if (typeof value !== 'object' || value === null || depth === depth_max || random.below(4) === 0)
    return replacement(value, random, other);
  if (Array.isArray(value)) return changedList(value, random, other, depth);
  const entries: (readonly [string, unknown])[] = Object.entries(value);
  if (entries.length === 0) return { a: replacement(value, random, other) };
  const at = random.below(entries.length);
  const [key, held] = entries[at] ?? ['', undefined];
  const kind = random.below(8);
  if (kind === 0) entries.splice(at, 1);
  else if (kind === 1) entries[at] = [random.of(entries)[0], held];
  else if (kind === 2) entries.push([`${key}a`, held]);
  else entries[at] = [key, changed(held, random, other, depth + 1)];
  return Object.fromEntries(entries);
}

function changedList(list: readonly unknown[], random: Random, other: unknown, depth: number): unknown {
  const items = [...list];
  if (items.length === 0) return [replacement(list, random, other)];
  const at = random.below(items.length);
  const kind = random.below(8);
  if (kind === 0) items.splice(at, 1);
  else if (kind === 1) items.splice(at, 0, items[random.below(items.length)]);
  else items[at] = changed(items[at], random, other, depth + 1);
  return items;
}

function replacement(value: unknown, random: Random, other: unknown): unknown {
  const kind = random.below(4);
  if (kind === 0 && other !== undefined) return anyWithin(other, random);
  if (kind === 1 && typeof value === 'number') return random.below(2) === 0 ? -value : value + 1;
  if (kind === 1 && typeof value === 'string') return value + value;
  if (kind === 2) return random.below(2) === 0 ? [value] : { a: value };
  return random.of(edge_values);
}

function anyWithin(value: unknown, random: Random): unknown {
  let at = value;
  for (let depth = 0; depth < depth_max && typeof at === 'object' && at !== null; depth += 1) {
    const held: readonly unknown[] = Object.values(at);
    if (held.length === 0 || random.below(3) === 0) break;
    at = held[random.below(held.length)];
  }
  return at;
}
