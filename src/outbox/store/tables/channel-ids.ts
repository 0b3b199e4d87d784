/** Gives every channel a small number, so that a row does not repeat its text. */
import type { Statement } from 'better-sqlite3';
import type { Handle } from '../schema.ts';

const cached_max = 10_000;
/** Task channels are never used twice: while the buffer is empty, a table grown beyond this is emptied too. */
const stale_max = 5_000;

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
