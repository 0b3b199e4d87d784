/**
 * Group commit: gathers everything that must reach the disk and sends it to the store in one transaction at a time.
 * While one is under way the next gathers, so a slow disk makes larger commits, not a longer queue of them.
 */
import type { Drop, Done, JournalEntry, RowRef, Work } from './protocol.ts';
import type { Live } from './parcel.ts';
import type { Row, RowId } from './row.ts';
import { backoff } from '../platform/time.ts';

/** Rows that make a commit start before its time. */
const commit_rows_early = 512;
/** One commit takes at most so many rows; the rest goes with the next one. */
const commit_rows_max = 4_096;
/** Characters of bodies in one commit, beyond the first row. */
const commit_chars_max = 2 * 1024 * 1024;
const retry_first_ms = 1_000;
const retry_max_ms = 30_000;

interface Pending {
  rows: Live[];
  delivered: RowRef[];
  delivered_batches: number[];
  unconfirmed: RowRef[];
  unconfirmed_batches: number[];
  quarantined: { row: Row; code: number; reason: string }[];
  journal: Map<string, JournalEntry>;
  reported: Drop[];
  waiters: { resolve(): void; reject(error: unknown): void }[];
}

interface CommitterOptions {
  readonly commit: (work: Work) => Promise<Done>;
  /** Decides at the last moment whether the main thread keeps a row in its hands while it is being written. */
  readonly hold: (live: Live) => boolean;
  readonly written: (lives: readonly Live[], done: Done) => void;
  /** The disk did not take it. The rows stay here and are tried again. */
  readonly failed: (lives: readonly Live[], error: unknown) => void;
  readonly now: () => number;
}

export class Committer {
  readonly #options: CommitterOptions;
  #pending = emptyPending();
  #running: Promise<void> | undefined;
  #timer: NodeJS.Timeout | undefined;
  #due_ms = Number.POSITIVE_INFINITY;
  /** Set while the disk refuses: no commit before this time. */
  #not_before_ms = 0;
  #pauses = backoff(retry_first_ms, retry_max_ms);
  #closed = false;

  constructor(options: CommitterOptions) {
    this.#options = options;
  }

  get rows(): readonly Live[] {
    return this.#pending.rows;
  }

  /** Writes a row with the next commit, which starts within `soon_ms`. */
  write(live: Live, soon_ms: number): void {
    if (live.disk !== 'no') return;
    live.disk = 'due';
    this.add(({ rows }) => rows.push(live), soon_ms);
  }

