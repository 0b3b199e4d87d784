/** The books: accepted = delivered + buffered + quarantined + dropped(by reason), at any moment. */
import { lanes, type Lane } from '../contract/lanes.ts';
import type { Done, Drop, DropReason, LaneDepth, Opened, Removal } from './protocol.ts';
import { positionOf } from './row.ts';

/** What `kit-connector status` shows of the books. */
export interface LedgerReport {
  /** Of this run, and what an earlier run left in the buffer. */
  readonly accepted: number;
  readonly delivered: number;
  /** On disk and in memory. */
  readonly buffered: number;
  readonly dropped: Readonly<Partial<Record<DropReason, number>>>;
  readonly quarantined: number;
  /** The two sides are equal. Each side is counted on its own, so that a mistake shows. */
  readonly balanced: boolean;
}

export class Ledger {
  #accepted: number;
  #delivered = 0;
  readonly #dropped = new Map<DropReason, number>();
  readonly #unreported = new Map<string, Drop>();
  /** Messages that are in memory only. */
  #memory = 0;
  #depth: Readonly<Record<Lane, LaneDepth>>;
  #quarantined: number;
  /** The file could not be opened yet, so nobody knows what is in it. */
  #blind: boolean;

  constructor(opened: Opened) {
    this.#depth = opened.depth;
    this.#quarantined = opened.quarantined_rows;
    this.#blind = opened.health.state === 'failing';
    this.#accepted = this.disk_rows + opened.quarantined_rows;
    for (const drop of opened.drops) this.#remember(drop);
    const lost = opened.salvage?.rows_lost ?? 0;
    this.#accepted += lost;
    if (lost > 0) this.#dropped.set('unreadable', lost);
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
  }

  /** A message that is not even taken into memory. */
  refusedAtOnce(reason: DropReason, lane: Lane, id: number): void {
    this.accepted();
    this.droppedFromMemory(reason, lane, id);
  }

  droppedFromMemory(reason: DropReason, lane: Lane, id: number): void {
    this.#memory -= 1;
    this.#drop({ lane, why: reason, rows: 1, bytes: 0, lo: id, hi: id }, reason);
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

  /** Drops that the cloud has not been told of. They count as told from now on. */
  takeUnreported(max: number): readonly Drop[] {
    const drops = [...this.#unreported].slice(0, max);
    for (const [key] of drops) this.#unreported.delete(key);
    return drops.map(([, drop]) => drop);
  }

  report(): LedgerReport {
    const buffered = this.disk_rows + this.#memory;
    const dropped = [...this.#dropped.values()].reduce((sum, rows) => sum + rows, 0);
    return {
      accepted: this.#accepted,
      delivered: this.#delivered,
      buffered,
      dropped: Object.fromEntries(this.#dropped),
      quarantined: this.#quarantined,
      balanced: this.#accepted === this.#delivered + buffered + this.#quarantined + dropped,
    };
  }

  /** The file could be opened at last: what an earlier run left in it counts as accepted from now on. */
  #adopt(expected: number, done: Done): void {
    this.#blind = false;
    const gone = done.removed.reduce((sum, { why, rows }) => (why === 'quarantined' ? sum : sum + rows), 0);
    this.#accepted += this.disk_rows + this.#quarantined + gone - expected;
  }

  #drop(removal: Removal, reason: DropReason): void {
    this.#dropped.set(reason, (this.#dropped.get(reason) ?? 0) + removal.rows);
    const { epoch, seq: lo } = positionOf(removal.lo);
    this.#remember({
      epoch,
      lane: removal.lane,
      reason,
      rows: removal.rows,
      lo,
      hi: positionOf(removal.hi).seq,
    });
  }

  #remember(drop: Drop): void {
    const key = `${drop.epoch} ${drop.lane} ${drop.reason}`;
    const known = this.#unreported.get(key);
    const merged = known
      ? {
          ...drop,
          rows: known.rows + drop.rows,
          lo: Math.min(known.lo, drop.lo),
          hi: Math.max(known.hi, drop.hi),
        }
      : drop;
    this.#unreported.set(key, merged);
  }
}
