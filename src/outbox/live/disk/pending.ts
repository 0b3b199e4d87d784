/** Work that waits for the next commit, and its division into transactions. */
import { addDrop, type DropSums } from '../drops/sums.ts';
import type { Live } from '../outgoing.ts';
import type { Drop, JournalEntry, RowRef } from '../../protocol.ts';
import type { Row } from '../../row.ts';

/** Group commit of what must not be lost. */
export const sync_commit_ms = 20;
/** Group commit of deletions: what is not deleted yet is sent twice after a kill. A commit costs more than its rows. */
export const removal_commit_ms = 100;
/** Group commit of what may be lost at a power cut. */
export const lazy_commit_ms = 250;

/** One commit takes at most so many rows; the rest goes with the next one. */
const commit_rows_max = 4_096;
/** Characters of bodies in one commit, beyond the first row. */
const commit_chars_max = 2 * 1024 * 1024;

/** Bound to the rows that were added before it: it never precedes one of them. */
interface Bound<T> {
  /** `order` of the last row that was added before. */
  readonly after: number;
  readonly value: T;
}

/** A batch whose rows the thread remembers by their numbers until they are removed. */
interface BatchRef {
  readonly token: number;
  readonly rows: number;
}

/** What concerns rows that are on disk already: in any commit, in any order. */
export interface Removals {
  readonly delivered: RowRef[];
  readonly delivered_batches: BatchRef[];
  readonly unconfirmed: RowRef[];
  readonly unconfirmed_batches: BatchRef[];
  readonly superseded: RowRef[];
}

interface Waiter {
  resolve(): void;
  reject(error: unknown): void;
}

export interface Pending extends Removals {
  rows: Live[];
  readonly quarantined: Bound<{ readonly row: Row; readonly code: number; readonly reason: string }>[];
  readonly journal: Bound<JournalEntry>[];
  readonly reported: Bound<readonly Drop[]>[];
  /** Of messages that never were on disk. */
  readonly dropped: DropSums;
  readonly waiters: Bound<Waiter>[];
  /** Counts go with a commit that happens anyway: by themselves they cause none, but for the last one of a run. */
  delivered_from_memory: number;
  counts_due: boolean;
}

export function emptyPending(): Pending {
  return {
    rows: [],
    delivered: [],
    delivered_batches: [],
    unconfirmed: [],
    unconfirmed_batches: [],
    superseded: [],
    quarantined: [],
    journal: [],
    reported: [],
    dropped: new Map(),
    waiters: [],
    delivered_from_memory: 0,
    counts_due: false,
  };
}

export function isEmpty(pending: Pending): boolean {
  const { dropped, delivered_from_memory, counts_due, ...parts } = pending;
  if (counts_due && delivered_from_memory > 0) return false;
  return dropped.size === 0 && Object.values(parts).every((part: readonly unknown[]) => part.length === 0);
}

/** Splits off what the next transaction takes. */
export function taken(pending: Pending): { readonly work: Pending; readonly rest: Pending } {
  // What the broker had before its commit began needs none.
  const rows = pending.rows.filter(({ state }) => state.disk !== 'no');
  const later = rows.splice(fitting(rows));
  const boundary = later[0]?.order ?? Number.POSITIVE_INFINITY;
  const [quarantined, quarantined_later] = split(pending.quarantined, boundary);
  const [journal, journal_later] = split(pending.journal, boundary);
  const [reported, reported_later] = split(pending.reported, boundary);
  const [waiters, waiters_later] = split(pending.waiters, boundary);
  const rest = {
    ...emptyPending(),
    rows: later,
    quarantined: quarantined_later,
    journal: journal_later,
    reported: reported_later,
    waiters: waiters_later,
  };
  return { work: { ...pending, rows, quarantined, journal, reported, waiters }, rest };
}

/** Puts a refused commit back in front of what was gathered since. */
export function kept(old: Pending, now: Pending): Pending {
  for (const drop of now.dropped.values()) addDrop(old.dropped, drop);
  return {
    rows: [...old.rows, ...now.rows],
    delivered: [...old.delivered, ...now.delivered],
    delivered_batches: [...old.delivered_batches, ...now.delivered_batches],
    unconfirmed: [...old.unconfirmed, ...now.unconfirmed],
    unconfirmed_batches: [...old.unconfirmed_batches, ...now.unconfirmed_batches],
    superseded: [...old.superseded, ...now.superseded],
    quarantined: [...old.quarantined, ...now.quarantined],
    journal: [...old.journal, ...now.journal],
    reported: [...old.reported, ...now.reported],
    dropped: old.dropped,
    waiters: [...old.waiters, ...now.waiters],
    delivered_from_memory: old.delivered_from_memory + now.delivered_from_memory,
    counts_due: old.counts_due || now.counts_due,
  };
}

function split<T>(parts: readonly Bound<T>[], boundary: number): [Bound<T>[], Bound<T>[]] {
  const at = parts.findIndex(({ after }) => after >= boundary);
  return at < 0 ? [[...parts], []] : [parts.slice(0, at), parts.slice(at)];
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