  /** Adds to the next commit. */
  add(part: (pending: Omit<Pending, 'journal' | 'waiters'>) => void, soon_ms: number): void {
    part(this.#pending);
    const early =
      this.#pending.rows.length >= commit_rows_early || this.#pending.delivered.length >= commit_rows_max;
    this.#schedule(early ? 0 : soon_ms);
  }

  /** Resolves once the entry, and all that was added before it, is on disk. */
  async journal(entry: JournalEntry): Promise<void> {
    this.#pending.journal.set(entry.task_id, entry);
    await this.settled(0);
  }

  /** Resolves once everything added so far is on disk; rejects if the next commit fails. */
  async settled(soon_ms: number): Promise<void> {
    if (isEmpty(this.#pending)) {
      await this.#running;
      // A commit that was refused has put its rows back.
      if (isEmpty(this.#pending)) return undefined;
    }
    const settled = new Promise<void>((resolve, reject) => this.#pending.waiters.push({ resolve, reject }));
    this.#schedule(soon_ms);
    return settled;
  }

  /** Drops rows that nobody needs on disk any more. */
  forget(unwanted: (live: Live) => boolean): readonly Live[] {
    const [out, kept] = [
      this.#pending.rows.filter(unwanted),
      this.#pending.rows.filter((live) => !unwanted(live)),
    ];
    this.#pending.rows = kept;
    return out;
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
    for (const waiter of this.#pending.waiters) waiter.resolve();
  }

  #schedule(soon_ms: number): void {
    if (this.#closed) return;
    const due_ms = Math.max(this.#options.now() + soon_ms, this.#not_before_ms);
    if (due_ms >= this.#due_ms) return;
    this.#due_ms = due_ms;
    if (this.#running) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#start(), Math.max(0, due_ms - this.#options.now()));
  }

  #start(): void {
    this.#due_ms = Number.POSITIVE_INFINITY;
    const pending = this.#take();
    if (isEmpty(pending)) return;
    this.#running = this.#run(pending).finally(() => {
      this.#running = undefined;
      const due_ms = this.#due_ms;
      this.#due_ms = Number.POSITIVE_INFINITY;
      if (due_ms < Number.POSITIVE_INFINITY) this.#schedule(Math.max(0, due_ms - this.#options.now()));
    });
  }

  /** What the next transaction does; rows over the limit stay for the one after. */
  #take(): Pending {
    const taken = this.#pending;
    this.#pending = emptyPending();
    taken.rows = taken.rows.filter((live) => !skipsTheDisk(live));
    this.#pending.rows = taken.rows.splice(fitting(taken.rows));
    if (this.#pending.rows.length > 0) this.#due_ms = this.#options.now();
    return taken;
  }

  async #run(pending: Pending): Promise<void> {
    for (const live of pending.rows) live.disk = 'writing';
    try {
      const done = await this.#options.commit(this.#workOf(pending));
      for (const live of pending.rows) live.disk = 'yes';
      this.#not_before_ms = 0;
      this.#pauses = backoff(retry_first_ms, retry_max_ms);
      this.#options.written(pending.rows, done);
      for (const waiter of pending.waiters) waiter.resolve();
    } catch (error) {
      for (const live of pending.rows) live.disk = 'due';
      this.#keep(pending);
      this.#not_before_ms = this.#options.now() + this.#pauses.next().value;
      this.#options.failed(pending.rows, error);
      for (const waiter of pending.waiters) waiter.reject(error);
      this.#schedule(0);
    }
  }

  #workOf(pending: Pending): Work {
    const held: RowId[] = [];
    for (const live of pending.rows) if (this.#options.hold(live)) held.push(live.row.id);
    return {
      rows: pending.rows.map((live) => live.row),
      held,
      delivered: pending.delivered,
      delivered_batches: pending.delivered_batches,
      unconfirmed: pending.unconfirmed,
      unconfirmed_batches: pending.unconfirmed_batches,
      quarantined: pending.quarantined,
      journal: [...pending.journal.values()],
      reported: pending.reported,
    };
  }

  /** Puts a refused commit back in front of what was gathered since. */
  #keep(old: Pending): void {
    const now = this.#pending;
    this.#pending = {
      rows: [...old.rows, ...now.rows],
      delivered: [...old.delivered, ...now.delivered],
      delivered_batches: [...old.delivered_batches, ...now.delivered_batches],
      unconfirmed: [...old.unconfirmed, ...now.unconfirmed],
      unconfirmed_batches: [...old.unconfirmed_batches, ...now.unconfirmed_batches],
      quarantined: [...old.quarantined, ...now.quarantined],
      journal: new Map([...old.journal, ...now.journal]),
      reported: [...old.reported, ...now.reported],
      waiters: now.waiters,
    };
  }
}

/** How many of the first rows one commit takes. */
function fitting(rows: readonly Live[]): number {
  let chars = 0;
  const over = rows.findIndex(({ row }, index) => {
    chars += row.body.length;
    return index > 0 && (index >= commit_rows_max || chars > commit_chars_max);
  });
  return over < 0 ? rows.length : over;
}

/** The broker had it before its commit began. */
function skipsTheDisk(live: Live): boolean {
  if (!live.acked) return false;
  live.disk = 'no';
  return true;
}

function emptyPending(): Pending {
  return {
    rows: [],
    delivered: [],
    delivered_batches: [],
    unconfirmed: [],
    unconfirmed_batches: [],
    quarantined: [],
    journal: new Map(),
    reported: [],
    waiters: [],
  };
}

function isEmpty(pending: Pending): boolean {
  const parts = [
    pending.rows,
    pending.delivered,
    pending.delivered_batches,
    pending.unconfirmed,
    pending.unconfirmed_batches,
    pending.quarantined,
    pending.reported,
    pending.waiters,
  ];
  return pending.journal.size === 0 && parts.every((part) => part.length === 0);
}
