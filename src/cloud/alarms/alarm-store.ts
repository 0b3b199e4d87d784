/** Alarms on an SQL database: their rows, and what clients read and change of them. */
import { day_ms } from '../../platform/time.ts';
import type { AlarmState } from '../api/alarm-resources.ts';
import {
  allOf,
  anyOf,
  type Clause,
  clause,
  listed,
  nothing,
  raw,
  sql,
  type Queries,
  type SqlValue,
} from '../sql/database.ts';
import { insertRows } from '../sql/many-rows.ts';
import { alarm_columns, alarmOf } from '../stored/plain-rows.ts';
import type { Change, Erasure, StoreContext, StoredAlarm } from '../stored/stored.ts';

/** Closed alarms are kept for so long, and so many of a kit. */
const closed_kept_ms = 90 * day_ms;
const closed_max = 1_000;

export async function writeAlarms(queries: Queries, alarms: readonly StoredAlarm[]): Promise<void> {
  const rows = alarms.map((alarm) =>
    Object.fromEntries(alarm_columns.map((name) => [name, valueOf(alarm[name])])),
  );
  const own = alarm_columns.filter((name) => name !== 'kit_id' && name !== 'alarm_id');
  const replaced = own.map((name) => `${name} = excluded.${name}`).join(', ');
  await insertRows(queries, 'alarms', rows, `ON CONFLICT (kit_id, alarm_id) DO UPDATE SET ${replaced}`);
}

export function changeOf(alarm: StoredAlarm): Change {
  return { kind: 'alarm', kit_id: alarm.kit_id, alarm };
}

function valueOf(value: StoredAlarm[keyof StoredAlarm]): SqlValue {
  return typeof value === 'object' && value !== null ? JSON.stringify(value) : value;
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

function isIn(state: AlarmState, now_ms: number): Clause {
  if (state === 'closed') return clause`closed_ms IS NOT NULL`;
  if (state === 'muted') return clause`closed_ms IS NULL AND muted_until_ms > ${now_ms}`;
  const seen = raw(state === 'open' ? 'acknowledged_ms IS NULL' : 'acknowledged_ms IS NOT NULL');
  return clause`closed_ms IS NULL AND COALESCE(muted_until_ms, 0) <= CAST(${now_ms} AS BIGINT) AND ${seen}`;
}

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
      const clauses = [
        anyOf(states.map((state) => isIn(state, now_ms))),
        ...Object.entries({ kit_id: kits === '*' ? undefined : kits, severity: severities, what }).map(
          ([column, values]) => values && clause`${raw(column)} IN (${listed(values)})`,
        ),
        assets.length > 0 && anyOf(assets.map((id) => clause`assets LIKE ${`%${id}%`}`)),
        after && clause`(since_ms, alarm_id) < (${after.since_ms}, ${after.alarm_id})`,
        changed_after_ms !== undefined && clause`changed_ms > ${changed_after_ms}`,
      ];
      const rows = await sql(database)`SELECT * FROM alarms WHERE ${allOf(clauses)}
        ORDER BY since_ms DESC, alarm_id DESC LIMIT ${limit}`;
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
        await sql(queries)`UPDATE kits SET kit_id = kit_id WHERE kit_id = ${kit_id}`;
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
          await sql(queries)`UPDATE kits SET look_ms = 0 WHERE kit_id = ${kit_id}`;
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
  const of_asset = asset_id === undefined ? nothing : clause`AND assets LIKE ${`%${asset_id}%`}`;
  await sql(queries)`DELETE FROM alarms WHERE kit_id = ${kit_id} AND last_ms < ${before_ms}
    AND closed_ms IS NOT NULL ${of_asset}`;
}
