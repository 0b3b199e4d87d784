/** The message accounts: accepted = delivered + buffered + quarantined + dropped(by reason), at all times. */
import { drop_reasons } from '../../../contract/drop-reasons.ts';
import { type Lane, lanes } from '../../../contract/lanes.ts';
import { addDrop, type Committer, type DropSums } from './committer.ts';
import {
  type Done,
  type Drop,
  dropOf,
  type DropReason,
  type LaneDepth,
  type Left,
  nothing_left,
  type Opened,
  type Removal,
  type RowRef,
} from '../protocol.ts';

/** What `kit-connector status` shows of the accounts. */
export interface LedgerReport {
  /** Since when they count; null: since a start at which the clock was not set. */
  readonly since_ms: number | null;
  /** What left the buffer in this run or an earlier one, and what is in it. */
  readonly accepted: number;
  readonly delivered: number;
  /** On disk and in memory. */
  readonly buffered: number;
  readonly dropped: Readonly<Partial<Record<DropReason, number>>>;
  readonly quarantined: number;
  /** The two sides are equal. Each side is counted on its own, so that a mistake shows. */
  readonly balanced: boolean;
}

/** Logs drops in episodes. */
interface Episodes {
  readonly dropped: (lane: Lane, reason: DropReason, rows: number) => void;
}

export class Ledger {
  #accepted: number;
  #delivered = 0;
  readonly #dropped = new Map<DropReason, number>();
  readonly #unreported: DropSums = new Map();
  /** Messages that are in memory only. */
  #memory = 0;
  #depth: Readonly<Record<Lane, LaneDepth>>;
  #quarantined: number;
  /** The file could not be opened yet, so its content is unknown. */
  #blind: boolean;

  /** What left before this run. */
  #before: Left = nothing_left;

  /** Records what no commit would otherwise record. */
  readonly #committer: Pick<Committer, 'dropped' | 'delivered'>;

  readonly #episodes: Episodes;

  constructor(opened: Opened, committer: Pick<Committer, 'dropped' | 'delivered'>, episodes: Episodes) {
    this.#committer = committer;
    this.#episodes = episodes;
    this.#depth = opened.depth;
    this.#quarantined = opened.quarantined_rows;
    this.#blind = opened.health.state === 'failing';
    this.#accepted = this.disk_rows + opened.quarantined_rows;
    this.found(opened.drops, opened.left);
  }

  /** Adds what an earlier run counted, and its drops that were not reported to the cloud. */
  found(drops: readonly Drop[], left: Left): void {
    for (const drop of drops) addDrop(this.#unreported, drop);
    this.#before = left;
    this.#delivered += left.delivered;
    for (const [reason, rows] of rowsByReason(left.dropped)) this.#addDropped(reason, rows);
    this.#accepted += left.delivered + sumOf(left.dropped);
  }

  get quarantined_rows(): number {
    return this.#quarantined;
  }

  get memory_rows(): number {
    return this.#memory;
  }

  get disk_rows(): number {
    return lanes.reduce((sum, lane) => sum + this.#depth[lane].rows, 0);
  }

  get depth(): Readonly<Record<Lane, LaneDepth>> {
    return this.#depth;
  }

  accepted(): void {
    this.#accepted += 1;
    this.#memory += 1;
  }

  deliveredFromMemory(rows: number): void {
    this.#memory -= rows;
    this.#delivered += rows;
    this.#committer.delivered(rows);
  }

  /** A message that is not even taken into memory. */
  refusedAtOnce(reason: DropReason, row: RowRef): void {
    this.accepted();
    this.droppedFromMemory(reason, row);
  }

  droppedFromMemory(reason: DropReason, { lane, id }: RowRef): void {
    this.#memory -= 1;
    this.#committer.dropped(this.#drop({ lane, why: reason, rows: 1, bytes: 0, lo: id, hi: id }, reason));
  }

  /** A commit was answered; `from_memory` rows are now on disk instead. */
  committed(done: Done, from_memory: number): void {
    const before = this.disk_rows + this.#quarantined;
    this.#memory -= from_memory;
    this.#depth = done.depth;
    this.#quarantined = done.quarantined_rows;
    if (this.#blind) this.#adopt(before + from_memory, done);
    for (const removal of done.removed) {
      if (removal.why === 'delivered') this.#delivered += removal.rows;
      else if (removal.why !== 'quarantined') this.#drop(removal, removal.why);
    }
  }

  /** Takes drops that were not reported to the cloud. They count as reported from then on. */
  takeUnreported(max: number): readonly Drop[] {
    const drops = [...this.#unreported].slice(0, max);
    for (const [key] of drops) this.#unreported.delete(key);
    return drops.map(([, drop]) => drop);
  }

  report(): LedgerReport {
    return this.#reportSince(nothing_left);
  }

  /** Without what left before this run: a figure that a power cut sets back a little would look as if it began anew. */
  reportOfRun(): LedgerReport {
    return this.#reportSince(this.#before);
  }

  #reportSince(before: Left): LedgerReport {
    const accepted = this.#accepted - before.delivered - sumOf(before.dropped);
    const delivered = this.#delivered - before.delivered;
    const buffered = this.disk_rows + this.#memory;
    const dropped = Object.fromEntries(
      Array.from(this.#dropped, ([reason, rows]) => [reason, rows - (before.dropped[reason] ?? 0)]),
    );
    return {
      since_ms: this.#before.since_ms,
      accepted,
      delivered,
      buffered,
      dropped,
      quarantined: this.#quarantined,
      balanced: accepted === delivered + buffered + this.#quarantined + sumOf(dropped),
    };
  }

  /** The file was opened after a failed start: what an earlier run left in it counts as accepted from now on. */
  #adopt(expected: number, done: Done): void {
    this.#blind = false;
    const gone = done.removed.reduce((sum, { why, rows }) => (why === 'quarantined' ? sum : sum + rows), 0);
    this.#accepted += this.disk_rows + this.#quarantined + gone - expected;
  }

  #drop(removal: Removal, reason: DropReason): Drop {
    this.#addDropped(reason, removal.rows);
    this.#episodes.dropped(removal.lane, reason, removal.rows);
    const drop = dropOf(removal, reason);
    addDrop(this.#unreported, drop);
    return drop;
  }

  #addDropped(reason: DropReason, rows: number): void {
    this.#dropped.set(reason, (this.#dropped.get(reason) ?? 0) + rows);
  }
}

function rowsByReason(dropped: Left['dropped']): readonly (readonly [DropReason, number])[] {
  return drop_reasons.flatMap((reason) => {
    const rows = dropped[reason];
    return rows === undefined ? [] : [[reason, rows] as const];
  });
}

function sumOf(dropped: Left['dropped']): number {
  return rowsByReason(dropped).reduce((sum, [, rows]) => sum + rows, 0);
}
