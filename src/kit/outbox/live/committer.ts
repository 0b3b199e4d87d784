/**
 * Group commit: gathers everything that must reach the disk and sends it to the store in one transaction at a time.
 * While one is under way the next gathers, so a slow disk makes larger commits, not a longer queue of them.
 *
 * Rows are written in the order in which they were added. What depends on a row (a journal entry on its report, a quarantine
 * entry on its message, a caller who waits) never goes to the disk, or resolves, before that row.
 */
import type { Lane } from '../../../contract/lanes.ts';
import { StorageUnavailable, StorageUnsure } from '../../../platform/errors.ts';
import { own_stalls, type Stalls } from '../../../platform/stalls.ts';
import { backoff } from '../../../platform/time.ts';
import {
  type Done,
  type Drop,
  failing,
  idsByLane,
  type JournalEntry,
  type RowRef,
  type Work,
} from '../protocol.ts';
import type { LiveEvent } from './live-state.ts';
import type { Live } from './outgoing.ts';
import type { Row, RowId } from '../row.ts';
import { texts } from '../texts.ts';

/** Rows, or refs of rows to delete, that make a commit start before its time. */
const commit_rows_early = 512;
const commit_refs_early = 4_096;
/** Rows of a batch that take the memory of one row known singly: numbers in a list, against an object here and in the thread. */
const rows_per_ref = 20;
/** What memory gave up is on disk within this time, once the disk takes anything. */
const dropped_soon_ms = 1_000;
const retry_first_ms = 1_000;
/** The longest pause before the disk is tried again; also how long after its recovery the kit may take to notice. */
const retry_max_ms = 10_000;
/** A commit that has not been answered for so long counts as refused, until it is answered after all. */
export const commit_answer_ms = 5_000;

export type CommitFailure = Extract<LiveEvent, 'refused' | 'disk_away'>;

interface CommitterOptions {
  readonly commit: (work: Work) => Promise<Done>;
  /** A commit takes these now. Returns the rows that the main thread keeps while they are written. */
  readonly began: (lives: readonly Live[]) => readonly RowId[];
  readonly written: (lives: readonly Live[], done: Done) => void;
  /** The disk refused a commit (the rows of it stay here and are tried again), or has not answered it for long. */
  readonly failed: (lives: readonly Live[], error: unknown, event: CommitFailure) => void;
  readonly now: () => number;
  /** Left out: those of this process. */
  readonly stalls?: Stalls | undefined;
}

export class Committer {
  readonly #options: CommitterOptions;
  #pending = emptyPending();
  /** The commit under way. */
  #running: Pending | undefined;
  /** The disk gave an error for it, and may have carried it out: it goes again as it is, before anything else. */
  #unsure: Pending | undefined;
  #started_ms = 0;
  #timer: NodeJS.Timeout | undefined;
  #due_ms = Number.POSITIVE_INFINITY;
  /** The last row that was added. */
  #order = 0;
  /** The disk refused the last request: an attempt is due even if there is nothing to write. */
  #refused = false;
  /** No attempt before this time; those who wait for one get it earlier. */
  #not_before_ms = 0;
  #not_before_waiting_ms = 0;
  #pauses = backoff(retry_first_ms, retry_max_ms);
  #closed = false;

  constructor(options: CommitterOptions) {
    this.#options = options;
  }

  /** Rows that are not in the commit under way. */
  get rows(): readonly Live[] {
    return this.#pending.rows;
  }

  /** Rows in the commit under way, or in one of which it is not known whether the disk has it. */
  get rows_under_way(): readonly Live[] {
    return this.#under_way?.rows ?? [];
  }

  /** All rows that are not on disk, as far as is known. */
  get unwritten(): readonly Live[] {
    return [...this.rows_under_way, ...this.rows];
  }

  /** Whether rows of this lane wait for the disk. */
  writes(lane: Lane): boolean {
    return [this.rows, this.rows_under_way].some((rows) =>
      rows.some(({ row, state }) => row.lane === lane && state.disk !== 'no'),
    );
  }

