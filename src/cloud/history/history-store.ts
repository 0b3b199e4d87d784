/** The history on an SQL database: it moves bodies and knows their bounds, and `reading/` reads them. */
import { z } from 'zod';
import { json } from '../../contract/json.ts';
import { readChannel } from '../../contract/topics.ts';
import { compactKit, waitingKit } from './compactor.ts';
import { erase, mendErasures, type EraseMessages } from './erase.ts';
import { readErasures, readTombstones } from './erasure.ts';
import { rollUpDay } from './figures.ts';
import { type Hole, holeOf, holes_max } from './holes.ts';
import { landUnnumbered, readLanded } from './landing.ts';
import { history_classes, type HistoryClass, type HistoryMessage } from './message.ts';
import { type Retention, storedRetention } from './retention.ts';
import { type KitRecord, readRecord, readSince, since_name, writeRecord } from './record.ts';
import { readBody } from './segment.ts';
import { limitLanded, trim } from './trim.ts';
import type { Message, Reception } from '../read-message.ts';
import { number, numberOrNull, text } from '../sql/columns.ts';
import { clause, isEach, listed, nothing, raw, sql, type Queries } from '../sql/database.ts';
import type { Change, Committed, StoreContext, Erasure, ErasureQuery } from '../stored/stored.ts';

/** Rows of a kit that landed; what is more is divided before anybody reads so far. */
const landed_rows_max = 20_000;
const landed_bytes_max = 32 * 1024 * 1024;
/** Segments that one page looks at in the order of arrival. */
const arrived_segments_max = 1_000;
const retention_name = 'history_retention';
/** Row of `service`: the replica that keeps the history in order, and until when by the clock of the server. */
const leader_name = 'history_leader';
const server_ms = raw('CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT)');

export interface SegmentQuery {
  readonly kit_id: string;
  readonly classes: readonly HistoryClass[];
  /** Segments with a message in [from_ms, to_ms). */
  readonly from_ms: number;
  readonly to_ms: number;
  /** `asc` by the first message, `desc` by the last. */
  readonly order: 'asc' | 'desc';
  /** The segment after this one, in this order. */
  readonly after?: { readonly ms: number; readonly id: string } | undefined;
  readonly limit: number;
}

const body = z.instanceof(Uint8Array);
const segmentRow = z.object({
  id: text,
  lo_ms: number,
  hi_ms: number,
  messages: number,
  /** Its times are no times of observation: left out of series and tracks. */
  misdated: number.transform((is) => is === 1),
  /** Days since 1970 of the observation; of the arrival when `misdated`. */
  day: number,
  body,
});
export type StoredSegment = Readonly<z.output<typeof segmentRow>>;

/** Where a segment is in the order of arrival: `arrived_lo_ms` is of its first message. */
const arrivedRow = z.object({ id: text, arrived_lo_ms: number });

/** What a commit brought. */
const landedRow = z.object({ landed_ms: number, arrived_ms: number, body });
export type StoredLanded = Readonly<z.output<typeof landedRow>>;

/** What has landed after a place in the order of arrival. */
export interface Arrivals {
  readonly landed: readonly StoredLanded[];
  /** Everything up to here is in `landed` or in segments: no commit can come before it any more. */
  readonly to_ms: number;
  /** More has landed. */
  readonly isCut: boolean;
}

export interface ArrivedSegments {
  readonly segments: readonly Readonly<z.output<typeof arrivedRow>>[];
  /** Segments that begin behind it are not listed; undefined: all are. */
  readonly cut_ms: number | undefined;
}

/** How much the history has of a kit. */
const sizeRow = z.object({
  kit_id: text,
  messages: number,
  /** Of its segments; what has not been divided yet is not counted. */
  bytes: number,
  /** Observation of the oldest and the newest message, milliseconds since 1970; null: none is divided yet. */
  lo_ms: numberOrNull,
  hi_ms: numberOrNull,
});
export type KitSize = Readonly<z.output<typeof sizeRow>>;

/** The figures cover the day up to `to_ms`. */
const dayRow = z.object({ day: number, to_ms: number, body });

export interface DayQuery {
  readonly kit_id: string;
  readonly channel: string;
  readonly from_day: number;
  /** Included. */
  readonly to_day: number;
}

/** Every method may reject with `StorageUnavailable`. */
export type HistoryStore = ReturnType<typeof historyReads> &
  ReturnType<typeof arrivalReads> &
  ReturnType<typeof historyUpkeep>;

