/**
 * Reads the texts of messages with the same keys straight into the columns of a batch. No object is
 * made for a row: the small heap of the buffer's thread would have to collect it.
 */
import { encodeDeltas } from './deltas.ts';
import { decimals_max, encodeTexts, powers, scaled_max } from './encode.ts';

/** Digits of a number that is surely exact as an integer, or is found not to be. */
const digits_max = 16;
const [minus, point, zero, nine, quote, backslash, brace] = [45, 46, 48, 57, 34, 92, 125];
const first_printable = 32;
const literals = ['null', 'true', 'false'];
/** Strings up to this length are remembered, one of each length: the next one of a column is often the same. */
const remembered_chars_max = 64;

/** The values of one key: integers of the most decimals so far as long as all of them are numbers, else JSON texts. */
class ScannedColumn {
  readonly #scaled: number[] = [];
  #decimals = 0;
  #texts: string[] | undefined;
  // The value of the row that is being read.
  #integer = 0;
  #integer_decimals = 0;
  #text: string | undefined;
  readonly #strings: string[] = [];

  /** Reads the value that begins at `from` and returns where it ends; -1: only a parser can read it. */
  read(text: string, from: number): number {
    const code = text.charCodeAt(from);
    if (code === quote) return this.#readString(text, from);
    if (code === minus || (code >= zero && code <= nine)) return this.#readNumber(text, from);
    const literal = literals.find((each) => text.startsWith(each, from));
    this.#text = literal;
    return literal === undefined ? -1 : from + literal.length;
  }

  /** Keeps the value that was read last. */
  keep(): void {
    if (this.#text === undefined && !this.#texts && this.#keepScaled()) return;
    this.#toTexts().push(this.#text ?? textOf(this.#integer, this.#integer_decimals));
  }

  /** JSON text of the column. */
  write(): string {
    if (this.#texts) return encodeTexts(this.#texts);
    const [first = 0] = this.#scaled;
    if (this.#scaled.every((integer) => integer === first)) return `{"c":${textOf(first, this.#decimals)}}`;
    return `{"s":${this.#decimals},"d":${encodeDeltas(this.#scaled)}}`;
  }

  /** JSON texts of the values. */
  texts(): readonly string[] {
    return this.#texts ?? this.#scaled.map((integer) => textOf(integer, this.#decimals));
  }

  #readString(text: string, from: number): number {
    for (let at = from + 1; at < text.length; at += 1) {
      const code = text.charCodeAt(at);
      if (code === quote) {
        this.#text = this.#stringOf(text, from, at + 1);
        return at + 1;
      }
      if (code === backslash || code < first_printable) return -1;
    }
    return -1;
  }

  /** A part of a text keeps the whole text in memory: one is enough for all that are the same. */
  #stringOf(text: string, from: number, to: number): string {
    const chars = to - from;
    if (chars > remembered_chars_max) return text.slice(from, to);
    const known = this.#strings[chars];
    if (known !== undefined && text.startsWith(known, from)) return known;
    return (this.#strings[chars] = text.slice(from, to));
  }

  #readNumber(text: string, from: number): number {
    const sign = text.charCodeAt(from) === minus ? -1 : 1;
    const whole_at = sign < 0 ? from + 1 : from;
    this.#integer = 0;
    const whole_end = this.#readDigits(text, whole_at);
    const whole = whole_end - whole_at;
    if (whole === 0 || (whole > 1 && text.charCodeAt(whole_at) === zero)) return -1;
    let end = whole_end;
    if (text.charCodeAt(whole_end) === point) {
      end = this.#readDigits(text, whole_end + 1);
      if (end === whole_end + 1) return -1;
    }
    const decimals = Math.max(0, end - whole_end - 1);
    const isExact = whole + decimals <= digits_max && this.#integer < scaled_max && decimals <= decimals_max;
    this.#text = isExact ? undefined : text.slice(from, end);
    this.#integer *= sign;
    this.#integer_decimals = decimals;
    return end;
  }

  /** Appends digits to the integer and returns where they end. */
  #readDigits(text: string, from: number): number {
    let [at, integer] = [from, this.#integer];
    for (let code = text.charCodeAt(at); code >= zero && code <= nine; code = text.charCodeAt(at)) {
      integer = integer * 10 + code - zero;
      at += 1;
    }
    this.#integer = integer;
    return at;
  }

  /** False: a value would be too large with the same decimals as the others. */
  #keepScaled(): boolean {
    if (this.#integer_decimals > this.#decimals && !this.#rescale()) return false;
    const value = this.#integer * powerOf(this.#decimals - this.#integer_decimals);
    if (!isScalable(value)) return false;
    this.#scaled.push(value);
    return true;
  }

  /** Gives all values as many decimals as the last value has. */
  #rescale(): boolean {
    const power = powerOf(this.#integer_decimals - this.#decimals);
    if (!this.#scaled.every((value) => isScalable(value * power))) return false;
    this.#scaled.forEach((value, row) => (this.#scaled[row] = value * power));
    this.#decimals = this.#integer_decimals;
    return true;
  }

  #toTexts(): string[] {
    this.#texts ??= this.#scaled.map((integer) => textOf(integer, this.#decimals));
    return this.#texts;
  }
}

function powerOf(decimals: number): number {
  return powers[decimals] ?? 1;
}

function isScalable(value: number): boolean {
  return value < scaled_max && value > -scaled_max;
}

/** IEEE 754 divides exactly rounded: the text of the very number that was read. */
function textOf(integer: number, decimals: number): string {
  return JSON.stringify(integer / powerOf(decimals));
}

/** Rows with these keys in this order, and with values that are neither lists nor objects. */
export class ScannedRows {
  readonly #prefixes: readonly string[];
  readonly #columns: readonly ScannedColumn[];

  constructor(keys: readonly string[]) {
    this.#prefixes = keys.map((key, index) => `${index === 0 ? '{' : ','}${JSON.stringify(key)}:`);
    this.#columns = keys.map(() => new ScannedColumn());
  }

  /** Reads a row. False: it is no such row, or only a parser can read it, and nothing has changed. */
  add(text: string): boolean {
    let at = 0;
    let index = 0;
    for (const column of this.#columns) {
      const prefix = this.#prefixes[index] ?? '';
      if (!text.startsWith(prefix, at)) return false;
      at = column.read(text, at + prefix.length);
      if (at < 0) return false;
      index += 1;
    }
    if (text.charCodeAt(at) !== brace || at !== text.length - 1) return false;
    for (const column of this.#columns) column.keep();
    return true;
  }

  /** JSON texts of the rows. */
  texts(): readonly string[] {
    const columns = this.#columns.map((column) => column.texts());
    const values = (row: number): string =>
      columns.map((texts, index) => `${this.#prefixes[index] ?? ''}${texts[row] ?? ''}`).join('');
    return Array.from({ length: columns[0]?.length ?? 0 }, (_, row) => `${values(row)}}`);
  }

  /** JSON texts of the columns. */
  write(): readonly string[] {
    return this.#columns.map((column) => column.write());
  }
}
