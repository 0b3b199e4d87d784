/** Groups the messages of a batch, one at a time: it keeps their columns and not their texts. */
import { encodeDeltas } from './deltas.ts';
import { decimals_max, encodeTexts, powers, scaled_max } from './encode.ts';
import type { Json } from '../json.ts';
import type { Observed } from '../envelope.ts';

/** One message of a batch. `data` is JSON text; `null` stands for the empty payload that clears a retained topic. */

export interface BatchItem extends Observed {
  /** The topic below `k1/{kit_id}/up/`. */
  readonly channel: string;
  readonly data: string;
  /** Only in the history of a service, never on the wire. */
  readonly arrived_ms?: number | undefined;
}

/** Groups of one channel that have columns; what is more varied is kept as it is. */
const column_groups_max = 16;

/** Messages of one channel, epoch and quality of time, with the same keys. */
class Group {
  readonly head: BatchItem;
  /** Undefined: the data of these messages is kept as it is. */
  readonly keys: readonly string[] | undefined;
  readonly #seqs: number[] = [];
  readonly #times: number[] = [];
  readonly #arrivals: number[] = [];
  /** The data, as long as it could be read without parsing it. */
  #scanned: ScannedRows | undefined;
  /** The data, once it could not. */
  #texts: string[] = [];

  constructor(head: BatchItem, keys: readonly string[] | undefined) {
    this.head = head;
    this.keys = keys;
    if (keys && keys.length > 0) this.#scanned = new ScannedRows(keys);
  }

  isOf(item: BatchItem): boolean {
    return this.head.epoch === item.epoch && this.head.time_quality === item.time_quality;
  }

  /** Adds a message of this group if it can be read without parsing it. */
  scan(item: BatchItem): boolean {
    if (this.#scanned?.add(item.data) !== true) return false;
    this.#place(item);
    return true;
  }

  /** Adds a message of this group. */
  add(item: BatchItem): void {
    if (this.#scanned) {
      this.#texts = [...this.#scanned.texts()];
      this.#scanned = undefined;
    }
    this.#texts.push(item.data);
    this.#place(item);
  }

  write(): string {
    const { channel, epoch, time_quality, data } = this.head;
    const quality = time_quality ? `"q":"${time_quality}",` : '';
    const position = `"seq":${encodeDeltas(this.#seqs)},"t":${encodeDeltas(this.#times)}`;
    const arrivals = this.#arrivals.length === 0 ? '' : `,"a":${encodeDeltas(this.#arrivals)}`;
    const start = `{"e":${epoch},"ch":${JSON.stringify(channel)},${quality}${position}${arrivals}`;
    // One message alone gains nothing from columns.
    if (this.#seqs.length === 1) return `${start},"v":[${data}]}`;
    if (!this.keys) return `${start},"v":[${this.#texts.join(',')}]}`;
    const columns = this.#scanned?.write() ?? parsedColumns(this.keys, this.#texts);
    return `${start},"k":${JSON.stringify(this.keys)},"c":[${columns.join(',')}]}`;
  }

  #place({ seq, time_ms, arrived_ms }: BatchItem): void {
    this.#seqs.push(seq);
    this.#times.push(Math.trunc(time_ms));
    if (arrived_ms !== undefined) this.#arrivals.push(arrived_ms);
  }
}

export class BatchWriter {
  readonly #by_channel = new Map<string, Group[]>();

  /** Throws a `SyntaxError` for data that is no JSON; then nothing was added. */
  add(item: BatchItem): void {
    let siblings = this.#by_channel.get(item.channel);
    if (!siblings) this.#by_channel.set(item.channel, (siblings = []));
    for (const sibling of siblings) if (sibling.isOf(item) && sibling.scan(item)) return;
    addParsed(item, siblings);
  }

  /** The JSON text of the batch. */
  write({ historical }: { readonly historical: boolean }): string {
    const groups = [...this.#by_channel.values()].flat().map((group) => group.write());
    return `{"v":1,"historical":${historical},"groups":[${groups.join(',')}]}`;
  }
}

/** Adds a message that no group could take without parsing it. */
function addParsed(item: BatchItem, siblings: Group[]): void {
  const data: unknown = JSON.parse(item.data);
  const wanted = isObject(data) ? Object.keys(data) : undefined;
  const keys = siblings.length < column_groups_max ? wanted : undefined;
  let group =
    siblings.find((sibling) => takes(sibling, item, wanted)) ??
    siblings.find((sibling) => keys === undefined && takes(sibling, item, keys));
  if (!group) {
    siblings.push((group = new Group(item, keys)));
    if (group.scan(item)) return;
  }
  group.add(item);
}

function takes(sibling: Group, item: BatchItem, wanted: readonly string[] | undefined): boolean {
  const { keys } = sibling;
  if (!sibling.isOf(item)) return false;
  if (!keys || !wanted) return keys === wanted;
  return keys.length === wanted.length && keys.every((key, index) => key === wanted[index]);
}

function isObject(data: unknown): data is Readonly<Record<string, Json>> {
  return typeof data === 'object' && data !== null && !Array.isArray(data);
}

function parsedColumns(keys: readonly string[], texts: readonly string[]): readonly string[] {
  const rows = texts.map((text): unknown => JSON.parse(text));
  return keys.map((key) => encodeColumn(rows.map((row) => (isObject(row) ? (row[key] ?? null) : null))));
}

/** JSON text of the column of these values, at least one: many values of one kind as few characters, and exactly the same once decoded. */
export function encodeColumn(values: readonly Json[]): string {
  const column = new ScannedColumn();
  for (const value of values) column.keepText(JSON.stringify(value));
  return column.write();
}

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

  /** Keeps a value by its JSON text. */
  keepText(text: string): void {
    if (this.read(text, 0) !== text.length) this.#text = text;
    this.keep();
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

/**
 * Reads the texts of messages straight into the columns of a batch: rows with these keys in this order, and with values that are
 * neither lists nor objects. No object is made for a row: the small heap of the buffer's thread would have to collect it.
 */
class ScannedRows {
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
