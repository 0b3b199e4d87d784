/** All tables of one open handle, joined. A handle that broke, or whose transaction was rolled back, gets new ones. */
import { type Lane, laneRules, lanes } from '../../../../contract/lanes.ts';
import { Ages, type StoreClock } from '../ages.ts';
import { AnnouncedTable } from './announced-table.ts';
import { ChannelIds, LaneTable } from './lane-table.ts';
import { type Changes, type Depth, isDrop, perLane } from '../changes.ts';
import { Epochs } from '../epochs.ts';
import type { InFlightRows } from '../in-flight-rows.ts';
import {
  type Drop,
  dropOf,
  type JournalEntry,
  type LaneDepth,
  type Left,
  type Removal,
  type StoreLimits,
} from '../../protocol.ts';
import { Quarantine } from './quarantine.ts';
import { Retention, Thinning } from './retention.ts';
import type { Row, RowId } from '../../row.ts';
import { type Handle, readMeta, writeMeta } from '../schema.ts';
import { texts } from '../../texts.ts';
import type { Statement } from 'better-sqlite3';

type Values = [string, string, string, string, number, number, number | null];

/** All texts of all entries; finished ones beyond it are forgotten, so that large dispatches cannot fill the disk. */
const journal_bytes_max = 32 * 1024 * 1024;
/** What one list holds: the memory of the thread is small. */
const list_chars_max = 8 * 1024 * 1024;
const trim_rows = 100;
const bytes_of_entry = 'octet_length(dispatch) + octet_length(result)';
const finished = "state IN ('completed', 'failed')";

class JournalTable {
  readonly #rows_max: number;
  readonly #put: Statement<Values>;
  readonly #find: Statement<[string], JournalEntry>;
  readonly #newest: Statement<[number], JournalEntry>;
  readonly #open: Statement<[], JournalEntry>;
  readonly #ended: Statement<[], { readonly state: string; readonly tasks: number }>;
  readonly #trim: Statement<[number]>;
  readonly #bytesOf: Statement<[string], number>;
  readonly #total: Statement<[], number>;
  readonly #oldest: Statement<[number], { readonly arrival: number; readonly bytes: number }>;
  readonly #delete: Statement<[number]>;
  #bytes: number;