/** What is read in the order of arrival. */
export function arrivalReads({ database }: StoreContext) {
  return {
    /**
     * What has landed at this place in the order of arrival, and behind it. The end is read first, and read before the segments: a number
     * is given with the row of the kit locked, so that no commit can come before one that is seen.
     */
    async historyArrivals(kit_id: string, from_ms: number): Promise<Arrivals> {
      const [kit] = await sql(database)`SELECT arrived_ms FROM kits WHERE kit_id = ${kit_id}`;
      const sizes = await sql(database)`SELECT arrived_ms, LENGTH(body) AS bytes
        FROM history_in WHERE kit_id = ${kit_id} AND arrived_ms >= ${from_ms}
        ORDER BY arrived_ms LIMIT ${landed_rows_max}`;
      let bytes = 0;
      const beyond = sizes.find((row, index) => {
        bytes += Number(row['bytes']);
        return bytes > landed_bytes_max && row['arrived_ms'] !== sizes[0]?.['arrived_ms'] && index > 0;
      });
      const cut = beyond ?? (sizes.length === landed_rows_max ? sizes.at(-1) : undefined);
      const end_ms = Number(kit?.['arrived_ms'] ?? 0);
      const to_ms = cut ? Math.min(end_ms, Number(cut['arrived_ms']) - 1) : end_ms;
      const rows = await sql(database)`SELECT landed_ms, arrived_ms, body
        FROM history_in WHERE kit_id = ${kit_id} AND arrived_ms BETWEEN ${from_ms} AND ${to_ms}`;
      return { landed: z.array(landedRow).parse(rows), to_ms, isCut: to_ms < end_ms };
    },

    /**
     * Segments with messages at this place in the order of arrival, or behind it: those whose first message arrived first. One statement:
     * of a list in parts, a segment that is joined with one of an earlier part would be missed.
     */
    async historyArrivedSegments(
      kit_id: string,
      classes: readonly HistoryClass[],
      from_ms: number,
    ): Promise<ArrivedSegments> {
      const rows = await sql(database)`WITH found AS (SELECT id, arrived_lo_ms FROM history
          WHERE kit_id = ${kit_id} AND class IN (${listed(classes)}) AND arrived_hi_ms >= ${from_ms}),
        cut AS (SELECT arrived_lo_ms AS cut_ms FROM found ORDER BY arrived_lo_ms
          LIMIT 1 OFFSET ${arrived_segments_max})
        SELECT id, arrived_lo_ms, (SELECT cut_ms FROM cut) AS cut_ms FROM found
        WHERE arrived_lo_ms <= ${from_ms}
          OR arrived_lo_ms <= COALESCE((SELECT cut_ms FROM cut), arrived_lo_ms) ORDER BY arrived_lo_ms, id`;
      const cut_ms = rows[0]?.['cut_ms'] ?? undefined;
      return {
        segments: z.array(arrivedRow).parse(rows),
        cut_ms: cut_ms === undefined ? undefined : Math.max(Number(cut_ms), from_ms),
      };
    },

    historySegment: async (kit_id: string, id: string) => readBody(database, kit_id, id),
  };
}

