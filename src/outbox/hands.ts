/** What the main thread has in its hands, lane by lane: in memory only, since a restart frees everything. */
import { laneRules, lanes, type Lane } from '../contract/lanes.ts';
import type { RowRef } from './protocol.ts';
import type { RowId } from './row.ts';

/** Sync rows that wait for the cloud's word. A lane hands out nothing more while there are so many. */
export const unconfirmed_max = 10_000;

interface Batch {
  readonly lane: Lane;
  /** Rising. */
  readonly ids: readonly RowId[];
}

export class Hands {
  readonly #held = new Map<Lane, Set<RowId>>(lanes.map((lane) => [lane, new Set()]));
  /** Rows up to here are held, unconfirmed or gone: nothing has to look at them again. */
  readonly #cursors = new Map<Lane, RowId>();
  readonly #batches = new Map<number, Batch>();
  /** No batch holds a row above this one: most rows are asked for once, on the way up. */
  readonly #batched_to = new Map<Lane, RowId>();
  /** In the order of their PUBACKs. */
  readonly #unconfirmed = new Map<RowId, { readonly lane: Lane; readonly since_ms: number }>();
  #tokens = 0;

  cursor(lane: Lane): RowId {
    return this.#cursors.get(lane) ?? 0;
  }

  isFree(lane: Lane, id: RowId): boolean {
    return !this.isHeld(lane, id) && !this.#unconfirmed.has(id);
  }

  isHeld(lane: Lane, id: RowId): boolean {
    return this.#of(lane).has(id) || this.#isInBatch(lane, id);
  }

  /** The cloud is so far behind that more must not be sent. */
  mustWait(lane: Lane): boolean {
    return laneRules[lane].durability === 'sync' && this.#unconfirmed.size >= unconfirmed_max;
  }

  hold(lane: Lane, id: RowId): void {
    this.#of(lane).add(id);
  }

  /** Rows up to `cursor` were handed out or skipped. */
  advance(lane: Lane, cursor: RowId): void {
    this.#cursors.set(lane, cursor);
  }

  /** A free row stands here, perhaps behind the cursor. */
  free(lane: Lane, id: RowId): void {
    this.#of(lane).delete(id);
    this.#unconfirmed.delete(id);
    this.#turnBack(lane, id);
  }

  gone(lane: Lane, id: RowId): void {
    this.#of(lane).delete(id);
    this.#unconfirmed.delete(id);
  }

  /** The broker has it, the cloud may not. Beyond the limit the oldest is free again, to be sent once more. */
  waitForCloud({ lane, id }: RowRef, now_ms: number): void {
    this.#of(lane).delete(id);
    this.#unconfirmed.delete(id);
    this.#unconfirmed.set(id, { lane, since_ms: now_ms });
    if (this.#unconfirmed.size <= unconfirmed_max) return;
    for (const [oldest, { lane: its }] of this.#unconfirmed) {
      this.free(its, oldest);
      break;
    }
  }

  /** Frees what waits for the cloud since before `before_ms`; answers how many. */
  resend(before_ms: number): number {
    let freed = 0;
    for (const [id, { lane, since_ms }] of this.#unconfirmed) {
      if (since_ms > before_ms) break;
      this.free(lane, id);
      freed += 1;
    }
    return freed;
  }

  /** The cloud has everything between two numbers. */
  confirmed(lo: RowId, hi: RowId): void {
    for (const id of this.#unconfirmed.keys()) if (id >= lo && id <= hi) this.#unconfirmed.delete(id);
  }

  addBatch(batch: Batch): number {
    this.#tokens += 1;
    this.#batches.set(this.#tokens, batch);
    const hi = batch.ids.at(-1) ?? 0;
    if (hi > (this.#batched_to.get(batch.lane) ?? 0)) this.#batched_to.set(batch.lane, hi);
    return this.#tokens;
  }

  batch(token: number): Batch | undefined {
    return this.#batches.get(token);
  }

  dropBatch(token: number): void {
    this.#batches.delete(token);
  }

  /** Everything handed out is free again. */
  freeAll(): void {
    for (const { lane, ids } of this.#batches.values()) this.#turnBack(lane, ids[0] ?? 0);
    this.#batches.clear();
    this.#batched_to.clear();
    for (const [lane, held] of this.#held) {
      for (const id of held) this.#turnBack(lane, id);
      held.clear();
    }
  }

  /** After a new handle: what is on disk has to be looked at again. */
  rewind(): void {
    this.#cursors.clear();
  }

  #turnBack(lane: Lane, id: RowId): void {
    if (id <= this.cursor(lane)) this.#cursors.set(lane, id - 1);
  }

  #isInBatch(lane: Lane, id: RowId): boolean {
    if (id > (this.#batched_to.get(lane) ?? 0)) return false;
    for (const batch of this.#batches.values()) {
      const [lo, hi] = [batch.ids[0] ?? 0, batch.ids.at(-1) ?? 0];
      if (batch.lane === lane && id >= lo && id <= hi && batch.ids.includes(id)) return true;
    }
    return false;
  }

  #of(lane: Lane): Set<RowId> {
    const held = this.#held.get(lane);
    if (!held) throw new RangeError(`no lane ${lane}`);
    return held;
  }
}
