/** Rows that the main thread holds, by lane: in memory only, since a restart frees everything. */
import { lanes, type Lane } from '../../../contract/lanes.ts';
import type { RowRef } from '../protocol.ts';
import type { RowId } from '../row.ts';

/** Rows that wait for the cloud's acknowledgement and are tracked individually: more than a full window of batches. */
export const unconfirmed_max = 32_768;

/** Rows of one lane that the broker acknowledged, and that are not tracked individually, lie here. */
interface Span {
  readonly from: RowId;
  readonly to: RowId;
  /** Since when the first of them waits. */
  readonly since_ms: number;
}

interface Batch {
  readonly lane: Lane;
  /** Rising. */
  readonly ids: readonly RowId[];
}

export class InFlightRows {
  readonly #held = new Map<Lane, Set<RowId>>(lanes.map((lane) => [lane, new Set()]));
  /** Rows up to here are held, unconfirmed or gone: nothing has to look at them again. */
  readonly #cursors = new Map<Lane, RowId>();
  readonly #batches = new Map<number, Batch>();
  /** No batch holds a row above this one: most rows are looked up once, in rising order. */
  readonly #batched_to = new Map<Lane, RowId>();
  /** In the order of their PUBACKs. */
  readonly #unconfirmed = new Map<RowId, { readonly lane: Lane; readonly since_ms: number }>();
  /** Rows beyond the limit. */
  readonly #untracked = new Map<Lane, Span>();
  readonly #tracked_max: number;
  #tokens = 0;

  constructor(tracked_max = unconfirmed_max) {
    this.#tracked_max = tracked_max;
  }

  cursor(lane: Lane): RowId {
    return this.#cursors.get(lane) ?? 0;
  }

  isFree(lane: Lane, id: RowId): boolean {
    return !this.isHeld(lane, id) && !this.#unconfirmed.has(id);
  }

  /** `isFree` for the rows of one lane, in the order of their numbers: most of them are above all that is held. */
  freeIn(lane: Lane): (id: RowId) => boolean {
    if (this.#of(lane).size > 0 || this.#unconfirmed.size > 0) return (id) => this.isFree(lane, id);
    const batched_to = this.#batched_to.get(lane) ?? 0;
    return (id) => id > batched_to || !this.#isInBatch(lane, id);
  }

  isHeld(lane: Lane, id: RowId): boolean {
    return this.#of(lane).has(id) || this.#isInBatch(lane, id);
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

  /**
   * The broker has it, the cloud may not. Beyond the limit the oldest are known by their span only: they stay on disk behind
   * the cursor until they are sent again, and the backlog continues meanwhile.
   */
  waitForCloud({ lane, id }: RowRef, now_ms: number): void {
    this.#of(lane).delete(id);
    this.#unconfirmed.delete(id);
    this.#unconfirmed.set(id, { lane, since_ms: now_ms });
    if (this.#unconfirmed.size <= this.#tracked_max) return;
    for (const [oldest, { lane: its, since_ms }] of this.#unconfirmed) {
      const {
        from,
        to,
        since_ms: first_ms,
      } = this.#untracked.get(its) ?? { from: oldest, to: oldest, since_ms };
      const span = { from: Math.min(from, oldest), to: Math.max(to, oldest), since_ms: first_ms };
      this.#untracked.set(its, span);
      this.#unconfirmed.delete(oldest);
      break;
    }
  }

  /**
   * Between which rows those lie that the broker acknowledged and that are not tracked individually: the rows there that
   * are on disk and `isFree`. A row up to the cursor that the broker has not acknowledged is held, or the cursor turns back.
   */
  untracked(lane: Lane): readonly [from: RowId, to: RowId] | undefined {
    const span = this.#untracked.get(lane);
    const to = Math.min(span?.to ?? 0, this.cursor(lane));
    return span && span.from <= to ? [span.from, to] : undefined;
  }

  /** The first row of the span that is still there; undefined: none is. */
  untrackedLeft(lane: Lane, first: RowId | undefined): void {
    const span = this.#untracked.get(lane);
    if (span && first !== undefined) this.#untracked.set(lane, { ...span, from: first });
    else this.#untracked.delete(lane);
  }

  /** Frees rows of some lanes that have waited for the cloud since before `before_ms`; returns how many, with a span counted as one. */
  resend(before_ms: number, isMeant: (lane: Lane) => boolean): number {
    let freed = 0;
    for (const [lane, { from, since_ms }] of this.#untracked) {
      if (since_ms > before_ms || !isMeant(lane)) continue;
      this.#untracked.delete(lane);
      this.#turnBack(lane, from);
      freed += 1;
    }
    for (const [id, { lane, since_ms }] of this.#unconfirmed) {
      if (since_ms > before_ms) break;
      if (!isMeant(lane)) continue;
      this.free(lane, id);
      freed += 1;
    }
    return freed;
  }

  /** Frees the row that waits longest, if since before `before_ms`, or the spans where no row is tracked; returns how many. */
  resendOldest(before_ms: number): number {
    const [oldest] = this.#unconfirmed;
    if (!oldest) return this.resend(before_ms, () => true);
    const [id, { lane, since_ms }] = oldest;
    if (since_ms > before_ms) return 0;
    this.free(lane, id);
    return 1;
  }

  /** Rows that the broker acknowledged in this run and that wait for the cloud. */
  unconfirmed(isMeant: (id: RowId) => boolean): readonly RowRef[] {
    const refs: RowRef[] = [];
    for (const [id, { lane }] of this.#unconfirmed) if (isMeant(id)) refs.push({ lane, id });
    return refs;
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
