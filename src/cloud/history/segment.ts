/**
 * The bodies that the history stores: the packed form of a batch (`contract/batch/pack.ts`), or JSON for few messages.
 * Everything in them was checked when it arrived, so they are read without schemas, and a column only when it is asked for.
 */
import { deflateSync, inflateSync } from 'node:zlib';
import { z } from 'zod';
import { powers } from '../../contract/batch/encode.ts';
import { parseInSteps } from '../../contract/batch/json-steps.ts';
import { deflate_options, writeBatch } from '../../contract/batch/pack.ts';
import { finishBetween, Pace } from '../../contract/batch/steps.ts';
import type { Json, JsonObject } from '../../contract/json.ts';
import { readChannel } from '../../contract/topics.ts';
import { turn } from '../../platform/time.ts';
import { sql, type Queries, type Row } from '../sql/database.ts';
import type { HistoryMessage } from './message.ts';

/** Below this, JSON is smaller than columns, and quicker. */
const packed_from = 8;
/** First byte of a body that holds JSON. */
const json_start = 0x5b;

/** Messages of one channel and epoch with the same keys. */
export interface Group {
  readonly channel: string;
  readonly epoch: number;
  readonly unsynced: boolean;
  readonly seqs: readonly number[];
  readonly times_ms: readonly number[];
  /** Undefined: not known of each. */
  readonly arrivals: readonly number[] | undefined;
  /** Keys of the data of any of its messages. */
  readonly keys: readonly string[];
  /** The value of a key of each message; undefined: they have no such key. */
  readonly valuesOf: (key: string) => readonly (Json | undefined)[] | undefined;
  /** JSON text of the message at this index. */
  readonly textOf: (index: number) => string;
}

/** A message as the landing stores it. */
type Lone = readonly [
  channel: string,
  epoch: number,
  seq: number,
  time_ms: number,
  unsynced: 0 | 1,
  data: Json,
  arrived_ms?: number,
];

/** Packs messages, at least one. */
export function packSegment(messages: readonly HistoryMessage[]): Uint8Array {
  if (messages.length < packed_from) return Buffer.from(writeLone(messages));
  const items = messages.map(({ channel, epoch, seq, time_ms, unsynced, data, arrived_ms }) => ({
    channel,
    epoch,
    seq,
    time_ms,
    data,
    arrived_ms,
    ...(unsynced && { time_quality: 'unsynced' as const }),
  }));
  return deflateSync(writeBatch(items, { historical: true }), deflate_options);
}

function writeLone(messages: readonly HistoryMessage[]): string {
  const rows = messages.map(
    ({ channel, epoch, seq, time_ms, unsynced, data, arrived_ms }) =>
      `[${JSON.stringify(channel)},${epoch},${seq},${time_ms},${unsynced ? 1 : 0},${data}${arrived_ms === undefined ? '' : `,${arrived_ms}`}]`,
  );
  return `[${rows.join(',')}]`;
}

/** Reads the groups of a body. A batch that was stored as it came may be long: others have a turn between its steps. */
export async function openSegment(body: Uint8Array): Promise<readonly Group[]> {
  const isLone = body[0] === json_start;
  const text = (isLone ? Buffer.from(body) : inflateSync(body)).toString();
  const stored = await finishBetween(parseInSteps(text, new Pace()), turn);
  if (isLone) {
    return loneMessages.parse(stored).map(([channel, epoch, seq, time_ms, unsynced, data, arrived_ms]) => {
      const arrivals = arrived_ms === undefined ? undefined : [arrived_ms];
      const of = { channel, epoch, unsynced: unsynced === 1, seqs: [seq], times_ms: [time_ms], arrivals };
      return plainGroup(of, [data]);
    });
  }
  const { groups } = storedBatch.parse(stored);
  return groups.filter(({ ch }) => isHistory(ch)).map(groupOf);
}

/** The messages of a body, in the order of its groups. */
export async function messagesOf(body: Uint8Array): Promise<HistoryMessage[]> {
  return messagesOfGroups(await openSegment(body));
}

/** The messages of these groups, with a turn for others between many. */
export async function messagesOfGroups(groups: readonly Group[]): Promise<HistoryMessage[]> {
  const messages: HistoryMessage[] = [];
  const pace = new Pace();
  for (const { channel, epoch, unsynced, seqs, times_ms, textOf } of groups) {
    for (const [index, seq] of seqs.entries()) {
      const data = textOf(index);
      messages.push({ channel, epoch, seq, time_ms: times_ms[index] ?? 0, unsynced, data });
      if (pace.isDue(data.length)) await turn();
    }
  }
  return messages;
}