/** What is read for answers. */
export function historyReads({ database }: StoreContext) {
  return {
    /** Segments that may hold an answer, in order. */
    async historySegments(asked: SegmentQuery): Promise<readonly StoredSegment[]> {
      const { kit_id, classes, from_ms, to_ms, order, after, limit } = asked;
      const edge = raw(order === 'asc' ? 'lo_ms' : 'hi_ms');
      const [compare, direction] = order === 'asc' ? [raw('>'), raw('ASC')] : [raw('<'), raw('DESC')];
      const behind = after ? clause`AND (${edge}, id) ${compare} (${after.ms}, ${after.id})` : nothing;
      const rows = await sql(database)`SELECT id, lo_ms, hi_ms, messages, misdated, day, body FROM history
        WHERE kit_id = ${kit_id} AND class IN (${listed(classes)}) AND lo_ms < ${to_ms} AND hi_ms >= ${from_ms}
          ${behind} ORDER BY ${edge} ${direction}, id ${direction} LIMIT ${limit}`;
      return z.array(segmentRow).parse(rows);
    },

    /** Bodies that are not divided yet. Read them before the segments: then nothing is missed, and some may be in both. */
    historyLanded: async (kit_id: string) => {
      const most = { rows: landed_rows_max, bytes: landed_bytes_max };
      return z.array(landedRow).parse(await readLanded(database, kit_id, most));
    },

    /** What is erased: what has landed since still holds it until it is divided. */
    historyErased: async (kit_id: string) => readTombstones(database, kit_id),

    /** Whether the kit has, or had, this asset; of one that was removed here, only messages may be left. */
    async historyKnows(kit_id: string, asset_id: string): Promise<boolean> {
      const known = ['assets', 'partner_sync', 'feeds', 'tasks'].map(
        (table) => clause`SELECT 1 AS here FROM ${raw(table)} WHERE ${isEach({ kit_id, asset_id })}`,
      );
      const rows = await sql(database)`SELECT here FROM (${listed(known, ' UNION ALL ')}) AS known LIMIT 1`;
      return rows.length > 0;
    },

    historyErasures: async (query: ErasureQuery) => readErasures(database, query),

    /** Figures of a feed that are up to date. */
    async historyDays({ kit_id, channel, from_day, to_day }: DayQuery) {
      const rows = await sql(database)`SELECT history_days.day, history_days.body,
          CASE WHEN changed = 1 AND lo_ms < to_ms THEN lo_ms ELSE to_ms END AS to_ms
        FROM history_days
        LEFT JOIN history_changed ON history_changed.kit_id = history_days.kit_id
          AND history_changed.day = history_days.day
        WHERE history_days.kit_id = ${kit_id} AND channel = ${channel}
          AND history_days.day BETWEEN ${from_day} AND ${to_day} ORDER BY history_days.day`;
      return z.array(dayRow).parse(rows);
    },

    /** By epoch, newest first: one more than `holes_max` where there are more. */
    async historyHoles(kit_id: string): Promise<readonly Hole[]> {
      const rows = await sql(database)`SELECT epoch, lo, hi, lane, reason, messages, reported_ms
        FROM history_holes
        WHERE kit_id = ${kit_id} ORDER BY epoch DESC, lo LIMIT ${holes_max + 1}`;
      return rows.map(holeOf);
    },

    /** Since when the history of this kit is kept, milliseconds since 1970; undefined: it is not. */
    historySince: async (kit_id: string) => readSince(database, kit_id),

    /** When the oldest message that is left of each class was observed; classes without any are left out. */
    async historyOldest(kit_id: string): Promise<Partial<Readonly<Record<HistoryClass, number>>>> {
      const oldest: Partial<Record<HistoryClass, number>> = {};
      for (const each of history_classes) {
        const [row] = await sql(database)`SELECT lo_ms FROM history WHERE kit_id = ${kit_id}
          AND class = ${each} AND misdated = 0 ORDER BY lo_ms LIMIT 1`;
        if (row) oldest[each] = Number(row['lo_ms']);
      }
      return oldest;
    },

    /** Of every kit with history, by id. */
    async historySizes(): Promise<readonly KitSize[]> {
      const rows = await sql(database)`SELECT kits.kit_id, lo_ms, hi_ms, COALESCE(bytes, 0) AS bytes,
          kits.landed + COALESCE(messages, 0) AS messages
        FROM kits LEFT JOIN (SELECT kit_id, SUM(messages) AS messages, SUM(bytes) AS bytes, MIN(lo_ms) AS lo_ms,
          MAX(hi_ms) AS hi_ms FROM history GROUP BY kit_id) AS divided ON divided.kit_id = kits.kit_id
        WHERE kits.landed > 0 OR messages > 0 ORDER BY kits.kit_id`;
      return z.array(sizeRow).parse(rows);
    },
  };
}

interface UpkeepContext extends StoreContext {
  /** Stores receptions in the transaction of `queries`. */
  readonly commit: (
    queries: Queries,
    receptions: readonly Reception[],
    about: { readonly now_ms: number; readonly keepsHistory: boolean },
  ) => Promise<Committed>;
  readonly eraseMessages: EraseMessages;
}

