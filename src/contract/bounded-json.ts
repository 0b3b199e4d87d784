/**
 * Reads JSON that comes from outside. Size, depth, number of values and length of strings are counted in one pass over the
 * text before anything is built: 8 kB of compressed text can hold millions of values, and a schema would list a fault for each.
 */
import { randomInt } from 'node:crypto';

export interface JsonLimits {
  /** UTF-8 bytes of the text. */
  readonly bytes_max: number;
  /** Containers within each other. */
  readonly depth_max: number;
  /** Values, including those in containers and the containers themselves. */
  readonly values_max: number;
  /** Characters of one string or key as written, escape sequences included. */
  readonly string_max: number;
}

/** The body of one message may have so many bytes: the outbox accepts no more. */
export const message_bytes_max = 256 * 1024;

/** Limits of one message of the contract, in either direction, with its envelope. */
export const message_limits: JsonLimits = {
  bytes_max: message_bytes_max * 3 + 1_024,
  depth_max: 32,
  values_max: 50_000,
  string_max: message_bytes_max,
};

/** Limits of one answer of a device or of a server beside the kit. */
export const answer_limits: JsonLimits = {
  bytes_max: 4 * 1024 * 1024,
  depth_max: 32,
  values_max: 50_000,
  string_max: 1024 * 1024,
};

/** Limits of a request from a person or a tool. */
export const request_limits: JsonLimits = {
  bytes_max: 1_000_000,
  depth_max: 32,
  values_max: 20_000,
  string_max: 256 * 1024,
};

/**
 * Different keys of all objects of a text together. The parser makes and keeps a shape for each: 260,000 of them, in 600 kB of
 * compressed text, cost 0.8 s. A drone has about 1,500 parameters, and a kit packs 64 KiB of messages together.
 */
export const keys_max = 8_192;

const quote = 0x22;
const colon = 0x3a;
const backslash = 0x5c;
const comma = 0x2c;
const open_bracket = 0x5b;
const close_bracket = 0x5d;
const open_brace = 0x7b;
const close_brace = 0x7d;

/** Returns the parsed value. Throws a `RangeError` that names the first limit exceeded, or a `SyntaxError`. */
export function readJson(input: string | Uint8Array, limits: JsonLimits): unknown {
  const value: unknown = JSON.parse(boundedText(input, limits));
  return value;
}

/** The text of JSON within the limits. Throws a `RangeError` that names the first limit exceeded. */
export function boundedText(input: string | Uint8Array, limits: JsonLimits): string {
  const text = decodedText(input, limits);
  countValues(text, limits);
  return text;
}

/** The text of at most so many bytes, its values not yet counted. Throws a `RangeError` for more. */
export function decodedText(
  input: string | Uint8Array,
  { bytes_max }: Pick<JsonLimits, 'bytes_max'>,
): string {
  // No character takes less than a byte, so that a text beyond the limit is refused without decoding it.
  const bytes = input.length > bytes_max ? input.length : Buffer.byteLength(input);
  if (bytes > bytes_max) throw tooMany('bytes', bytes, bytes_max);
  if (typeof input === 'string') return input;
  return Buffer.from(input.buffer, input.byteOffset, input.byteLength).toString('utf8');
}

/** Counts the values without parsing. Throws a `RangeError` at the first limit exceeded. */
export function countValues(text: string, { depth_max, values_max, string_max }: JsonLimits): number {
  let depth = 0;
  let values = 1;
  let keys = 0;
  for (let at = 0; at < text.length; at += 1) {
    switch (text.charCodeAt(at)) {
      case quote:
        at = endOfString(text, at, string_max);
        break;
      case comma:
        values += 1;
        break;
      case colon:
        keys += 1;
        continue;
      case open_bracket:
      case open_brace:
        depth += 1;
        values += 1;
        if (depth > depth_max) throw new RangeError(`nested deeper than ${depth_max} levels`);
        break;
      case close_bracket:
      case close_brace:
        depth -= 1;
        break;
      default:
        continue;
    }
    if (values > values_max) throw new RangeError(`more than ${values_max} values`);
  }
  checkKeys(text, keys, string_max);
  return values;
}

/** Refuses what has more than `keys_max` different keys. */
export function tooManyKeys(): RangeError {
  return new RangeError(`more than ${keys_max} different keys`);
}

/** Bits of a hash of a key. Two keys may share a place, so that a few keys above the limit may pass. */
const place_bits = 20;
/** Chosen at each start, so that no sender can prepare keys that share their places. */
const hash_seed = randomInt(2 ** 32);
/** Odd numbers with well spread bits, of FNV and of the last step of MurmurHash 3. */
const [step, spread] = [0x01000193, 0x85ebca6b];

/** Throws for more than `keys_max` different keys among so many. */
function checkKeys(text: string, keys: number, string_max: number): void {
  if (keys > keys_max && hasManyKeys(text, string_max)) throw tooManyKeys();
}

/** Whether the text has more than `keys_max` different keys. Only texts with many keys are asked, since it takes as long as counting. */
function hasManyKeys(text: string, string_max: number): boolean {
  const known = new Uint8Array(2 ** place_bits);
  let different = 0;
  let [start, end] = [0, 0];
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === quote) {
      start = at;
      at = endOfString(text, at, string_max);
      end = at;
    } else if (code === colon) {
      const place = placeOf(text, start, end);
      if (known[place] === 0) different += 1;
      if (different > keys_max) return true;
      known[place] = 1;
      // In what is no JSON many colons may follow one string: each would take as long as the string.
      start = end;
    }
  }
  return false;
}

function placeOf(text: string, start: number, end: number): number {
  let hash = hash_seed;
  for (let at = start; at < end; at += 1) hash = Math.imul(hash ^ text.charCodeAt(at), step);
  hash = Math.imul(hash ^ (hash >>> 16), spread);
  return (hash ^ (hash >>> 13)) >>> (32 - place_bits);
}

/** Index of the closing quotation mark, or of the end of a text that lacks it. Throws a `RangeError` for a longer one. */
export function endOfString(text: string, start: number, string_max = Infinity): number {
  for (let at = start + 1; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === quote) return at;
    if (code === backslash) at += 1;
    if (at - start > string_max) throw new RangeError(`a string of more than ${string_max} characters`);
  }
  return text.length;
}

function tooMany(unit: string, count: number, count_max: number): RangeError {
  return new RangeError(`${count} ${unit}; at most ${count_max}`);
}