  constructor(db: Handle, rows_max: number) {
    const columns = 'task_id, state, dispatch, result, received_ms, updated_ms, deadline_ms';
    this.#rows_max = rows_max;
    this.#put = db.prepare(
      `INSERT INTO tasks (${columns}) VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (task_id) DO UPDATE SET
       state = excluded.state, result = excluded.result, updated_ms = excluded.updated_ms, deadline_ms = excluded.deadline_ms`,
    );
    this.#find = db.prepare(`SELECT ${columns} FROM tasks WHERE task_id = ?`);
    this.#newest = db.prepare(`SELECT ${columns} FROM tasks ORDER BY arrival DESC LIMIT ?`);
    this.#open = db.prepare(`SELECT ${columns} FROM tasks WHERE NOT ${finished} ORDER BY arrival`);
    this.#ended = db.prepare(`SELECT state, count(*) AS tasks FROM tasks WHERE ${finished} GROUP BY state`);
    this.#trim = db.prepare(
      `DELETE FROM tasks WHERE ${finished} AND arrival <= (SELECT max(arrival) FROM tasks) - ?`,
    );
    this.#bytesOf = db
      .prepare<[string], number>(`SELECT ${bytes_of_entry} FROM tasks WHERE task_id = ?`)
      .pluck();
    this.#total = db.prepare<[], number>(`SELECT coalesce(sum(${bytes_of_entry}), 0) FROM tasks`).pluck();
    this.#oldest = db.prepare(
      `SELECT arrival, ${bytes_of_entry} AS bytes FROM tasks WHERE ${finished} ORDER BY arrival LIMIT ?`,
    );
    this.#delete = db.prepare('DELETE FROM tasks WHERE arrival = ?');
    this.#bytes = this.#total.get() ?? 0;
  }

  put(entry: JournalEntry): void {
    const { task_id, state, dispatch, result, received_ms, updated_ms, deadline_ms } = entry;
    this.#bytes -= this.#bytesOf.get(task_id) ?? 0;
    this.#put.run(task_id, state, dispatch, result, received_ms, updated_ms, deadline_ms);
    this.#bytes += this.#bytesOf.get(task_id) ?? 0;
  }

  /** How many of those that are remembered have ended. */
  ended(): { readonly completed: number; readonly failed: number } {
    const counts = new Map(this.#ended.all().map(({ state, tasks }) => [state, tasks]));
    return { completed: counts.get('completed') ?? 0, failed: counts.get('failed') ?? 0 };
  }

  find(task_id: string): JournalEntry | undefined {
    return this.#find.get(task_id);
  }

  /** The newest, newest first. */
  list(limit: number): readonly JournalEntry[] {
    const entries: JournalEntry[] = [];
    let chars = 0;
    for (const entry of this.#newest.iterate(Math.min(limit, this.#rows_max))) {
      chars += entry.dispatch.length + entry.result.length;
      if (entries.length > 0 && chars > list_chars_max) break;
      entries.push(entry);
    }
    return entries;
  }

  /** Not completed and not failed, oldest first. */
  open(): readonly JournalEntry[] {
    return this.#open.all();
  }

  /** Forgets finished tasks beyond the limits, by the order in which they arrived: the time of day may have jumped. */
  trim(): void {
    if (this.#trim.run(this.#rows_max).changes > 0) this.#bytes = this.#total.get() ?? 0;
    while (this.#bytes > journal_bytes_max) {
      const oldest = this.#oldest.all(trim_rows);
      if (oldest.length === 0) return;
      for (const { arrival, bytes } of oldest) {
        if (this.#bytes <= journal_bytes_max) return;
        this.#delete.run(arrival);
        this.#bytes -= bytes;
      }
    }
  }
}

type IsHeld = (lane: Lane, id: RowId) => boolean;

export class Tables {
  readonly db: Handle;
  readonly channels: ChannelIds;
  readonly announced: AnnouncedTable;
  readonly drops: DropTable;
  readonly totals: TotalsTable;
  readonly epochs: Epochs;
  readonly journal: JournalTable;
  readonly quarantine: Quarantine;
  readonly ages: Ages;
  readonly retention: Retention;
  readonly #in_flight: InFlightRows;
  readonly #lanes: ReadonlyMap<Lane, LaneTable>;
  readonly #readDepth: Statement<[string], LaneDepth>;
  readonly #writeDepth: Statement<[string, number, number]>;
  #sync_mode: 'FULL' | 'NORMAL' | undefined;

  constructor(db: Handle, limits: StoreLimits, in_flight: InFlightRows, clock: StoreClock) {
    this.db = db;
    this.channels = new ChannelIds(db);
    this.announced = new AnnouncedTable(db);
    this.ages = new Ages(db, limits.age_max_ms, clock);
    this.quarantine = new Quarantine(db);
    this.totals = new TotalsTable(db, clock);
    this.drops = new DropTable(db, this.totals);
    this.epochs = new Epochs(db);
    this.journal = new JournalTable(db, limits.journal_rows_max);
    this.#in_flight = in_flight;
    this.#lanes = new Map(lanes.map((lane) => [lane, new LaneTable(db, lane, this.channels)]));
    this.retention = new Retention({
      table: (lane) => this.lane(lane),
      in_flight,
      ages: this.ages,
      announced: this.announced,
      limits,
      quarantine: this.quarantine,
      thinning: new Thinning(db, this.lane('feed'), in_flight),
    });
    this.#readDepth = db.prepare('SELECT rows, bytes FROM depth WHERE lane = ?');
    this.#writeDepth = db.prepare(
      `INSERT INTO depth (lane, rows, bytes) VALUES (?, ?, ?)
       ON CONFLICT (lane) DO UPDATE SET rows = excluded.rows, bytes = excluded.bytes`,
    );
  }

  lane(lane: Lane): LaneTable {
    const found = this.#lanes.get(lane);
    if (!found) throw new RangeError(texts.lane_unknown(lane));
    return found;
  }

  /** Puts a row into its lane. False when it was there already or a newer one makes it worthless. */
  insert(row: Row, changes: Changes, isHeld?: IsHeld): boolean {
    const table = this.lane(row.lane);
    if (!laneRules[row.lane].retain) return table.insert(row, changes);
    return this.announced.insertNewest(row, table, changes, (id) =>
      isHeld ? isHeld(row.lane, id) : this.#in_flight.isHeld(row.lane, id),
    );
  }

  /** How the next transactions of this handle are committed. Not within one. */
  sync(mode: 'FULL' | 'NORMAL'): void {
    if (mode === this.#sync_mode) return;
    this.#sync_mode = undefined;
    this.db.pragma(`synchronous = ${mode}`);
    this.#sync_mode = mode;
  }

  readDepth(): Depth {
    return perLane((lane) => this.#readDepth.get(lane) ?? { rows: 0, bytes: 0 });
  }

  writeDepth(changes: Changes): void {
    for (const lane of lanes) {
      const { rows, bytes } = changes.lane(lane);
      this.#writeDepth.run(lane, rows, bytes);
    }
  }

  /** Number of the last transaction of this file, 0 in a new one. In the page of the depths, which each transaction writes anyway. */
  readNumber(): number {
    return this.#readDepth.get(number_row)?.rows ?? 0;
  }

  writeNumber(number: number): void {
    this.#writeDepth.run(number_row, number, 0);
  }
}

/** No lane. */
const number_row = '#transaction';

// Drops that were not reported to the cloud yet, durable, so that a restart leaves no unexplained gaps.

class DropTable {
  readonly #add: Statement<[number, string, string, number, number, number]>;
  readonly #subtract: Statement<[number, number, string, string]>;
  readonly #clean: Statement<[number, string, string]>;
  readonly #list: Statement<[], Drop>;
  readonly #totals: TotalsTable;

  constructor(db: Handle, totals: TotalsTable) {
    this.#totals = totals;
    this.#add = db.prepare(
      `INSERT INTO drops (epoch, lane, reason, rows, lo, hi) VALUES (?, ?, ?, ?, ?, ?)
       ON CONFLICT (epoch, lane, reason) DO UPDATE
       SET rows = rows + excluded.rows, lo = min(lo, excluded.lo), hi = max(hi, excluded.hi)`,
    );
    this.#subtract = db.prepare(
      'UPDATE drops SET rows = rows - ? WHERE epoch = ? AND lane = ? AND reason = ?',
    );
    this.#clean = db.prepare('DELETE FROM drops WHERE epoch = ? AND lane = ? AND reason = ? AND rows <= 0');
    this.#list = db.prepare(
      'SELECT epoch, lane, reason, rows, lo, hi FROM drops ORDER BY epoch, lane, reason',
    );
  }

  add({ epoch, lane, reason, rows, lo, hi }: Drop): void {
    this.#add.run(epoch, lane, reason, rows, lo, hi);
    this.#totals.add(reason, rows);
  }

  /** Stores the removals that must be reported to the cloud. */
  note(removals: readonly Removal[]): void {
    for (const removal of removals) if (isDrop(removal.why)) this.add(dropOf(removal, removal.why));
  }

  /** Removes drops that a message in flight reports. */
  reported(drops: readonly Drop[]): void {
    for (const { epoch, lane, reason, rows } of drops) {
      this.#subtract.run(rows, epoch, lane, reason);
      this.#clean.run(epoch, lane, reason);
    }
  }

  list(): readonly Drop[] {
    return this.#list.all();
  }
}