/** The same with their places in the order of arrival; 0: an earlier version has stored them. */
export async function arrivedMessages(groups: readonly Group[]): Promise<HistoryMessage[]> {
  const messages = await messagesOfGroups(groups);
  const arrivals = groups.flatMap(({ arrivals: its, seqs }) => its ?? seqs.map(() => 0));
  return messages.map((message, at) => arrivedAt(message, arrivals[at] ?? 0));
}

export function arrivedAt(message: HistoryMessage, arrived_ms: number): HistoryMessage {
  return { ...message, arrived_ms };
}

/** A batch that was stored as it came may hold channels of a later version, which were not counted as received. */
function isHistory(channel: string): boolean {
  const kind = readChannel(channel)?.kind;
  return kind !== undefined && kind !== 'batch';
}

interface Deltas {
  readonly s: number;
  readonly d: readonly number[];
}
type StoredColumn =
  | Deltas
  | { readonly t: readonly number[] }
  | { readonly v: readonly Json[] }
  | { readonly c: Json };
interface StoredGroup {
  readonly e: number;
  readonly ch: string;
  readonly q?: string;
  readonly seq: readonly number[];
  readonly t: readonly number[];
  readonly a?: readonly number[];
  readonly v?: readonly Json[];
  readonly k?: readonly string[];
  readonly c?: readonly StoredColumn[];
}

/** Nothing is checked: what is stored was written by `packSegment`, or read as a batch on arrival. */
const loneMessages = z.custom<readonly Lone[]>();
const storedBatch = z.custom<{ readonly groups: readonly StoredGroup[] }>();

type Head = Pick<Group, 'channel' | 'epoch' | 'unsynced' | 'seqs' | 'times_ms' | 'arrivals'>;

function groupOf({ e, ch, q, seq, t, a, v, k = [], c = [] }: StoredGroup): Group {
  const head = {
    channel: ch,
    epoch: e,
    unsynced: q === 'unsynced',
    seqs: sums(seq),
    times_ms: sums(t),
    arrivals: a && sums(a),
  };
  if (v) return plainGroup(head, v);
  const decoded = new Map<string, readonly Json[]>();
  const columnOf = (key: string): readonly Json[] | undefined => {
    const known = decoded.get(key);
    if (known) return known;
    const stored = c[k.indexOf(key)];
    if (!stored) return undefined;
    const values = columnValues(stored, seq.length);
    decoded.set(key, values);
    return values;
  };
  return {
    ...head,
    keys: k,
    valuesOf: columnOf,
    textOf: (index) =>
      `{${k.map((key) => `${JSON.stringify(key)}:${JSON.stringify(columnOf(key)?.[index])}`).join(',')}}`,
  };
}

function plainGroup(head: Head, data: readonly Json[]): Group {
  return {
    ...head,
    get keys() {
      return [...new Set(data.flatMap(keysOf))];
    },
    valuesOf: (key) => data.map((value) => valueAt(value, key)),
    textOf: (index) => JSON.stringify(data[index]),
  };
}

function keysOf(value: Json): readonly string[] {
  return isObject(value) ? Object.keys(value) : [];
}

function valueAt(value: Json | undefined, key: string): Json | undefined {
  return isObject(value) && Object.hasOwn(value, key) ? value[key] : undefined;
}

function isObject(value: Json | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function columnValues(stored: StoredColumn, rows: number): readonly Json[] {
  if ('c' in stored) return Array<Json>(rows).fill(stored.c);
  if ('v' in stored) return stored.v;
  if ('t' in stored) return sums(stored.t).map((time_ms) => new Date(time_ms).toISOString());
  const power = powers[stored.s] ?? 1;
  return sums(stored.d).map((integer) => integer / power);
}

function sums(deltas: readonly number[]): number[] {
  let sum = 0;
  return deltas.map((delta) => (sum += delta));
}

/** The body in a row of the history. */
export function bodyOf(row: Row): Uint8Array {
  const body = row['body'];
  if (body instanceof Uint8Array) return body;
  throw new TypeError('a body of the history is not binary');
}

/** The body of a segment; undefined: it was joined with others meanwhile, or deleted. */
export async function readBody(
  queries: Queries,
  kit_id: string,
  id: string,
): Promise<Uint8Array | undefined> {
  const [row] = await sql(queries)`SELECT body FROM history WHERE kit_id = ${kit_id} AND id = ${id}`;
  return row && bodyOf(row);
}
