/** Attaches files to the alarms that they show, whichever comes first: a still names the events that it was taken for. */
import { z } from 'zod';
import { fileReport } from '../../contract/files.ts';
import { jsonText, text, textOrNull } from '../sql/columns.ts';
import { anyOf, clause, listed, sql, type Queries } from '../sql/database.ts';
import { alarmOf } from '../stored/plain-rows.ts';
import type { Change, StoredAlarm } from '../stored/stored.ts';
import { writeAlarms } from './alarm-store.ts';

/** The newest files of one alarm. */
const files_max = 8;
/** What is looked at of one kit in one commit. */
const candidates_max = 100;
/** An event names the time of the device, its message that of the kit. */
const apart_ms = 5_000;

const shownFile = z.object({
  kit_id: text,
  file_id: text,
  asset_id: textOrNull,
  data: jsonText.pipe(fileReport.pick({ alarms: true }).strip()),
});
type ShownFile = z.output<typeof shownFile>;

interface ToAttach {
  /** Of the commit. */
  readonly changes: readonly Change[];
  /** Alarms of events that began in it. */
  readonly begun: readonly StoredAlarm[];
}

/** Runs inside the transaction that stored both. Returns the alarms that changed. */
export async function attachFiles(
  queries: Queries,
  { changes, begun }: ToAttach,
  now_ms: number,
): Promise<readonly StoredAlarm[]> {
  const files = await readFiles(queries, changes, begun);
  if (files.length === 0) return [];
  const alarms = new Map(begun.map((alarm) => [alarm.alarm_id, alarm]));
  for (const [kit_id, some] of Map.groupBy(files, (file) => file.kit_id))
    for (const alarm of await readAlarms(queries, kit_id, some)) alarms.set(alarm.alarm_id, alarm);
  const attached = [...alarms.values()].flatMap((alarm): StoredAlarm[] => {
    const its = files.filter((file) => !alarm.files.includes(file.file_id) && isShownBy(alarm, file));
    if (its.length === 0) return [];
    const all = [...its.map(({ file_id }) => file_id), ...alarm.files].slice(0, files_max);
    return [{ ...alarm, files: all, revision: alarm.revision + 1, changed_ms: now_ms }];
  });
  await writeAlarms(queries, attached);
  return attached;
}

/** Files of the commit, and those that came before the alarm that they show, as with replicas. The newest first. */
async function readFiles(
  queries: Queries,
  changes: readonly Change[],
  begun: readonly StoredAlarm[],
): Promise<readonly ShownFile[]> {
  const news = changes.filter((change) => change.kind === 'file').slice(0, candidates_max);
  const inKits = (some: readonly { readonly kit_id: string }[]) =>
    clause`kit_id IN (${listed([...new Set(some.map(({ kit_id }) => kit_id))])})`;
  const since_ms = Math.min(...begun.map(({ last_ms }) => last_ms)) - apart_ms;
  const clauses = [
    ...(news.length === 0
      ? []
      : [clause`${inKits(news)} AND file_id IN (${listed(news.map(({ file_id }) => file_id))})`]),
    ...(begun.length === 0 ? [] : [clause`${inKits(begun)} AND at_ms >= ${since_ms}`]),
  ];
  if (clauses.length === 0) return [];
  const rows = await sql(queries)`SELECT kit_id, file_id, asset_id, data FROM files
    WHERE state <> 'deleted' AND (${anyOf(clauses)}) ORDER BY at_ms DESC LIMIT ${candidates_max}`;
  return rows.map((row) => shownFile.parse(row)).filter(({ data }) => data.alarms !== undefined);
}

async function readAlarms(
  queries: Queries,
  kit_id: string,
  files: readonly ShownFile[],
): Promise<readonly StoredAlarm[]> {
  const shown = files.flatMap(({ data }) => data.alarms ?? []);
  const feeds = [...new Set(shown.map(({ feed }) => feed))];
  const times = shown.map(({ timestamp }) => Date.parse(timestamp));
  const rows = await sql(queries)`SELECT * FROM alarms WHERE kit_id = ${kit_id}
    AND what IN (${listed(feeds)}) AND since_ms <= ${Math.max(...times) + apart_ms}
    AND (closed_ms IS NULL OR closed_ms >= ${Math.min(...times) - apart_ms})
    ORDER BY since_ms DESC LIMIT ${candidates_max}`;
  return rows.map(alarmOf);
}

function isShownBy(
  { kit_id, what, assets, since_ms, closed_ms, message }: StoredAlarm,
  file: ShownFile,
): boolean {
  if (file.kit_id !== kit_id || file.asset_id === null || !assets.includes(file.asset_id)) return false;
  return (file.data.alarms ?? []).some(({ feed, timestamp }) => {
    const time_ms = Date.parse(timestamp);
    const isWithin = time_ms >= since_ms - apart_ms && time_ms <= (closed_ms ?? Infinity) + apart_ms;
    return feed === what && (isWithin || message?.['timestamp'] === timestamp);
  });
}
