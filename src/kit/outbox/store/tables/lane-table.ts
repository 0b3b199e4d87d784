/** The rows of one lane on disk. Every change is recorded in the `Changes` of its transaction; there is no separate counter. */
import type { Statement } from 'better-sqlite3';
import type { Lane } from '../../../../contract/lanes.ts';
import type { Changes, Span } from '../changes.ts';
import type { Removal } from '../../protocol.ts';
import { positionOf, type Row, rowBytes, rowId, type RowId, soundTime, wholeNumber } from '../../row.ts';
import { type Handle, laneTable } from '../schema.ts';

/** A row as the table has it; an array costs half of what an object costs. */
export type StoredRow = readonly [
  id: RowId,
  topic: number,
  time_ms: number,
  mono_ms: number | null,
  body: string,
];

/** The part of a row that retention needs. `time_ms` may be a time since boot: it only serves to compare neighbours. */
export type RowOutline = readonly [id: RowId, topic: number, time_ms: number, bytes: number];

export class LaneTable {
  readonly lane: Lane;
  readonly #channels: ChannelIds;
  readonly #insert: Statement<[RowId, number, number, number | null, number, string]>;
  readonly #after: Statement<[RowId, number], StoredRow>;
  readonly #outline: Statement<[RowId, RowId, number], RowOutline>;
  readonly #weigh: Statement<[RowId, RowId], readonly [rows: number, bytes: number, lo: RowId, hi: RowId]>;
  readonly #delete: Statement<[RowId, RowId]>;
  readonly #oldest: Statement<[], StoredRow>;
  readonly #fromEnd: Statement<[number], RowId>;
  readonly #ofTopic: Statement<[number], RowId>;
  readonly #olderOfTopic: Statement<[RowId, RowId], RowId>;
  readonly #newerOfTopic: Statement<[number, RowId], number>;

  constructor(db: Handle, lane: Lane, channels: ChannelIds) {
    const table = laneTable(lane);
    this.lane = lane;
    this.#channels = channels;
    this.#insert = db.prepare(
      `INSERT OR IGNORE INTO ${table} (id, topic, time_ms, mono_ms, bytes, body) VALUES (?, ?, ?, ?, ?, ?)`,
    );
    const columns = 'id, topic, time_ms, mono_ms, body';
    this.#after = db
      .prepare<[RowId, number], StoredRow>(`SELECT ${columns} FROM ${table} WHERE id > ? ORDER BY id LIMIT ?`)
      .raw();
    this.#outline = db
      .prepare<[RowId, RowId, number], RowOutline>(
        `SELECT id, topic, coalesce(mono_ms, time_ms), bytes FROM ${table} WHERE id > ? AND id <= ? ORDER BY id LIMIT ?`,
      )
      .raw();
    this.#weigh = db
      .prepare<[RowId, RowId], readonly [number, number, RowId, RowId]>(
        `SELECT count(*), coalesce(sum(bytes), 0), min(id), max(id) FROM ${table} WHERE id BETWEEN ? AND ?`,
      )
      .raw();
    this.#delete = db.prepare(`DELETE FROM ${table} WHERE id BETWEEN ? AND ?`);
    this.#oldest = db.prepare<[], StoredRow>(`SELECT ${columns} FROM ${table} ORDER BY id LIMIT 1`).raw();
    this.#fromEnd = db
      .prepare<[number], RowId>(`SELECT id FROM ${table} ORDER BY id DESC LIMIT 1 OFFSET ?`)
      .pluck();
    this.#ofTopic = db
      .prepare<[number], RowId>(`SELECT id FROM ${table} WHERE topic = ? ORDER BY id`)
      .pluck();
    this.#olderOfTopic = db
      .prepare<[RowId, RowId], RowId>(
        `SELECT id FROM ${table} WHERE topic = (SELECT topic FROM ${table} WHERE id = ?) AND id < ? ORDER BY id`,
      )
      .pluck();
    this.#newerOfTopic = db
      .prepare<[number, RowId], number>(`SELECT 1 FROM ${table} WHERE topic = ? AND id > ? LIMIT 1`)
      .pluck();
  }

  /** False when the row was there already: a commit whose outcome was unknown is tried again. */
  insert(row: Row, changes: Changes): boolean {
    const bytes = rowBytes(row);
    const topic = this.#channels.idOf(row.channel);
    const mono_ms = row.mono_ms === null ? null : wholeNumber(row.mono_ms);
    const { changes: inserted } = this.#insert.run(
      row.id,
      topic,
      soundTime(row.time_ms),
      mono_ms,
      bytes,
      row.body,
    );
    if (inserted === 0) return false;
    changes.came(this.lane, bytes);
    return true;
  }

  has(id: RowId): boolean {
    return this.after(id - 1, 1)[0]?.[0] === id;
  }

  /** The next rows after `after`, in the order of their numbers. */
  after(after: RowId, rows_max: number): readonly StoredRow[] {
    return this.#after.all(after, rows_max);
  }

  outline(after: RowId, to: RowId, rows_max: number): readonly RowOutline[] {
    return this.#outline.all(after, to, rows_max);
  }

  /** Removes everything between two numbers, both included, of one epoch. */
  removeSpan(lo: RowId, hi: RowId, why: Removal['why'], changes: Changes): Span | undefined {
    const [rows, bytes, first, last] = this.#weigh.get(lo, hi) ?? [0, 0, lo, hi];
    if (rows === 0) return undefined;
    const span = { rows, bytes, lo: first, hi: last };
    this.#delete.run(lo, hi);
    changes.left(this.lane, why, span);
    return span;
  }

  /** Removes exactly these rows, whose numbers rise: a gap between them may hold a row that came later. */
  removeRows(ids: readonly RowId[], why: Removal['why'], changes: Changes): void {
    for (const [lo, hi] of runsOf(ids)) this.removeSpan(lo, hi, why, changes);
  }

  oldest(): StoredRow | undefined {
    return this.#oldest.get();
  }

  /** The number of the newest row but `count`. */
  fromEnd(count: number): RowId | undefined {
    return this.#fromEnd.get(count);
  }

  /** The rows of a channel, oldest first, in the lane that keeps the newest of each. */
  rowsOf(channel: string): readonly RowId[] {
    return this.#ofTopic.all(this.#channels.idOf(channel));
  }

  /** True when the lane holds a newer row of the same topic. */
  isOutdated(topic: number, id: RowId): boolean {
    return this.#newerOfTopic.get(topic, id) !== undefined;
  }

  /** Older rows of the channel that the row `id` belongs to. */
  olderThan(id: RowId): readonly RowId[] {
    return this.#olderOfTopic.all(id, id);
  }
}

