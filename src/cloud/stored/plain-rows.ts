/** Rows whose values are their columns. What stands in the tables was checked on its way in. */
import { z } from 'zod';
import { jsonObject } from '../../contract/json.ts';
import { taskStatus } from '../../contract/tasks.ts';
import { alarmSeverity } from '../severity.ts';
import { jsonText, number, numberOrNull, text, textOrNull, texts, textsOrAll } from '../sql/columns.ts';
import type { Row } from '../sql/database.ts';

/** Earlier versions wrote it, and an empty payload, for tasks that were made on the kit. */
const no_requester = '00000000-0000-0000-0000-000000000000';

const taskRow = z.object({
  kit_id: text,
  task_id: text,
  asset_id: text,
  command_name: text,
  /** Null, stored as an empty text: the kit has not told it. */
  payload: text
    .transform((written): unknown => (written === '' ? null : JSON.parse(written)))
    .pipe(jsonObject.nullable()),
  status: taskStatus,
  /** 0: no report yet. */
  revision: number,
  result: jsonText.pipe(jsonObject),
  progress: jsonText.pipe(z.object({ message: text, pct: z.number().nullable() })).nullable(),
  /** Null: not known, as of a technician on the gateway. */
  requested_by: text.transform((id) => (id === '' || id === no_requester ? null : id)),
  /** For people: label of the key, or user name; null: not known. */
  requested_by_name: textOrNull,
  created_ms: number,
  updated_ms: number,
});
export type StoredTask = Readonly<z.output<typeof taskRow>>;

export function taskOf(row: Row): StoredTask {
  return taskRow.parse(row);
}

export const feedRow = z.object({ feed: text, time_ms: number, data: jsonText.pipe(jsonObject) });
export type StoredFeed = Readonly<z.output<typeof feedRow>>;

export function feedOf(row: Row): StoredFeed {
  return feedRow.parse(row);
}

const keyRow = z.object({
  key_id: text,
  /** UUID recorded as `requested_by` on the actions of the key. */
  user_id: text,
  label: text,
  /** SHA-256 of the secret, hex. */
  hash: text,
  scopes: texts,
  /** Kits of the key; `*`: all. */
  kits: textsOrAll,
  created_ms: number,
  expires_ms: numberOrNull,
  /** When it was used last, to the minute; null: never, or before this was kept. */
  used_ms: numberOrNull,
  /** Of the secret before the last rotation, and until when that is valid, too. */
  old_hash: textOrNull,
  old_until_ms: numberOrNull,
});
export type ApiKey = Readonly<z.output<typeof keyRow>>;

export function keyOf(row: Row): ApiKey {
  return keyRow.parse(row);
}

const alarmRow = z.object({
  kit_id: text,
  alarm_id: text,
  what: text,
  /** Two alarms of one kit with the same `what` and `thing` are the same, as long as one is open or just was. */
  thing: text,
  subject: textOrNull,
  severity: alarmSeverity,
  /** The cause of the others first. */
  assets: texts,
  value: numberOrNull,
  message: jsonText.pipe(jsonObject).nullable(),
  /** Times of observation, never ahead of the clock of the service. */
  since_ms: number,
  last_ms: number,
  count: number,
  /** Null: it lasts. */
  closed_ms: numberOrNull,
  /** When it ends without a report, as one that nothing ends; null: never. */
  ends_ms: numberOrNull,
  acknowledged_by: textOrNull,
  acknowledged_ms: numberOrNull,
  muted_until_ms: numberOrNull,
  /** What webhooks were not told since it was muted; null: they know. */
  unheard: z.enum(['opened', 'raised']).nullable(),
  /** The gravest that webhooks were told since it opened: its end concerns them as much. Null: it is closed, or an earlier version opened it. */
  notified: alarmSeverity.nullable(),
  note: textOrNull,
  /** Ids of files that show it, the newest first. */
  files: texts,
  revision: number,
  /** By the clock of the service. */
  changed_ms: number,
});
/** An alarm of a kit: `alarms/`. */
export type StoredAlarm = Readonly<z.output<typeof alarmRow>>;
export const alarm_columns = alarmRow.keyof().options;

export function alarmOf(row: Row): StoredAlarm {
  return alarmRow.parse(row);
}
