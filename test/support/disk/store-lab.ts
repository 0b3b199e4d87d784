/** A buffer file in a directory of its own, and short ways to fill it and to look into it. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { lanes, type Lane } from '../../../src/contract/lanes.ts';
import type { StoreClock } from '../../../src/kit/outbox/store/ages.ts';
import {
  idsByLane,
  type JournalEntry,
  type LaneDepth,
  type Opened,
  type OpenOptions,
  type RowRef,
  type StoreLimits,
  type StoreOptions,
  type Work,
} from '../../../src/kit/outbox/protocol.ts';
import { rowId, type Row, type RowId } from '../../../src/kit/outbox/row.ts';
import { openStore, type Store } from '../../../src/kit/outbox/store/store.ts';

export const wide_limits: StoreLimits = {
  bytes_max: 1024 ** 3,
  rows_max: 1_000_000,
  free_bytes_min: 0,
  age_max_ms: 30 * 86_400_000,
  journal_rows_max: 100,
};

const empty_work = {
  rows: [],
  held: [],
  delivered_batches: [],
  unconfirmed_batches: [],
  quarantined: [],
  journal: [],
  dropped: [],
  reported: [],
  delivered_from_memory: 0,
};

type Refs = 'delivered' | 'unconfirmed' | 'superseded';
type WorkParts = Partial<Omit<Work, Refs> & Record<Refs, readonly RowRef[]>>;

export function work({ delivered = [], unconfirmed = [], superseded = [], ...parts }: WorkParts): Work {
  return {
    ...empty_work,
    ...parts,
    delivered: idsByLane(delivered),
    unconfirmed: idsByLane(unconfirmed),
    superseded: idsByLane(superseded),
  };
}

/** Rows `from` to `to` of an epoch, both included. */
export function rowsOf(epoch: number, from: number, to: number, more: Partial<Row> = {}): Row[] {
  return Array.from({ length: to - from + 1 }, (_, index) => {
    const seq = from + index;
    const row = { channel: 'feed/asset/gps', time_ms: seq, mono_ms: null, body: `{"n":${seq}}` };
    return { id: rowId({ epoch, seq }), lane: 'feed', ...row, ...more };
  });
}

/** A task as the journal keeps it. */
export function taskEntry(changes: Partial<JournalEntry> = {}): JournalEntry {
  const task_id = '00000000-0000-4000-8000-0000000000aa';
  const times = { received_ms: 1, updated_ms: 2, deadline_ms: null };
  return { task_id, state: 'completed', dispatch: '{}', result: '{}', ...times, ...changes };
}

export function storeOptions(dir: string, limits: Partial<StoreLimits> = {}): StoreOptions {
  return { file: join(dir, 'buffer.db'), boot_id: 'boot-1', limits: { ...wide_limits, ...limits } };
}

/** Clocks that stand still until a test moves them. */
export class FakeClock implements StoreClock {
  wall_ms = Date.UTC(2026, 10, 21);
  mono_ms = 1_000;
  readonly wall = (): number => this.wall_ms;
  readonly mono = (): number => this.mono_ms;

  /** Time goes by. */
  pass(ms: number): void {
    this.wall_ms += ms;
    this.mono_ms += ms;
  }
}

export class StoreLab implements Disposable {
  readonly dir = mkdtempSync(join(tmpdir(), 'kit-connector-store-'));
  readonly clock = new FakeClock();
  options: OpenOptions;
  opened: Opened;
  store: Store;

  constructor(limits: Partial<StoreLimits> = {}, options: Partial<OpenOptions> = {}) {
    this.options = { ...storeOptions(this.dir, limits), ...options };
    ({ store: this.store, opened: this.opened } = openStore(this.options, this.clock));
  }

  get file(): string {
    return this.options.file;
  }

  /** Ends the store as a stop does, and opens the file again. */
  reopen(options: Partial<OpenOptions> = {}): Opened {
    this.store.close();
    return this.open(options);
  }

  open(options: Partial<OpenOptions> = {}): Opened {
    this.options = { ...this.options, ...options };
    ({ store: this.store, opened: this.opened } = openStore(this.options, this.clock));
    return this.opened;
  }

  /** A row of this epoch. */
  row(lane: Lane, seq: number, more: Partial<Row> = {}): Row {
    const position = { epoch: this.opened.epoch, seq };
    const row = {
      channel: `feed/asset/${lane}`,
      time_ms: this.clock.wall_ms + seq,
      mono_ms: null,
      body: `{"n":${seq}}`,
    };
    return { id: rowId(position), lane, ...row, ...more };
  }

  /** Rows `from` to `to`, both included. */
  rows(lane: Lane, from: number, to: number, more: Partial<Row> = {}): Row[] {
    return Array.from({ length: to - from + 1 }, (_, index) => this.row(lane, from + index, more));
  }

  /** Sequence numbers that a take of single rows hands out. */
  takeSeqs(lane: Lane, rows_max = 1_000): number[] {
    const { rows } = this.store.take({ lane, form: 'rows', rows_max, bytes_max: 1e9 });
    return rows.map(({ id }) => id % 2 ** 33);
  }

  /** What SQLite counts, beside what the store says it has. */
  counted(): Readonly<Record<Lane, LaneDepth>> {
    return countRows(this.file);
  }

  [Symbol.dispose](): void {
    this.store.close();
    rmSync(this.dir, { recursive: true, force: true });
  }
}

/** The numbers of all rows, lane by lane. */
export function idsOnDisk(file: string): readonly RowId[] {
  const db = new Database(file, { readonly: true });
  try {
    return lanes.flatMap((lane) => db.prepare<[], RowId>(`SELECT id FROM lane_${lane}`).pluck().all());
  } finally {
    db.close();
  }
}

/** Counts and adds up the rows of each lane, independent of the store's own counters. */
export function countRows(file: string): Readonly<Record<Lane, LaneDepth>> {
  const db = new Database(file, { readonly: true });
  const count = (lane: Lane): LaneDepth =>
    db
      .prepare<[], LaneDepth>(`SELECT count(*) AS rows, coalesce(sum(bytes), 0) AS bytes FROM lane_${lane}`)
      .get() ?? { rows: 0, bytes: 0 };
  try {
    const [task, presence, alarm, kit, feed] = lanes.map(count);
    if (!task || !presence || !alarm || !kit || !feed) throw new Error('a lane is missing');
    return { task, presence, alarm, kit, feed };
  } finally {
    db.close();
  }
}
