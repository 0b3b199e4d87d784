/**
 * Keeps the buffer within its limits: what is too old goes first, then dense feeds become sparse, then the oldest of the
 * least important lane goes. Every step looks at a bounded number of rows, so that no commit takes long; what is left to
 * do is done by the next ones. Rows that the main thread holds are skipped.
 */
import { type Lane, laneRules, lanes } from '../../../../contract/lanes.ts';
import type { Ages } from '../ages.ts';
import type { Changes } from '../changes.ts';
import type { AnnouncedTable } from './announced-table.ts';
import type { InFlightRows } from '../in-flight-rows.ts';
import { type LaneTable, lastOfEpoch, type RowOutline } from './lane-table.ts';
import type { DropReason, StoreLimits } from '../../protocol.ts';
import type { Quarantine, QuarantineOutline } from './quarantine.ts';
import { type RowId, seq_max } from '../../row.ts';
import { type Handle, readMeta, writeMeta } from '../schema.ts';

/** `short`: less is free than must stay free for other programs. `full`: the reserve was needed and is not back yet. */

export type Shortage = 'none' | 'short' | 'full';

const chunk_rows = 5_000;
const evict_rows_max = 20_000;
const thin_steps_max = 6;
/** Eviction goes a little below the limit, so that it is not needed again at once. */
const evict_to = 0.95;
/** However little space others leave on the disk, the buffer may be this large; when it is full, the reserve pays for it. */
const kept_bytes = { short: 16 * 1024 * 1024, full: 1024 * 1024 } as const;
const last_id: RowId = 2 ** 20 * seq_max;

/** Least important first. */
const evictable: readonly Lane[] = lanes.filter((lane) => laneRules[lane].evictable).toReversed();

interface RetentionOptions {
  readonly table: (lane: Lane) => LaneTable;
  readonly in_flight: InFlightRows;
  readonly ages: Ages;
  readonly announced: AnnouncedTable;
  readonly quarantine: Quarantine;
  readonly thinning: Thinning;
  readonly limits: StoreLimits;
}

interface Size {
  readonly rows: number;
  readonly bytes: number;
}

export class Retention {
  readonly #options: RetentionOptions;

  constructor(options: RetentionOptions) {
    this.#options = options;
  }

  /** What counts against the limits: the lanes, and the quarantine beside them. */
  sizeOf(lanes: Size): Size {
    const { rows, bytes } = this.#options.quarantine;
    return { rows: lanes.rows + rows, bytes: lanes.bytes + bytes };
  }

  /**
   * To be called at the end of a transaction that began with `before` in buffer and quarantine. While others have filled the disk
   * the buffer does not grow, but neither does it give up what it has to make room for them.
   */
  keep(changes: Changes, before: Size, shortage: Shortage): void {
    const { limits, ages } = this.#options;
    ages.mark(() => this.#newest());
    this.#expire(changes);
    const configured = { rows: limits.rows_max, bytes: limits.bytes_max };
    if (this.#isOver(changes, configured)) this.#shrink(changes, configured);
    if (shortage === 'none') return;
    const bytes = Math.max(kept_bytes[shortage], before.bytes);
    this.evict(changes, { rows: Number.POSITIVE_INFINITY, bytes });
  }

  /**
   * Removes values of retained topics that are older than the newest one, which may have been delivered: after a restart they
   * would replace it at the broker.
   */
  supersede(changes: Changes): void {
    const { announced, in_flight, table } = this.#options;
    const outdated = announced.outdated().filter((id) => !in_flight.isHeld('presence', id));
    table('presence').removeRows(outdated, 'superseded', changes);
  }

  /** Removes the oldest of the least important lanes until the buffer fits; what was refused goes first. */
  evict(changes: Changes, goal: Size): void {
    let budget = evict_rows_max;
    for (const lane of evictable) {
      for (const refused of this.#refused(lane, changes, goal)) {
        this.#options.quarantine.discard(refused, 'evicted', changes);
        if (!this.#isOver(changes, goal)) return;
      }
      let after: RowId = 0;
      while (this.#isOver(changes, goal) && budget > 0) {
        const rows = this.#options.table(lane).outline(after, last_id, Math.min(chunk_rows, budget));
        const last = rows.at(-1);
        if (!last) break;
        [after] = last;
        budget -= rows.length;
        this.#remove(lane, this.#fitting(lane, rows, this.#excess(changes, goal)), 'evicted', changes);
      }
    }
  }

  #expire(changes: Changes): void {
    const { ages, table } = this.#options;
    const to = ages.expiredTo();
    if (to === undefined) return;
    let all = true;
    for (const lane of evictable) {
      const rows = table(lane).outline(0, to, chunk_rows);
      this.#remove(lane, rows, 'expired', changes);
      const refused = this.#options.quarantine.oldestOf(lane, to, chunk_rows);
      for (const one of refused) this.#options.quarantine.discard(one, 'expired', changes);
      all &&= rows.length < chunk_rows && refused.length < chunk_rows;
    }
    if (all) ages.forget(to);
  }

  #shrink(changes: Changes, limit: Size): void {
    let thinnable = true;
    for (let step = 0; step < thin_steps_max && thinnable && this.#isOver(changes, limit); step += 1) {
      thinnable = this.#options.thinning.step(changes);
    }
    if (!this.#isOver(changes, limit)) return;
    // While there is more to thin, only what must go now is evicted.
    const share = thinnable ? 1 : evict_to;
    this.evict(changes, { rows: Math.floor(limit.rows * share), bytes: Math.floor(limit.bytes * share) });
  }

  /**
   * Removes rows that were read in this very transaction, so nothing can have come between them: all between two held
   * ones, or two epochs, goes at once.
   */
  #remove(lane: Lane, rows: readonly RowOutline[], why: DropReason, changes: Changes): void {
    const { in_flight, table } = this.#options;
    let lo: RowId | undefined;
    let hi: RowId = 0;
    const removeSpan = (): void => {
      if (lo !== undefined) table(lane).removeSpan(lo, hi, why, changes);
      lo = undefined;
    };
    for (const [id] of rows) {
      const held = in_flight.isHeld(lane, id);
      if (lo !== undefined && (held || id > lastOfEpoch(lo))) removeSpan();
      if (held) continue;
      lo ??= id;
      hi = id;
    }
    removeSpan();
  }

  /** The first rows whose removal makes up for the excess. */
  #fitting(lane: Lane, rows: readonly RowOutline[], excess: Size): readonly RowOutline[] {
    let { rows: over_rows, bytes: over_bytes } = excess;
    const enough = rows.findIndex(([id, , , bytes]) => {
      if (this.#options.in_flight.isHeld(lane, id)) return false;
      over_rows -= 1;
      over_bytes -= bytes;
      return over_rows <= 0 && over_bytes <= 0;
    });
    return enough < 0 ? rows : rows.slice(0, enough + 1);
  }

  #newest(): RowId {
    return Math.max(...evictable.map((lane) => this.#options.table(lane).fromEnd(0) ?? 0));
  }

  #refused(lane: Lane, changes: Changes, goal: Size): readonly QuarantineOutline[] {
    return this.#isOver(changes, goal) ? this.#options.quarantine.oldestOf(lane, last_id, chunk_rows) : [];
  }

  #isOver(changes: Changes, limit: Size): boolean {
    const { rows, bytes } = this.#excess(changes, limit);
    return rows > 0 || bytes > 0;
  }

