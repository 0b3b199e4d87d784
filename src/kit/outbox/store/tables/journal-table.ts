/** The tasks that were dispatched to this kit: open ones, and enough of the finished ones to refuse a second delivery. */
import type { Statement } from 'better-sqlite3';
import type { JournalEntry } from '../../protocol.ts';
import type { Handle } from '../schema.ts';

type Values = [string, string, string, string, number, number, number | null];

/** All texts of all entries; finished ones beyond it are forgotten, so that large dispatches cannot fill the disk. */
const journal_bytes_max = 32 * 1024 * 1024;
/** What one list holds: the memory of the thread is small. */
const list_chars_max = 8 * 1024 * 1024;
const trim_rows = 100;
const bytes_of_entry = 'octet_length(dispatch) + octet_length(result)';
const finished = "state IN ('completed', 'failed')";

export class JournalTable {
  readonly #rows_max: number;
  readonly #put: Statement<Values>;
  readonly #find: Statement<[string], JournalEntry>;
  readonly #newest: Statement<[number], JournalEntry>;
  readonly #open: Statement<[], JournalEntry>;
  readonly #ended: Statement<[], { readonly state: string; readonly tasks: number }>;
  readonly #trim: Statement<[number]>;
  readonly #bytesOf: Statement<[string], number>;
  readonly #total: Statement<[], number>;
  readonly #oldest: Statement<[number], { readonly arrival: number; readonly bytes: number }>;
  readonly #delete: Statement<[number]>;
  #bytes: number;

  constructor(db: Handle, rows_max: number) {
    const columns = 'task_id, state, dispatch, result, received_ms, updated_ms, deadline_ms';
    this.#rows_max = rows_max;
    this.#put = db.prepare(
      `INSERT INTO tasks (${columns}) VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (task_id) DO UPDATE SET
       state = excluded.state, result = excluded.result, updated_ms = excluded.updated_ms, deadline_ms = excluded.deadline_ms`,
    );
    this.#find = db.prepare(`SELECT ${columns} FROM tasks WHERE task_id = ?`);
    this.#newest = db.prepare(`SELECT ${columns} FROM tasks ORDER BY arrival DESC LIMIT ?`);
    this.#open = db.prepare(`SELECT ${columns} FROM tasks WHERE NOT ${finished} ORDER BY arrival`);
    this.#ended = db.prepare(`SELECT state, count(*) AS tasks FROM tasks WHERE ${finished} GROUP BY state`);
    this.#trim = db.prepare(
      `DELETE FROM tasks WHERE ${finished} AND arrival <= (SELECT max(arrival) FROM tasks) - ?`,
    );
    this.#bytesOf = db
      .prepare<[string], number>(`SELECT ${bytes_of_entry} FROM tasks WHERE task_id = ?`)
      .pluck();
    this.#total = db.prepare<[], number>(`SELECT coalesce(sum(${bytes_of_entry}), 0) FROM tasks`).pluck();
    this.#oldest = db.prepare(
      `SELECT arrival, ${bytes_of_entry} AS bytes FROM tasks WHERE ${finished} ORDER BY arrival LIMIT ?`,
    );
    this.#delete = db.prepare('DELETE FROM tasks WHERE arrival = ?');
    this.#bytes = this.#total.get() ?? 0;
  }

  put(entry: JournalEntry): void {
    const { task_id, state, dispatch, result, received_ms, updated_ms, deadline_ms } = entry;
    this.#bytes -= this.#bytesOf.get(task_id) ?? 0;
    this.#put.run(task_id, state, dispatch, result, received_ms, updated_ms, deadline_ms);
    this.#bytes += this.#bytesOf.get(task_id) ?? 0;
  }

  /** How many of those that are remembered have ended. */
  ended(): { readonly completed: number; readonly failed: number } {
    const counts = new Map(this.#ended.all().map(({ state, tasks }) => [state, tasks]));
    return { completed: counts.get('completed') ?? 0, failed: counts.get('failed') ?? 0 };
  }

  find(task_id: string): JournalEntry | undefined {
    return this.#find.get(task_id);
  }

  /** The newest, newest first. */
  list(limit: number): readonly JournalEntry[] {
    const entries: JournalEntry[] = [];
    let chars = 0;
    for (const entry of this.#newest.iterate(Math.min(limit, this.#rows_max))) {
      chars += entry.dispatch.length + entry.result.length;
      if (entries.length > 0 && chars > list_chars_max) break;
      entries.push(entry);
    }
    return entries;
  }

  /** Not completed and not failed, oldest first. */
  open(): readonly JournalEntry[] {
    return this.#open.all();
  }

  /** Forgets finished tasks beyond the limits, by the order in which they arrived: the time of day may have jumped. */
  trim(): void {
    if (this.#trim.run(this.#rows_max).changes > 0) this.#bytes = this.#total.get() ?? 0;
    while (this.#bytes > journal_bytes_max) {
      const oldest = this.#oldest.all(trim_rows);
      if (oldest.length === 0) return;
      for (const { arrival, bytes } of oldest) {
        if (this.#bytes <= journal_bytes_max) return;
        this.#delete.run(arrival);
        this.#bytes -= bytes;
      }
    }
  }
}