/** What keeps the history in order, and moves it to other services. */
export function historyUpkeep({ database, announce, replica_id, commit, eraseMessages }: UpkeepContext) {
  return {
    historyRecord: async (kit_id: string) => readRecord(database, kit_id),

    /** What a client has set; undefined: the configuration counts. */
    async historyRetention(): Promise<Retention | undefined> {
      const [row] = await sql(database)`SELECT value FROM service WHERE name = ${retention_name}`;
      return row && storedRetention.parse(JSON.parse(String(row['value'])));
    },

    /** Stores messages of an export as if they had arrived at that time; known messages change nothing. No webhook is called. */
    async importMessages(
      kit_id: string,
      messages: readonly HistoryMessage[],
      arrived_ms: number,
    ): Promise<void> {
      await database.transaction(async (queries) => {
        const { changes } = await importMessages(queries, { kit_id, messages, arrived_ms, commit });
        await announce(queries, changes);
      });
    },

    /** Notes since when history is kept, unless it is noted: what came before was acknowledged and not kept. */
    async beginHistory(now_ms: number): Promise<void> {
      await sql(database)`INSERT INTO service (name, value) VALUES (${since_name}, ${String(now_ms)})
        ON CONFLICT (name) DO NOTHING`;
    },

    /** Adds the record of an export, after its messages. */
    async importRecord(kit_id: string, record: KitRecord, now_ms: number): Promise<void> {
      await writeRecord(database, kit_id, record, now_ms);
    },

    /** Divides some of what has landed. Returns how many messages; 0: nothing waits for it. */
    async compactHistory(now_ms: number, all = false): Promise<number> {
      const kit_id = await waitingKit(database, now_ms, all);
      if (kit_id === undefined) return 0;
      const tombstones = await readTombstones(database, kit_id);
      return compactKit(database, kit_id, { now_ms, tombstones });
    },

    /** Makes the figures of one day of one kit. False: no day waits for it. */
    rollUpHistory: async (now_ms: number) => rollUpDay(database, now_ms),

    /** Deletes some of what is older than it is kept. Returns how many segments and days; 0: nothing is. */
    trimHistory: async (retention: Retention, now_ms: number) => trim(database, retention, now_ms),

    /** Deletes what landed first, beyond so many messages. Returns how many: only where landed messages wait in memory. */
    async limitLanded(messages_max: number): Promise<number> {
      return database.transaction(async (queries) => limitLanded(queries, messages_max));
    },

    async setHistoryRetention(retention: Retention): Promise<void> {
      await sql(database)`INSERT INTO service (name, value) VALUES (${retention_name},
        ${JSON.stringify(retention)}) ON CONFLICT (name) DO UPDATE SET value = excluded.value`;
    },

    /** Cuts bounds of erasures that lie ahead of these, and returns them. */
    mendErasures: async () => mendErasures(database),

    /**
     * Erases, and keeps what comes later of the time before the bound out of the history; a bound ahead of now counts as now. Resolves
     * with what changed when nothing of it is left in the tables.
     */
    async eraseHistory(erasure: Erasure, now_ms: number): Promise<readonly Change[]> {
      return erase(database, erasure, { now_ms, eraseMessages });
    },

    /**
     * Whether this process keeps the history in order for so long: of several replicas, one does. The lease is free when it has run out, or
     * lasts longer than any does: the clock of the server was set back.
     */
    async leadHistory(lease_ms: number): Promise<boolean> {
      // A database without replicas has one process.
      if (replica_id === undefined) return true;
      const until_ms = raw(`CAST(split_part(service.value, ' ', 2) AS BIGINT)`);
      const rows = await sql(database)`INSERT INTO service (name, value) VALUES (${leader_name},
          CAST(${replica_id} AS TEXT) || ' ' || CAST(${server_ms} + CAST(${lease_ms} AS BIGINT) AS TEXT))
        ON CONFLICT (name) DO UPDATE SET value = excluded.value
          WHERE split_part(service.value, ' ', 1) = CAST(${replica_id} AS TEXT)
            OR ${until_ms} NOT BETWEEN ${server_ms} AND ${server_ms} + CAST(${lease_ms} AS BIGINT)
        RETURNING name`;
      return rows.length > 0;
    },
  };
}

interface Portion {
  readonly kit_id: string;
  readonly messages: readonly HistoryMessage[];
  /** Milliseconds since 1970. */
  readonly arrived_ms: number;
  readonly commit: UpkeepContext['commit'];
}

/** Stores messages of an export as a commit does, at the time of their arrival: values, numbers and history become what they were. */
async function importMessages(
  queries: Queries,
  { kit_id, messages, arrived_ms, commit }: Portion,
): Promise<Committed> {
  const read = messages.flatMap(messageOf);
  const numbered = read.filter(isNumbered);
  const reception = {
    kit_id,
    messages: numbered,
    cleared: [],
    retained: true,
    historical: true,
    imported: true,
    faults: [],
  };
  const committed = await commit(queries, [reception], { now_ms: arrived_ms, keepsHistory: true });
  // Presence and pushed fixes have no numbers of the sequence: the compactor finds out which of them are known.
  const others = read.filter((message) => !isNumbered(message));
  if (others.length > 0) await landUnnumbered(queries, { kit_id, messages: others, batches: [] }, arrived_ms);
  return committed;
}

/** None for a channel of a later version, which this one would not have stored either. */
function messageOf({ channel, epoch, seq, time_ms, unsynced, data }: HistoryMessage): readonly Message[] {
  const known = readChannel(channel);
  if (!known || known.kind === 'batch') return [];
  return [{ channel: known, epoch, seq, time_ms, unsynced, data: json.parse(JSON.parse(data)) }];
}

function isNumbered({ channel, epoch }: Message): boolean {
  return epoch > 0 && channel.kind !== 'state';
}