/** Rising numbers as runs without gaps. A run never crosses an epoch, since no epoch uses its last number. */
function* runsOf(ids: readonly RowId[]): Generator<readonly [lo: RowId, hi: RowId]> {
  const first = ids[0];
  if (first === undefined) return;
  let [lo, hi] = [first, ids.at(-1) ?? first];
  if (hi - lo === ids.length - 1) {
    yield [lo, hi];
    return;
  }
  hi = lo;
  for (const id of ids) {
    if (id > hi + 1) {
      yield [lo, hi];
      lo = id;
    }
    hi = id;
  }
  yield [lo, hi];
}

/** The last number of the epoch that `id` belongs to. */
export function lastOfEpoch(id: RowId): RowId {
  return rowId({ epoch: positionOf(id).epoch + 1, seq: 0 }) - 1;
}

const cached_max = 10_000;
/** Task channels are never used twice: while the buffer is empty, a table grown beyond this is emptied too. */
const stale_max = 5_000;

/** Gives every channel a small number, so that a row does not repeat its text. */
export class ChannelIds {
  readonly #ids = new Map<string, number>();
  readonly #channels = new Map<number, string>();
  readonly #find: Statement<[string], number>;
  readonly #add: Statement<[string]>;
  readonly #read: Statement<[number], string>;
  readonly #newest: Statement<[], number | null>;
  readonly #clear: Statement<[]>;

  constructor(db: Handle) {
    this.#find = db.prepare<[string], number>('SELECT id FROM topics WHERE channel = ?').pluck();
    this.#add = db.prepare<[string]>('INSERT INTO topics (channel) VALUES (?)');
    this.#read = db.prepare<[number], string>('SELECT channel FROM topics WHERE id = ?').pluck();
    this.#newest = db.prepare<[], number | null>('SELECT max(id) FROM topics').pluck();
    this.#clear = db.prepare<[]>('DELETE FROM topics');
  }

  /** The number of a channel; a new one when it has none. Needs a transaction. */
  idOf(channel: string): number {
    const known = this.#ids.get(channel) ?? this.#find.get(channel);
    const id = known ?? Number(this.#add.run(channel).lastInsertRowid);
    this.#remember(id, channel);
    return id;
  }

  /** Undefined when a damaged file has lost the number. */
  channelOf(id: number): string | undefined {
    const known = this.#channels.get(id);
    if (known !== undefined) return known;
    const channel = this.#read.get(id);
    if (channel !== undefined) this.#remember(id, channel);
    return channel;
  }

  /** To be called after a rollback: what was numbered in it is not. */
  forget(): void {
    this.#ids.clear();
    this.#channels.clear();
  }

  /** To be called, within a transaction, while no row refers to a channel. */
  tidy(): void {
    if ((this.#newest.get() ?? 0) <= stale_max) return;
    this.#clear.run();
    this.forget();
  }

  #remember(id: number, channel: string): void {
    if (this.#ids.get(channel) === id) return;
    if (this.#ids.size >= cached_max) this.forget();
    this.#ids.set(channel, id);
    this.#channels.set(id, channel);
  }
}
