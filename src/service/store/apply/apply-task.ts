/**
 * Stores a task report of a kit: the highest revision counts, and a final status stays. Revision 0 belongs to the service:
 * a later report of the kit replaces a failure for lack of an answer.
 */
import { type TaskReport, taskReport } from '../../../contract/tasks.ts';
import { texts } from '../../texts.ts';
import { readLenient } from '../../ingest/lenient.ts';
import type { Applied, Arrival } from './apply.ts';
import type { Queries } from '../sql/database.ts';
import { taskOf } from '../rows.ts';

/** In the table: the report has not told it, as reports before contract 1.2. */
const untold = '';

/** Tasks of one kit that are kept; the oldest final ones make room. */
export const tasks_max = 10_000;

/** The task still takes a report of this revision. */
const is_open = `revision < ? AND (revision = 0 OR status NOT IN ('completed', 'failed'))`;

export async function applyTask(
  queries: Queries,
  { kit_id, message, now_ms }: Arrival,
  task_id: string,
): Promise<Applied> {
  const read = readLenient(taskReport, message.data);
  if ('fault' in read) return read;
  const { asset_id, command_name, status, revision, result, progress } = read.data;
  if (read.data.task_id !== task_id) return { fault: texts.other_id('task_id', read.data.task_id) };
  const dispatched = dispatchOf(read.data, message.time_ms);
  const values = [
    status,
    revision,
    JSON.stringify(result),
    progress ? JSON.stringify(progress) : null,
    Math.min(message.time_ms, now_ms),
  ] as const;
  const [changed] = await queries.all(
    `UPDATE tasks SET status = ?, revision = ?, result = ?, progress = ?, updated_ms = ?,
       payload = CASE WHEN payload = '' THEN ? ELSE payload END
     WHERE kit_id = ? AND task_id = ? AND ${is_open} RETURNING *`,
    ...values,
    dispatched.payload,
    kit_id,
    task_id,
    revision,
  );
  if (changed) return [{ kind: 'task', kit_id, task: taskOf(changed) }];
  // A dispatch that the kit could not read names no asset; a task of the kit's own service or technician is new to this one.
  if (asset_id === null || command_name === null) return [];
  const [added] = await queries.all(
    `INSERT INTO tasks (status, revision, result, progress, updated_ms, kit_id, task_id, asset_id, command_name, payload,
       requested_by, requested_by_name, created_ms)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (kit_id, task_id) DO NOTHING RETURNING *`,
    ...values,
    kit_id,
    task_id,
    asset_id,
    command_name,
    dispatched.payload,
    dispatched.requested_by,
    dispatched.requested_by_name,
    Math.min(dispatched.created_ms, now_ms),
  );
  return added ? [{ kind: 'task', kit_id, task: taskOf(added) }] : [];
}

/** Fields of the report about the dispatch, as columns. */
function dispatchOf({ payload, origin, created_at }: TaskReport, time_ms: number) {
  return {
    payload: payload ? JSON.stringify(payload) : untold,
    requested_by: origin?.requested_by ?? untold,
    requested_by_name: origin?.user ?? null,
    created_ms: created_at === undefined ? time_ms : Date.parse(created_at),
  };
}