  #excess(changes: Changes, limit: Size): Size {
    const { rows, bytes } = this.sizeOf(changes);
    return { rows: rows - limit.rows, bytes: bytes - limit.bytes };
  }
}

/** One message of each channel stays for so long a time. A level begins when the one before it has nothing left to do. */
const intervals_s = [10, 60, 600] as const;
const thinned_chunk_rows = 5_000;
/** The newest messages are never thinned: this many, at most a quarter of all. */
const spared_rows = 5_000;
const channels_max = 10_000;

interface Level {
  readonly interval_s: number;
  /** The level has seen the rows up to here. */
  seen_to: RowId;
  /** Of each channel, the stretch of time that has its message. */
  readonly filled: Map<number, number>;
}

/** Makes the oldest feed messages sparser before any feed loses a stretch of its history whole. */
export class Thinning {
  readonly #db: Handle;
  readonly #table: LaneTable;
  readonly #in_flight: InFlightRows;
  readonly #levels: readonly Level[];

  constructor(db: Handle, table: LaneTable, in_flight: InFlightRows) {
    this.#db = db;
    this.#table = table;
    this.#in_flight = in_flight;
    this.#levels = intervals_s.map((interval_s) => ({
      interval_s,
      seen_to: readMeta(db, metaKey(interval_s)) ?? 0,
      filled: new Map(),
    }));
  }

  /** Thins the next rows. False when nothing is left to thin. Needs a transaction. */
  step(changes: Changes): boolean {
    const spared = Math.min(spared_rows, Math.ceil(changes.lane(this.#table.lane).rows / 4));
    const to = this.#table.fromEnd(spared);
    if (to === undefined) return false;
    return this.#levels.some((level) => this.#thin(level, to, changes));
  }

  #thin(level: Level, to: RowId, changes: Changes): boolean {
    const rows = this.#table.outline(level.seen_to, to, thinned_chunk_rows);
    const last = rows.at(-1);
    if (!last) return false;
    const dense: RowId[] = [];
    for (const [id, topic, time_ms] of rows) {
      const stretch = Math.floor(time_ms / (level.interval_s * 1000));
      if (level.filled.get(topic) !== stretch) this.#fill(level, topic, stretch);
      else if (!this.#in_flight.isHeld(this.#table.lane, id)) dense.push(id);
    }
    this.#table.removeRows(dense, 'thinned', changes);
    [level.seen_to] = last;
    writeMeta(this.#db, metaKey(level.interval_s), level.seen_to);
    return true;
  }

  #fill(level: Level, topic: number, stretch: number): void {
    if (level.filled.size >= channels_max) level.filled.clear();
    level.filled.set(topic, stretch);
  }
}

function metaKey(interval_s: number): string {
  return `thinned_${interval_s}`;
}
