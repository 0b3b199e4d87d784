/** The message accounts: accepted = delivered + buffered + quarantined + dropped(by reason), at all times. */
import { lanes, type Lane } from '../contract/lanes.ts';
import type { Done, Drop, DropReason, LaneDepth, Opened, Removal } from './protocol.ts';
import { addDrop, type DropSums } from './live/drops/sums.ts';
import { positionOf } from './row.ts';

/** What `kit-connector status` shows of the accounts. */
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
  readonly #unreported: DropSums = new Map();
  /** Messages that are in memory only. */
  #memory = 0;
  #depth: Readonly<Record<Lane, LaneDepth>>;
  #quarantined: number;
  /** The file could not be opened yet, so its content is unknown. */
  #blind: boolean;

  readonly #droppedFromMemory: (drop: Drop) => void;

  /** `droppedFromMemory`: receives what no commit would otherwise record. */
  constructor(opened: Opened, droppedFromMemory: (drop: Drop) => void) {
    this.#droppedFromMemory = droppedFromMemory;
    this.#depth = opened.depth;
    this.#quarantined = opened.quarantined_rows;
    this.#blind = opened.health.state === 'failing';
    this.#accepted = this.disk_rows + opened.quarantined_rows;
    this.found(opened.drops);
    const lost = opened.salvage?.rows_lost ?? 0;
    this.#accepted += lost;
    if (lost > 0) this.#dropped.set('unreadable', lost);
  }

  /** Adds drops of an earlier run that were not reported to the cloud. */
  found(drops: readonly Drop[]): void {
    for (const drop of drops) addDrop(this.#unreported, drop);
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
    this.#droppedFromMemory(this.#drop({ lane, why: reason, rows: 1, bytes: 0, lo: id, hi: id }, reason));
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

  /** The file was opened after a failed start: what an earlier run left in it counts as accepted from now on. */
  #adopt(expected: number, done: Done): void {
    this.#blind = false;
    const gone = done.removed.reduce((sum, { why, rows }) => (why === 'quarantined' ? sum : sum + rows), 0);
    this.#accepted += this.disk_rows + this.#quarantined + gone - expected;
  }

  #drop(removal: Removal, reason: DropReason): Drop {
    this.#dropped.set(reason, (this.#dropped.get(reason) ?? 0) + removal.rows);
    const { epoch, seq: lo } = positionOf(removal.lo);
    const { lane, rows } = removal;
    const drop = { epoch, lane, reason, rows, lo, hi: positionOf(removal.hi).seq };
    addDrop(this.#unreported, drop);
    return drop;
  }
}
