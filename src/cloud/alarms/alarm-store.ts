/** Alarms on an SQL database: their rows, and what clients read and change of them. */
import { z } from 'zod';
import { jsonObject } from '../../contract/json.ts';
import { alarmSeverity } from '../severity.ts';
import { day_ms } from '../../platform/time.ts';
import type { AlarmState } from '../api/alarm-resources.ts';
import { sql, type Queries, type Row, type SqlValue } from '../sql/database.ts';
import { insertRows, places } from '../sql/many-rows.ts';
import type { Change, Erasure, StoreContext, StoredAlarm } from '../stored/stored.ts';

/** Closed alarms are kept for so long, and so many of a kit. */
const closed_kept_ms = 90 * day_ms;
const closed_max = 1_000;

const columns = [
  'kit_id',
  'alarm_id',
  'what',
  'thing',
  'subject',
  'severity',
  'assets',
  'value',
  'message',
  'since_ms',
  'last_ms',
  'count',
  'closed_ms',
  'ends_ms',
  'acknowledged_by',
  'acknowledged_ms',
  'muted_until_ms',
  'unheard',
  'notified',
  'note',
  'files',
  'revision',
  'changed_ms',
] as const satisfies readonly (keyof StoredAlarm)[];
const own_columns = columns.slice(2);

export async function writeAlarms(queries: Queries, alarms: readonly StoredAlarm[]): Promise<void> {
  const rows = alarms.map((alarm) => Object.fromEntries(columns.map((name) => [name, valueOf(alarm[name])])));
  const replaced = own_columns.map((name) => `${name} = excluded.${name}`).join(', ');
  await insertRows(queries, 'alarms', rows, `ON CONFLICT (kit_id, alarm_id) DO UPDATE SET ${replaced}`);
}

export function changeOf(alarm: StoredAlarm): Change {
  return { kind: 'alarm', kit_id: alarm.kit_id, alarm };
}

function valueOf(value: StoredAlarm[keyof StoredAlarm]): SqlValue {
  return typeof value === 'object' && value !== null ? JSON.stringify(value) : value;
}

const jsonText = z.string().transform((text): unknown => JSON.parse(text));
const number = z.coerce.number();
const numberOrNull = z.union([z.null(), number]);
const alarmRow = z.object({
  kit_id: z.string(),
  alarm_id: z.string(),
  what: z.string(),
  thing: z.string(),
  subject: z.string().nullable(),
  severity: alarmSeverity,
  assets: jsonText.pipe(z.array(z.string())),
  value: numberOrNull,
  message: jsonText.pipe(jsonObject).nullable(),
  since_ms: number,
  last_ms: number,
  count: number,
  closed_ms: numberOrNull,
  ends_ms: numberOrNull,
  acknowledged_by: z.string().nullable(),
  acknowledged_ms: numberOrNull,
  muted_until_ms: numberOrNull,
  unheard: z.enum(['opened', 'raised']).nullable(),
  notified: alarmSeverity.nullable(),
  note: z.string().nullable(),
  files: jsonText.pipe(z.array(z.string())),
  revision: number,
  changed_ms: number,
});

export function alarmOf(row: Row): StoredAlarm {
  return alarmRow.parse(row);
}

export interface AlarmQuery {
  /** `*`: all. */
  readonly kits: readonly string[] | '*';
  readonly states: readonly AlarmState[];
  readonly severities?: readonly string[] | undefined;
  readonly what?: readonly string[] | undefined;
  readonly assets?: readonly string[] | undefined;
  /** In the order of the list, the newest first: those that follow. */
  readonly after?: { readonly since_ms: number; readonly alarm_id: string } | undefined;
  readonly changed_after_ms?: number;
  readonly limit: number;
  readonly now_ms: number;
}

/** What a client changes; undefined: stays. */
export interface AlarmEdit {
  readonly acknowledged?: { readonly by: string; readonly at_ms: number } | null | undefined;
  readonly muted_until_ms?: number | null | undefined;
  readonly note?: string | null | undefined;
}

interface Clause {
  readonly sql: string;
  readonly values: readonly SqlValue[];
}

const state_sql: Readonly<Record<AlarmState, string>> = {
  open: '(closed_ms IS NULL AND COALESCE(muted_until_ms, 0) <= CAST(? AS BIGINT) AND acknowledged_ms IS NULL)',
  acknowledged:
    '(closed_ms IS NULL AND COALESCE(muted_until_ms, 0) <= CAST(? AS BIGINT) AND acknowledged_ms IS NOT NULL)',
  muted: '(closed_ms IS NULL AND muted_until_ms > ?)',
  closed: '(closed_ms IS NOT NULL AND CAST(? AS BIGINT) > 0)',
};

/** Every method may reject with `StorageUnavailable`. */
export type AlarmStore = Pick<ReturnType<typeof alarmStore>, 'alarms' | 'alarm' | 'changeAlarm'>;

