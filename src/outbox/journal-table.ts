/** The tasks that were dispatched to this kit: open ones, and enough of the finished ones to refuse a second delivery. */
import type { Statement } from 'better-sqlite3';
import type { JournalEntry } from './protocol.ts';
import type { Handle } from './schema.ts';

type Values = [string, string, string, string, number, number, number | null];

export class JournalTable {
  readonly #rows_max: number;
  readonly #put: Statement<Values>;
  readonly #find: Statement<[string], JournalEntry>;
  readonly #newest: Statement<[number], JournalEntry>;
  readonly #open: Statement<[], JournalEntry>;
  readonly #trim: Statement<[number]>;

  constructor(db: Handle, rows_max: number) {
    const columns = 'task_id, state, dispatch, result, received_ms, updated_ms, deadline_ms';
    this.#rows_max = rows_max;
    this.#put = db.prepare(
      `INSERT INTO tasks (${columns}) VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (task_id) DO UPDATE SET
       state = excluded.state, result = excluded.result, updated_ms = excluded.updated_ms, deadline_ms = excluded.deadline_ms`,
    );
    this.#find = db.prepare(`SELECT ${columns} FROM tasks WHERE task_id = ?`);
    this.#newest = db.prepare(`SELECT ${columns} FROM tasks ORDER BY arrival DESC LIMIT ?`);
    this.#open = db.prepare(
      `SELECT ${columns} FROM tasks WHERE state NOT IN ('completed', 'failed') ORDER BY arrival`,
    );
    this.#trim = db.prepare(
      `DELETE FROM tasks WHERE state IN ('completed', 'failed') AND arrival <= (SELECT max(arrival) FROM tasks) - ?`,
    );
  }

  put(entry: JournalEntry): void {
    const { task_id, state, dispatch, result, received_ms, updated_ms, deadline_ms } = entry;
    this.#put.run(task_id, state, dispatch, result, received_ms, updated_ms, deadline_ms);
  }

  find(task_id: string): JournalEntry | undefined {
    return this.#find.get(task_id);
  }

  /** The newest, newest first. */
  list(limit: number): readonly JournalEntry[] {
    return this.#newest.all(Math.min(limit, this.#rows_max));
  }

  /** Not completed and not failed, oldest first. */
  open(): readonly JournalEntry[] {
    return this.#open.all();
  }

  /** Forgets finished tasks beyond the limit, by the order in which they arrived: the time of day may have jumped. */
  trim(): void {
    this.#trim.run(this.#rows_max);
  }
}
