/** What one transaction did to the lanes, kept apart until it is committed. */
import { lanes, type Lane } from '../../../contract/lanes.ts';
import type { DropReason, LaneDepth, Removal } from '../protocol.ts';
import { positionOf, type RowId } from '../row.ts';

export type Depth = Readonly<Record<Lane, LaneDepth>>;

/** Rows of one lane and one epoch. */
export interface Span {
  readonly rows: number;
  readonly bytes: number;
  readonly lo: RowId;
  readonly hi: RowId;
}

export function perLane<T>(read: (lane: Lane) => T): Readonly<Record<Lane, T>> {
  return {
    task: read('task'),
    presence: read('presence'),
    alarm: read('alarm'),
    kit: read('kit'),
    feed: read('feed'),
  };
}

export const no_depth: Depth = perLane(() => ({ rows: 0, bytes: 0 }));

export class Changes {
  readonly #depth = new Map<Lane, { rows: number; bytes: number }>();
  readonly #removals = new Removals();

  constructor(before: Depth) {
    for (const lane of lanes) this.#depth.set(lane, { ...before[lane] });
  }

  came(lane: Lane, bytes: number): void {
    this.#count(lane, 1, bytes);
  }

  /** Rows left the table of their lane. */
  left(lane: Lane, why: Removal['why'], span: Span): void {
    this.#count(lane, -span.rows, -span.bytes);
    this.#removals.add({ lane, why, ...span });
  }

  /** Rows were given up that did not stand in the table of their lane. */
  gaveUp(lane: Lane, why: DropReason, span: Span): void {
    this.#removals.add({ lane, why, ...span });
  }

  depth(): Depth {
    return perLane((lane) => ({ ...this.#of(lane) }));
  }

  get rows(): number {
    return this.#sum('rows');
  }

  get bytes(): number {
    return this.#sum('bytes');
  }

  lane(lane: Lane): LaneDepth {
    return this.#of(lane);
  }

  removals(): readonly Removal[] {
    return this.#removals.list();
  }

  #sum(of: 'rows' | 'bytes'): number {
    return lanes.reduce((sum, lane) => sum + this.#of(lane)[of], 0);
  }

  #of(lane: Lane): { rows: number; bytes: number } {
    return this.#depth.get(lane) ?? { rows: 0, bytes: 0 };
  }

  #count(lane: Lane, rows: number, bytes: number): void {
    const depth = this.#of(lane);
    depth.rows += rows;
    depth.bytes += bytes;
  }
}

/** Removals, added up for each lane, reason and epoch. */
export class Removals {
  readonly #all = new Map<string, Removal>();

  add(removal: Removal): void {
    if (removal.rows === 0) return;
    const key = `${removal.lane} ${removal.why} ${positionOf(removal.lo).epoch}`;
    const known = this.#all.get(key);
    this.#all.set(key, known ? merged(known, removal) : removal);
  }

  list(): readonly Removal[] {
    return [...this.#all.values()];
  }

  /** What was added since the last time. */
  takeAll(): readonly Removal[] {
    const all = this.list();
    this.#all.clear();
    return all;
  }
}

function merged(a: Removal, b: Removal): Removal {
  const [rows, bytes] = [a.rows + b.rows, a.bytes + b.bytes];
  return { ...a, rows, bytes, lo: Math.min(a.lo, b.lo), hi: Math.max(a.hi, b.hi) };
}

export function isDrop(why: Removal['why']): why is DropReason {
  return why !== 'delivered' && why !== 'quarantined';
}