  /** Drops that are not recorded on disk, as far as is known. */
  get drops(): readonly Drop[] {
    return [...(this.#under_way?.dropped.values() ?? []), ...this.#pending.dropped.values()];
  }

  /** The memory of rows on disk whose deletion, or whose state, waits to be written, in rows that are known singly. */
  get refs(): number {
    let [singly, batched] = [0, 0];
    for (const each of this.#pending.outcomes) {
      if ('rows' in each) batched += each.rows;
      else singly += 1;
    }
    return singly + Math.ceil(batched / rows_per_ref);
  }

  /** How long the commit under way has not been answered while this process could receive an answer; 0 when there is none. */
  get unanswered_ms(): number {
    const { now, stalls = own_stalls } = this.#options;
    return this.#running ? stalls.silenceSince(this.#started_ms, now()) : 0;
  }

  /** Writes a row with the next commit, which starts within `soon_ms`. A row is given once. */
  write(live: Live, soon_ms: number): void {
    this.#order += 1;
    live.order = this.#order;
    this.#pending.rows.push(live);
    this.#schedule(this.#pending.rows.length >= commit_rows_early ? 0 : soon_ms);
  }

  /** Notes what became of rows that are on disk: in any commit, in any order. */
  settle(outcome: Outcome, soon_ms: number): void {
    this.#pending.outcomes.push(outcome);
    this.#schedule(this.#pending.outcomes.length >= commit_refs_early ? 0 : soon_ms);
  }

  /** Moves a row that was added before to the quarantine. */
  quarantine(row: Row, code: number, reason: string, soon_ms: number): void {
    this.#bind({ quarantined: { row, code, reason } });
    this.#schedule(soon_ms);
  }

  /** Notes that a row added before reports these drops. */
  reported(drops: readonly Drop[]): void {
    this.#bind({ reported: drops });
    this.#schedule(0);
  }

  /** Records the drop of a message that is not on disk, so that a report of it survives a restart. */
  dropped(drop: Drop): void {
    addDrop(this.#pending.dropped, drop);
    this.#schedule(dropped_soon_ms);
  }

  /** Messages that never were on disk were delivered. */
  delivered(rows: number): void {
    this.#pending.delivered_from_memory += rows;
  }

  /** The next `settled` writes the counts, too. */
  closeBooks(): void {
    this.#pending.counts_due = true;
  }

  /** Resolves once the entry, and all that was added before it, is on disk. */
  async journal(entry: JournalEntry): Promise<void> {
    this.#bind({ journal: entry });
    await this.settled(0);
  }

  /**
   * Resolves once everything added so far is on disk. Rejects with `StorageUnavailable` when the disk refuses the next
   * attempt, which follows soon, or does not answer it.
   */
  async settled(soon_ms: number): Promise<void> {
    if (this.#closed) throw new StorageUnavailable(texts.closed);
    const is_idle = isEmpty(this.#pending);
    if (is_idle && !this.#under_way) return;
    const waiter = Promise.withResolvers<void>();
    this.#bind({ waiter }, is_idle ? this.#under_way : this.#pending);
    if (!is_idle || this.#unsure) this.#schedule(soon_ms);
    await waiter.promise;
  }

  /** Resolves once what was `tried` is on disk: each refusal is waited out. Rejects when the committer closes first. */
  async untilStored(tried: Promise<void>): Promise<void> {
    for (let attempt = tried; ; attempt = this.settled(0)) {
      try {
        await attempt;
        return;
      } catch (error) {
        if (!(error instanceof StorageUnavailable) || this.#closed) throw error;
      }
    }
  }

  /** Another request failed on the disk: repeats attempts until one succeeds. */
  suspect(): void {
    if (this.#refused) return;
    this.#refused = true;
    if (!this.#running) this.#pause();
  }

  /** Takes out rows that need not be written any more. */
  forget(unwanted: (live: Live) => boolean): readonly Live[] {
    const out: Live[] = [];
    const stay: Live[] = [];
    for (const live of this.#pending.rows) (unwanted(live) ? out : stay).push(live);
    if (out.length > 0) this.#pending.rows = stay;
    return out;
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
    this.#rejectWaiters(new StorageUnavailable(texts.closed), this.#unsure);
  }

  get #under_way(): Pending | undefined {
    return this.#running ?? this.#unsure;
  }

  #bind(what: Omit<Bound, 'after'>, to: Pending | undefined = this.#pending): void {
    to?.bound.push({ after: this.#order, ...what });
  }

  #schedule(soon_ms: number): void {
    if (this.#closed) return;
    const isAwaited = [this.#pending, this.#unsure].some((each) => each?.bound.some(({ waiter }) => waiter));
    const not_before_ms = isAwaited ? this.#not_before_waiting_ms : this.#not_before_ms;
    const due_ms = Math.max(this.#options.now() + soon_ms, not_before_ms);
    if (due_ms >= this.#due_ms) return;
    this.#due_ms = due_ms;
    if (this.#running) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#start(), Math.max(0, due_ms - this.#options.now()));
  }

  #start(): void {
    this.#due_ms = Number.POSITIVE_INFINITY;
    const again = this.#unsure;
    const { work, rest } = again ? { work: again, rest: this.#pending } : taken(this.#pending);
    this.#pending = rest;
    this.#unsure = undefined;
    if (isEmpty(work) && !this.#refused) return;
    if (again ? !isEmpty(rest) : rest.rows.length > 0) this.#due_ms = this.#options.now();
    this.#running = work;
    this.#started_ms = this.#options.now();
    void this.#run(work, again !== undefined).finally(() => {
      this.#running = undefined;
      const due_ms = this.#due_ms;
      this.#due_ms = Number.POSITIVE_INFINITY;
      if (due_ms < Number.POSITIVE_INFINITY) this.#schedule(Math.max(0, due_ms - this.#options.now()));
    });
  }

  async #run(work: Pending, again: boolean): Promise<void> {
    const overdue = setInterval(() => this.#unanswered(work), commit_answer_ms);
    try {
      const done = await this.#options.commit({ ...this.#workOf(work), again });
      this.#options.written(work.rows, this.#answered(done));
      for (const { waiter } of work.bound) waiter?.resolve();
    } catch (error) {
      const isUnsure = error instanceof StorageUnsure;
      if (isUnsure) this.#unsure = work;
      else this.#pending = kept(work, this.#pending);
      this.#refused = true;
      this.#rejectWaiters(error, work);
      this.#pause();
      this.#options.failed(work.rows, error, isUnsure ? 'disk_away' : 'refused');
    } finally {
      clearInterval(overdue);
    }
  }

  /** A disk that takes this long for each commit counts as failing: only a prompt answer counts as recovery. */
  #answered(done: Done): Done {
    const late_ms = this.unanswered_ms;
    this.#not_before_ms = 0;
    this.#not_before_waiting_ms = 0;
    this.#pauses = backoff(retry_first_ms, retry_max_ms);
    this.#refused = late_ms >= commit_answer_ms;
    if (!this.#refused) return done;
    this.#due_ms = this.#options.now();
    const detail = texts.commit_slow(Math.round(late_ms / 1_000));
    return { ...done, health: failing(detail) };
  }

  /** The next attempt, also with nothing to write: it shows whether the disk has recovered. */
  #pause(): void {
    const now_ms = this.#options.now();
    const pause_ms = this.#pauses.next().value;
    this.#not_before_ms = now_ms + pause_ms;
    this.#not_before_waiting_ms = now_ms + Math.min(pause_ms, retry_first_ms);
    this.#schedule(0);
  }

  #unanswered(work: Pending): void {
    // A timer that is due during a stall of this process comes before the answer.
    if (this.unanswered_ms < commit_answer_ms / 2) return;
    const seconds = commit_answer_ms / 1_000;
    const error = new StorageUnavailable(texts.commit_unanswered(seconds));
    this.#refused = true;
    this.#rejectWaiters(error, work);
    this.#options.failed(work.rows, error, 'disk_away');
  }

  /** All of them: those bound to later rows would wait at least as long. */
  #rejectWaiters(error: unknown, work?: Pending): void {
    for (const pending of [work, this.#pending]) {
      if (!pending) continue;
      const { bound } = pending;
      pending.bound = bound.filter(({ waiter }) => !waiter);
      for (const { waiter } of bound) waiter?.reject(error);
    }
  }

  #workOf({ rows, outcomes, bound, dropped, delivered_from_memory }: Pending): Work {
    const rowsOf = (outcome: Outcome['outcome']) =>
      idsByLane(outcomes.flatMap((each) => (each.outcome === outcome && 'id' in each ? [each] : [])));
    const batchesOf = (outcome: Outcome['outcome']) =>
      outcomes.flatMap((each) => (each.outcome === outcome && 'token' in each ? [each.token] : []));
    const entries = bound.flatMap(({ journal }) => (journal ? [[journal.task_id, journal] as const] : []));
    return {
      rows: rows.map((live) => live.row),
      held: this.#options.began(rows),
      delivered: rowsOf('delivered'),
      delivered_batches: batchesOf('delivered'),
      unconfirmed: rowsOf('unconfirmed'),
      unconfirmed_batches: batchesOf('unconfirmed'),
      superseded: rowsOf('superseded'),
      quarantined: bound.flatMap(({ quarantined }) => quarantined ?? []),
      journal: [...new Map(entries).values()],
      dropped: [...dropped.values()],
      delivered_from_memory,
      reported: bound.flatMap(({ reported }) => reported ?? []),
    };
  }
}

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

/** What depends on the rows that were added before it: it never precedes one of them. One of the parts is there. */
interface Bound {
  /** `order` of the last row that was added before. */
  readonly after: number;
  readonly quarantined?: Work['quarantined'][number];
  readonly journal?: JournalEntry;
  readonly reported?: readonly Drop[];
  readonly waiter?: PromiseWithResolvers<void>;
}

/** What became of a row on disk, or of a batch whose rows the thread remembers by their numbers until they are removed. */
type Outcome =
  | (RowRef & { readonly outcome: 'delivered' | 'unconfirmed' | 'superseded' })
  | { readonly token: number; readonly rows: number; readonly outcome: 'delivered' | 'unconfirmed' };

/** Work that waits for the next commit. */
interface Pending {
  rows: Live[];
  readonly outcomes: Outcome[];
  bound: Bound[];
  /** Of messages that never were on disk. */
  readonly dropped: DropSums;
  /** Counts go with a commit that happens anyway: by themselves they cause none, but for the last one of a run. */
  delivered_from_memory: number;
  counts_due: boolean;
}

function emptyPending(): Pending {
  return {
    rows: [],
    outcomes: [],
    bound: [],
    dropped: new Map(),
    delivered_from_memory: 0,
    counts_due: false,
  };
}

function isEmpty({ rows, outcomes, bound, dropped, delivered_from_memory, counts_due }: Pending): boolean {
  if (counts_due && delivered_from_memory > 0) return false;
  return rows.length === 0 && outcomes.length === 0 && bound.length === 0 && dropped.size === 0;
}

/** Splits off what the next transaction takes. */
function taken(pending: Pending): { readonly work: Pending; readonly rest: Pending } {
  // What the broker had before its commit began needs none.
  const rows = pending.rows.filter(({ state }) => state.disk !== 'no');
  const later = rows.splice(fitting(rows));
  const boundary = later[0]?.order ?? Number.POSITIVE_INFINITY;
  const at = pending.bound.findIndex(({ after }) => after >= boundary);
  const bound_later = at < 0 ? [] : pending.bound.splice(at);
  return { work: { ...pending, rows }, rest: { ...emptyPending(), rows: later, bound: bound_later } };
}

/** Puts a refused commit back in front of what was gathered since. */
function kept(old: Pending, now: Pending): Pending {
  for (const drop of now.dropped.values()) addDrop(old.dropped, drop);
  return {
    rows: [...old.rows, ...now.rows],
    outcomes: [...old.outcomes, ...now.outcomes],
    bound: [...old.bound, ...now.bound],
    dropped: old.dropped,
    delivered_from_memory: old.delivered_from_memory + now.delivered_from_memory,
    counts_due: old.counts_due || now.counts_due,
  };
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

/** By epoch, lane and reason. */
export type DropSums = Map<string, Drop>;

export function addDrop(sums: DropSums, drop: Drop): void {
  const key = `${drop.epoch} ${drop.lane} ${drop.reason}`;
  const known = sums.get(key);
  sums.set(key, known ? joined(known, drop) : drop);
}

function joined(known: Drop, drop: Drop): Drop {
  const [lo, hi] = [Math.min(known.lo, drop.lo), Math.max(known.hi, drop.hi)];
  return { ...known, rows: known.rows + drop.rows, lo, hi };
}
