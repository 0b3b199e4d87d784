/** The history on an SQL database. */
import type { Database, Row, SqlValue } from '../store/sql/database.ts';
import { bodyOf, compactKit, waitingKit } from './compactor.ts';
import { erase } from './erase.ts';
import { readTombstones } from './erasure.ts';
import type {
  DayQuery,
  Erasure,
  HistoryStore,
  SegmentQuery,
  StoredDay,
  StoredSegment,
} from './history-store.ts';
import type { Hole } from './holes.ts';
import type { Retention } from './retention.ts';
import { rollUpDay } from './roll-up.ts';
import { limitLanded, trim } from './trim.ts';

/** Rows of a kit that landed; what is more is divided before anybody reads so far. */
const landed_rows_max = 20_000;
const holes_max = 10_000;

export class SqlHistory implements HistoryStore {
  protected readonly database: Database;

  constructor(database: Database) {
    this.database = database;
  }

  async historySegments({ kit_id, classes, from_ms, to_ms, order, after, limit }: SegmentQuery) {
    const [edge, compare, direction] = order === 'asc' ? ['lo_ms', '>', 'ASC'] : ['hi_ms', '<', 'DESC'];
    const rows = await this.database.all(
      `SELECT id, lo_ms, hi_ms, messages, misdated, body FROM history
       WHERE kit_id = ? AND class IN (${classes.map(() => '?').join(', ')}) AND lo_ms < ? AND hi_ms >= ?
         ${after ? `AND (${edge}, id) ${compare} (?, ?)` : ''}
       ORDER BY ${edge} ${direction}, id ${direction} LIMIT ?`,
      kit_id,
      ...classes,
      to_ms,
      from_ms,
      ...(after ? [after.ms, after.id] : []),
      limit,
    );
    return rows.map(segmentOf);
  }

  async historyLanded(kit_id: string): Promise<readonly Uint8Array[]> {
    const rows = await this.database.all(
      'SELECT body FROM history_in WHERE kit_id = ? ORDER BY id LIMIT ?',
      kit_id,
      landed_rows_max,
    );
    return rows.map(bodyOf);
  }

  async historyDays({ kit_id, channel, from_day, to_day }: DayQuery): Promise<readonly StoredDay[]> {
    const rows = await this.database.all(
      `SELECT history_days.day, history_days.body,
         CASE WHEN changed = 1 AND lo_ms < to_ms THEN lo_ms ELSE to_ms END AS to_ms
       FROM history_days
       LEFT JOIN history_changed ON history_changed.kit_id = history_days.kit_id AND history_changed.day = history_days.day
       WHERE history_days.kit_id = ? AND channel = ? AND history_days.day BETWEEN ? AND ? ORDER BY history_days.day`,
      kit_id,
      channel,
      from_day,
      to_day,
    );
    return rows.map((row) => ({ day: Number(row['day']), to_ms: Number(row['to_ms']), body: bodyOf(row) }));
  }

  async historyHoles(kit_id: string): Promise<readonly Hole[]> {
    const rows = await this.database.all(
      `SELECT epoch, lo, hi, lane, reason, messages, reported_ms FROM history_holes
       WHERE kit_id = ? ORDER BY epoch DESC, lo LIMIT ?`,
      kit_id,
      holes_max,
    );
    return rows.map(holeOf);
  }

  async beginHistory(now_ms: number): Promise<void> {
    await this.database.all(
      `INSERT INTO service (name, value) VALUES ('history_since_ms', ?) ON CONFLICT (name) DO NOTHING`,
      String(now_ms),
    );
  }

  async historySince(): Promise<number | undefined> {
    const [row] = await this.database.all(`SELECT value FROM service WHERE name = 'history_since_ms'`);
    return row && Number(row['value']);
  }

  async compactHistory(now_ms: number, all = false): Promise<number> {
    const kit_id = await waitingKit(this.database, now_ms, all);
    if (kit_id === undefined) return 0;
    const tombstones = await readTombstones(this.database, kit_id);
    return compactKit(this.database, kit_id, { now_ms, tombstones });
  }

  async rollUpHistory(now_ms: number): Promise<boolean> {
    return rollUpDay(this.database, now_ms);
  }

  async trimHistory(retention: Retention, now_ms: number): Promise<number> {
    return trim(this.database, retention, now_ms);
  }

  async limitLanded(messages_max: number): Promise<number> {
    return this.database.transaction(async (queries) => limitLanded(queries, messages_max));
  }

  async eraseHistory(erasure: Erasure, now_ms: number): Promise<void> {
    await erase(this.database, erasure, now_ms);
  }

  protected async all(sql: string, ...values: readonly SqlValue[]): Promise<readonly Row[]> {
    return this.database.all(sql, ...values);
  }
}

function segmentOf(row: Row): StoredSegment {
  return {
    id: String(row['id']),
    lo_ms: Number(row['lo_ms']),
    hi_ms: Number(row['hi_ms']),
    messages: Number(row['messages']),
    misdated: Number(row['misdated']) === 1,
    body: bodyOf(row),
  };
}

function holeOf(row: Row): Hole {
  return {
    epoch: Number(row['epoch']),
    lo: Number(row['lo']),
    hi: Number(row['hi']),
    lane: String(row['lane']),
    reason: String(row['reason']),
    messages: Number(row['messages']),
    reported_ms: Number(row['reported_ms']),
  };
}