export function alarmStore({ database, announce }: StoreContext) {
  const alarm = async (queries: Queries, kit_id: string, alarm_id: string) => {
    const [row] = await sql(queries)`SELECT * FROM alarms
      WHERE kit_id = ${kit_id} AND alarm_id = ${alarm_id}`;
    return row && alarmOf(row);
  };
  return {
    /** Those that began last first. */
    async alarms(asked: AlarmQuery): Promise<readonly StoredAlarm[]> {
      const { kits, states, severities, what, assets = [], after, changed_after_ms, limit, now_ms } = asked;
      if (kits.length === 0) return [];
      const any = (column: string, values: readonly string[] | undefined): readonly Clause[] =>
        values ? [{ sql: `${column} IN (${places(values, '?')})`, values }] : [];
      const clauses: readonly Clause[] = [
        { sql: states.map((state) => state_sql[state]).join(' OR '), values: states.map(() => now_ms) },
        ...any('kit_id', kits === '*' ? undefined : kits),
        ...any('severity', severities),
        ...any('what', what),
        ...(assets.length === 0
          ? []
          : [{ sql: assets.map(() => 'assets LIKE ?').join(' OR '), values: assets.map((id) => `%${id}%`) }]),
        ...(after
          ? [{ sql: '(since_ms, alarm_id) < (?, ?)', values: [after.since_ms, after.alarm_id] }]
          : []),
        ...(changed_after_ms === undefined ? [] : [{ sql: 'changed_ms > ?', values: [changed_after_ms] }]),
      ];
      const rows = await database.all(
        `SELECT * FROM alarms WHERE ${clauses.map(({ sql }) => `(${sql})`).join(' AND ')} ORDER BY since_ms DESC, alarm_id DESC LIMIT ?`,
        ...clauses.flatMap(({ values }) => values),
        limit,
      );
      return rows.map(alarmOf);
    },

    alarm: async (kit_id: string, alarm_id: string) => alarm(database, kit_id, alarm_id),

    /** `revision`: that which the client has seen; undefined: any. Undefined: there is no such alarm. */
    async changeAlarm(
      kit_id: string,
      alarm_id: string,
      { edit, revision }: { readonly edit: AlarmEdit; readonly revision: number | undefined },
    ): Promise<StoredAlarm | 'changed' | undefined> {
      return database.transaction(async (queries) => {
        // Commits follow the alarms of a kit with its row locked.
        await queries.all('UPDATE kits SET kit_id = kit_id WHERE kit_id = ?', kit_id);
        const known = await alarm(queries, kit_id, alarm_id);
        if (!known) return undefined;
        if (revision !== undefined && known.revision !== revision) return 'changed';
        const { acknowledged, muted_until_ms = known.muted_until_ms, note = known.note } = edit;
        const changed: StoredAlarm = {
          ...known,
          muted_until_ms,
          note,
          ...(acknowledged !== undefined && {
            acknowledged_by: acknowledged?.by ?? null,
            acknowledged_ms: acknowledged?.at_ms ?? null,
          }),
          revision: known.revision + 1,
        };
        await writeAlarms(queries, [changed]);
        // The end of a mute is a change as well.
        if (muted_until_ms !== known.muted_until_ms)
          await queries.all('UPDATE kits SET look_ms = 0 WHERE kit_id = ?', kit_id);
        await announce(queries, [changeOf(changed)]);
        return changed;
      });
    },

    /** Deletes closed alarms that are older than they are kept, or more than a kit may have. */
    async trimAlarms(now_ms: number): Promise<void> {
      await database.all('DELETE FROM alarms WHERE closed_ms < ?', now_ms - closed_kept_ms);
      const full = await sql(database)`SELECT kit_id FROM alarms WHERE closed_ms IS NOT NULL
        GROUP BY kit_id HAVING COUNT(*) > ${closed_max}`;
      for (const { kit_id } of full) {
        await sql(database)`DELETE FROM alarms WHERE kit_id = ${String(kit_id)}
          AND alarm_id IN (SELECT alarm_id FROM alarms
          WHERE kit_id = ${String(kit_id)} AND closed_ms IS NOT NULL
            ORDER BY closed_ms DESC, alarm_id LIMIT 1000000 OFFSET ${closed_max})`;
      }
    },
  };
}

/** Deletes closed alarms of what is erased; open ones are the state of now. */
export async function eraseAlarms(queries: Queries, { kit_id, asset_id, before_ms }: Erasure): Promise<void> {
  await queries.all(
    `DELETE FROM alarms WHERE kit_id = ? AND last_ms < ? AND closed_ms IS NOT NULL ${asset_id === undefined ? '' : 'AND assets LIKE ?'}`,
    kit_id,
    before_ms,
    ...(asset_id === undefined ? [] : [`%${asset_id}%`]),
  );
}
