/** Groups the messages of a batch, one at a time: it keeps their columns and not their texts. */
import { encodeDeltas } from './deltas.ts';
import { encodeColumn } from './encode.ts';
import type { BatchItem } from './pack.ts';
import { ScannedRows } from './scan.ts';
import type { Json } from '../json.ts';

/** Groups of one channel that have columns; what is more varied is kept as it is. */
const column_groups_max = 16;

/** Messages of one channel, epoch and quality of time, with the same keys. */
class Group {
  readonly head: BatchItem;
  /** Undefined: the data of these messages is kept as it is. */
  readonly keys: readonly string[] | undefined;
  readonly #seqs: number[] = [];
  readonly #times: number[] = [];
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
    const start = `{"e":${epoch},"ch":${JSON.stringify(channel)},${quality}${position}`;
    // One message alone gains nothing from columns.
    if (this.#seqs.length === 1) return `${start},"v":[${data}]}`;
    if (!this.keys) return `${start},"v":[${this.#texts.join(',')}]}`;
    const columns = this.#scanned?.write() ?? parsedColumns(this.keys, this.#texts);
    return `${start},"k":${JSON.stringify(this.keys)},"c":[${columns.join(',')}]}`;
  }

  #place({ seq, time_ms }: BatchItem): void {
    this.#seqs.push(seq);
    this.#times.push(Math.trunc(time_ms));
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
