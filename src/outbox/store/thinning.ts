/** Makes the oldest feed messages sparser before any feed loses a stretch of its history whole. */
import type { Changes } from './changes.ts';
import type { InFlightRows } from './in-flight-rows.ts';
import type { LaneTable } from './tables/lane-table.ts';
import type { RowId } from '../row.ts';
import { readMeta, writeMeta, type Handle } from './schema.ts';

/** One message of each channel stays for so long a time. A level begins when the one before it has nothing left to do. */
const intervals_s = [10, 60, 600] as const;
const chunk_rows = 5_000;
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
    const rows = this.#table.outline(level.seen_to, to, chunk_rows);
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
