/** Reads the tables of the service and of the buffer from beside, for the checks. */
import Database from 'better-sqlite3';
import { lanes } from '../../../src/contract/lanes.ts';
import { channels } from '../../../src/contract/topics.ts';
import { rowId, type RowId } from '../../../src/kit/outbox/row.ts';
import { openSegment } from '../../../src/cloud/history/segment.ts';

function read<T>(file: string, work: (db: Database.Database) => T): T {
  const db = new Database(file, { readonly: true });
  try {
    return work(db);
  } finally {
    db.close();
  }
}

export interface NewestRow {
  /** Table, asset and feed. */
  readonly key: string;
  readonly epoch: number;
  readonly seq: number;
}

/** What the service shows as newest, and from which message it is. */
export function newestRows(file: string): readonly NewestRow[] {
  return read(file, newestRowsOf);
}

/** The same over a connection that is open: to open one takes many times as long. */
export function newestRowsOf(db: Database.Database): readonly NewestRow[] {
  return [
    ...db
      .prepare<[], NewestRow>(`SELECT 'feeds ' || asset_id || ' ' || feed AS key, epoch, seq FROM feeds`)
      .all(),
    ...['assets', 'commands'].flatMap((table) =>
      db.prepare<[], NewestRow>(`SELECT '${table} ' || asset_id AS key, epoch, seq FROM ${table}`).all(),
    ),
  ];
}

export interface TaskRow {
  readonly task_id: string;
  readonly status: string;
  readonly revision: number;
  readonly result: string;
  readonly created_ms: number;
}

export interface ServiceTables {
  readonly counts: { readonly received: number; readonly duplicates: number };
  readonly tasks: ReadonlyMap<string, TaskRow>;
  readonly gone: ReadonlySet<string>;
}

export function serviceTables(file: string): ServiceTables {
  return read(file, (db) => ({
    counts: db
      .prepare<[], { received: number; duplicates: number }>('SELECT received, duplicates FROM kits')
      .get() ?? { received: 0, duplicates: 0 },
    tasks: new Map(
      db
        .prepare<[], TaskRow>('SELECT task_id, status, revision, result, created_ms FROM tasks')
        .all()
        .map((task) => [task.task_id, task]),
    ),
    gone: new Set(db.prepare<[], string>('SELECT asset_id FROM assets WHERE gone = 1').pluck().all()),
  }));
}

/** How often the history holds each numbered message, by epoch and number: in what has landed and in segments. */
export async function historyNumbers(file: string): Promise<ReadonlyMap<RowId, number>> {
  const bodies = read(file, (db) =>
    ['history_in', 'history'].flatMap((table) =>
      db.prepare<[], Uint8Array>(`SELECT body FROM ${table}`).pluck().all(),
    ),
  );
  const counts = new Map<RowId, number>();
  for (const body of bodies) {
    for (const { channel, epoch, seqs } of await openSegment(body)) {
      // Presence counts connections.
      if (channel === channels.state) continue;
      for (const seq of seqs) {
        const id = rowId({ epoch, seq });
        counts.set(id, (counts.get(id) ?? 0) + 1);
      }
    }
  }
  return counts;
}

export interface BufferTables {
  readonly rows: ReadonlySet<RowId>;
  readonly quarantined: ReadonlySet<RowId>;
  readonly states: ReadonlyMap<string, string>;
}

export function bufferTables(file: string): BufferTables {
  return read(file, (db) => ({
    rows: new Set(
      lanes.flatMap((lane) => db.prepare<[], number>(`SELECT id FROM lane_${lane}`).pluck().all()),
    ),
    quarantined: new Set(db.prepare<[], number>('SELECT id FROM quarantine').pluck().all()),
    states: new Map(
      db
        .prepare<[], { task_id: string; state: string }>('SELECT task_id, state FROM tasks')
        .all()
        .map(({ task_id, state }) => [task_id, state]),
    ),
  }));
}
