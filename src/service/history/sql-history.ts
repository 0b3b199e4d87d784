/** The history on an SQL database. */
import type { Database, Row, SqlValue } from '../store/sql/database.ts';
import { compactKit, waitingKit } from './compactor.ts';
import { bodyOf } from './segment.ts';
import { erase, mendErasures } from './erase.ts';
import { readErasures, readTombstones, type Tombstones } from './erasure.ts';
import type {
  DayQuery,
  Erasure,
  ErasureQuery,
  HistoryStore,
  KitSize,
  SegmentQuery,
  StoredDay,
  StoredErasure,
  StoredLanded,
  StoredSegment,
} from './history-store.ts';
import { type Hole, holeOf, holes_max } from './holes.ts';
import { history_classes, type HistoryClass, type HistoryMessage } from './message.ts';
import { type Retention, storedRetention } from './retention.ts';
import { rollUpDay } from './roll-up.ts';
import { type KitRecord, readRecord, readSince, since_name, writeRecord } from './transfer/record.ts';
import { limitLanded, trim } from './trim.ts';

/** Rows of a kit that landed; what is more is divided before anybody reads so far. */
const landed_rows_max = 20_000;
const landed_bytes_max = 32 * 1024 * 1024;
const retention_name = 'history_retention';

export abstract class SqlHistory implements HistoryStore {
  protected readonly database: Database;

  constructor(database: Database) {
    this.database = database;
  }

  async historySegments({ kit_id, classes, from_ms, to_ms, order, after, limit }: SegmentQuery) {
    const [edge, compare, direction] = order === 'asc' ? ['lo_ms', '>', 'ASC'] : ['hi_ms', '<', 'DESC'];
    const rows = await this.database.all(
      `SELECT id, lo_ms, hi_ms, messages, misdated, day, body FROM history
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

  async historyLanded(kit_id: string): Promise<readonly StoredLanded[]> {
    const sizes = await this.database.all(
      'SELECT id, LENGTH(body) AS bytes FROM history_in WHERE kit_id = ? ORDER BY id LIMIT ?',
      kit_id,
      landed_rows_max,
    );
    let bytes = 0;
    const beyond = sizes.findIndex((row) => (bytes += Number(row['bytes'])) > landed_bytes_max);
    const last = beyond < 1 ? sizes.at(beyond) : sizes[beyond - 1];
    if (!last) return [];
    const rows = await this.database.all(
      'SELECT landed_ms, body FROM history_in WHERE kit_id = ? AND id <= ? ORDER BY id',
      kit_id,
      String(last['id']),
    );
    return rows.map((row) => ({ landed_ms: Number(row['landed_ms']), body: bodyOf(row) }));
  }

  async historyErased(kit_id: string): Promise<Tombstones> {
    return readTombstones(this.database, kit_id);
  }

  async historyKnows(kit_id: string, asset_id: string): Promise<boolean> {
    const known = ['assets', 'partner_sync', 'feeds', 'tasks'].map(
      (table) => `SELECT 1 AS here FROM ${table} WHERE kit_id = ? AND asset_id = ?`,
    );
    const rows = await this.database.all(
      `SELECT here FROM (${known.join(' UNION ALL ')}) AS known LIMIT 1`,
      ...known.flatMap(() => [kit_id, asset_id]),
    );
    return rows.length > 0;
  }

  async historyErasures(query: ErasureQuery): Promise<readonly StoredErasure[]> {
    return readErasures(this.database, query);
  }

  async mendErasures(): Promise<readonly StoredErasure[]> {
    return mendErasures(this.database);
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
      holes_max + 1,
    );
    return rows.map(holeOf);
  }

  async beginHistory(now_ms: number): Promise<void> {
    await this.database.all(
      'INSERT INTO service (name, value) VALUES (?, ?) ON CONFLICT (name) DO NOTHING',
      since_name,
      String(now_ms),
    );
  }

  async historySince(kit_id: string): Promise<number | undefined> {
    return readSince(this.database, kit_id);
  }

  async historyOldest(kit_id: string): Promise<Partial<Readonly<Record<HistoryClass, number>>>> {
    const oldest: Partial<Record<HistoryClass, number>> = {};
    for (const each of history_classes) {
      const [row] = await this.database.all(
        'SELECT lo_ms FROM history WHERE kit_id = ? AND class = ? AND misdated = 0 ORDER BY lo_ms LIMIT 1',
        kit_id,
        each,
      );
      if (row) oldest[each] = Number(row['lo_ms']);
    }
    return oldest;
  }

  async historySizes(): Promise<readonly KitSize[]> {
    const rows = await this.database.all(
      `SELECT kits.kit_id, kits.landed, divided.messages, divided.bytes, divided.lo_ms, divided.hi_ms FROM kits
       LEFT JOIN (SELECT kit_id, SUM(messages) AS messages, SUM(bytes) AS bytes, MIN(lo_ms) AS lo_ms, MAX(hi_ms) AS hi_ms
         FROM history GROUP BY kit_id) AS divided ON divided.kit_id = kits.kit_id
       WHERE kits.landed > 0 OR divided.messages > 0 ORDER BY kits.kit_id`,
    );
    return rows.map(sizeOf);
  }

  async historyRecord(kit_id: string): Promise<KitRecord> {
    return readRecord(this.database, kit_id);
  }

  abstract importMessages(
    kit_id: string,
    messages: readonly HistoryMessage[],
    arrived_ms: number,
  ): Promise<void>;

  async importRecord(kit_id: string, record: KitRecord, now_ms: number): Promise<void> {
    await writeRecord(this.database, kit_id, record, now_ms);
  }

  /** A database without replicas has one process. */
  async leadHistory(_lease_ms: number): Promise<boolean> {
    return true;
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

  async historyRetention(): Promise<Retention | undefined> {
    const [row] = await this.database.all('SELECT value FROM service WHERE name = ?', retention_name);
    return row && storedRetention.parse(JSON.parse(String(row['value'])));
  }

  async setHistoryRetention(retention: Retention): Promise<void> {
    await this.database.all(
      'INSERT INTO service (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value',
      retention_name,
      JSON.stringify(retention),
    );
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
    day: Number(row['day']),
    body: bodyOf(row),
  };
}

function sizeOf(row: Row): KitSize {
  const { kit_id, landed, messages, bytes, lo_ms, hi_ms } = row;
  return {
    kit_id: String(kit_id),
    messages: Number(messages ?? 0) + Number(landed),
    bytes: Number(bytes ?? 0),
    lo_ms: lo_ms === null ? null : Number(lo_ms),
    hi_ms: hi_ms === null ? null : Number(hi_ms),
  };
}