/** No lane has such a name; releases before this one look for the names of lanes only. */
const prefix = '#left ';
const since_key = 'left_since_ms';

/**
 * How many messages have left the buffer since its file was made: the books of `status` outlive a restart. They lie in the page
 * of the depths, which each transaction writes anyway, so they cost the flash nothing.
 */
class TotalsTable {
  readonly #db: Handle;
  readonly #clock: StoreClock;
  readonly #add: Statement<[string, number]>;
  readonly #list: Statement<[string], { readonly lane: string; readonly rows: number }>;

  constructor(db: Handle, clock: StoreClock) {
    this.#db = db;
    this.#clock = clock;
    this.#add = db.prepare(
      'INSERT INTO depth (lane, rows, bytes) VALUES (?, ?, 0) ON CONFLICT (lane) DO UPDATE SET rows = rows + excluded.rows',
    );
    this.#list = db.prepare('SELECT lane, rows FROM depth WHERE substr(lane, 1, 6) = ?');
  }

  /** Begins to count, unless the file has begun before. `clock_synced`: the time of day is right. Needs a transaction. */
  begin(clock_synced: boolean): void {
    if (readMeta(this.#db, since_key) !== undefined) return;
    writeMeta(this.#db, since_key, clock_synced ? this.#clock.wall() : 0);
  }

  add(why: string, rows: number): void {
    if (rows > 0) this.#add.run(prefix + why, rows);
  }

  read(): Left {
    const rows = this.#list.all(prefix).map((each) => [each.lane.slice(prefix.length), each.rows] as const);
    const { delivered = 0, ...dropped } = Object.fromEntries(rows);
    const since_ms = readMeta(this.#db, since_key) ?? 0;
    return { since_ms: since_ms === 0 ? null : since_ms, delivered, dropped };
  }

  /** Takes over what could be read of a damaged file: rows of `depth`, and `meta`. Needs a transaction. */
  restore(
    depth: readonly { readonly lane: string; readonly rows: number }[],
    meta: ReadonlyMap<string, number>,
  ): void {
    const known = depth.filter(({ lane }) => lane.startsWith(prefix));
    if (known.length === 0) return;
    this.#db.prepare('DELETE FROM depth WHERE substr(lane, 1, 6) = ?').run(prefix);
    for (const { lane, rows } of known) this.#add.run(lane, rows);
    writeMeta(this.#db, since_key, meta.get(since_key) ?? 0);
  }
}
