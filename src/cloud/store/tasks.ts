/** Tasks in the tables: what clients dispatch, what kits report of it, and what a kit has not begun in time. */
import { type TaskReport, taskReport } from '../../contract/tasks.ts';
import { readLenient } from '../lenient.ts';
import { taskOf } from '../stored/plain-rows.ts';
import { allOf, assigned, type Clause, clause, sql, type Queries } from '../sql/database.ts';
import { insertRows } from '../sql/many-rows.ts';
import type { StoreContext, StoredTask, TaskOrder, TaskQuery, Arrival, Applied } from '../stored/stored.ts';
import { texts } from '../texts.ts';
import { enqueue } from '../webhooks/enqueue.ts';
import { endOf } from '../webhooks/events.ts';

/** Characters of the tasks of one answer: a kit may report 256 kB with each. */
const tasks_chars_max = 2 * 1024 * 1024;
/** A task without a report by its due time. A later report still counts. */
const no_answer = 'the kit did not answer before the deadline of the command; outcome unknown';
/** Tasks that one call fails; the next call follows within a second. */
const silent_at_once = 500;

export function taskStore({ database, announce }: StoreContext) {
  const announced = async (task: StoredTask): Promise<StoredTask> => {
    await announce(database, [{ kind: 'task', kit_id: task.kit_id, task }]);
    return task;
  };
  return {
    async addTask(order: TaskOrder): Promise<StoredTask> {
      const { kit_id, task_id, asset_id, command_name, payload, created_ms, due_ms } = order;
      const [row] = await sql(database)`INSERT INTO tasks (kit_id, task_id, asset_id, command_name, payload,
          status, revision, result, requested_by, requested_by_name, created_ms, updated_ms, due_ms)
        VALUES (${kit_id}, ${task_id}, ${asset_id}, ${command_name}, ${JSON.stringify(payload)}, 'pending', 0,
          '{}', ${order.requested_by}, ${order.requested_by_name}, ${created_ms}, ${created_ms}, ${due_ms})
        RETURNING *`;
      await sql(database)`DELETE FROM tasks WHERE kit_id = ${kit_id}
        AND status IN ('completed', 'failed') AND task_id NOT IN
        (SELECT task_id FROM tasks WHERE kit_id = ${kit_id} ORDER BY created_ms DESC LIMIT ${tasks_max})`;
      return announced(taskOf(row ?? {}));
    },

    async task(kit_id: string, task_id: string): Promise<StoredTask | undefined> {
      const [row] = await sql(database)`SELECT * FROM tasks
        WHERE kit_id = ${kit_id} AND task_id = ${task_id}`;
      return row && taskOf(row);
    },

    /** The newest first; fewer than the limit, and at least one, where they are large. */
    async tasks(
      kit_id: string,
      { asset_id, status, after, limit }: TaskQuery,
    ): Promise<readonly StoredTask[]> {
      const wanted = allOf([
        clause`kit_id = ${kit_id}`,
        asset_id !== undefined && clause`asset_id = ${asset_id}`,
        status && clause`status = ${status}`,
        after &&
          clause`created_ms < ${after.created_ms} OR (created_ms = ${after.created_ms} AND task_id > ${after.task_id})`,
      ]);
      const rows = await sql(database)`WITH wanted AS (
          SELECT * FROM tasks WHERE ${wanted} ORDER BY created_ms DESC, task_id LIMIT ${limit}),
        sized AS (
          SELECT wanted.*, ROW_NUMBER() OVER by_age AS place,
            SUM(LENGTH(payload) + LENGTH(result) + LENGTH(COALESCE(progress, ''))) OVER by_age AS chars
          FROM wanted WINDOW by_age AS (ORDER BY created_ms DESC, task_id))
        SELECT * FROM sized WHERE place = 1 OR chars <= ${tasks_chars_max} ORDER BY created_ms DESC, task_id`;
      return rows.map(taskOf);
    },

    /** Fails a task that could not be dispatched, unless the kit has reported it meanwhile. */
    async failTask(
      kit_id: string,
      task_id: string,
      reason: string,
      now_ms: number,
    ): Promise<StoredTask | undefined> {
      const ids = clause`kit_id = ${kit_id} AND task_id = ${task_id}`;
      const [task] = await database.transaction(async (queries) => failTasks(queries, ids, reason, now_ms));
      return task && announced(task);
    },

    /** Fails tasks that are due and without a report. */
    async failSilent(now_ms: number): Promise<readonly StoredTask[]> {
      const isSilent = clause`status = 'pending' AND revision = 0 AND due_ms < ${now_ms}`;
      const some = await sql(database)`SELECT 1 AS here FROM tasks WHERE ${isSilent} LIMIT 1`;
      if (some.length === 0) return [];
      const those = clause`${isSilent} AND (kit_id, task_id) IN (SELECT kit_id, task_id FROM tasks
        WHERE ${isSilent} ORDER BY kit_id, task_id LIMIT ${silent_at_once})`;
      const failed = await database.transaction(async (queries) =>
        failTasks(queries, those, no_answer, now_ms),
      );
      for (const task of failed) await announced(task);
      return failed;
    },
  };
}

/** Fails those that are pending. In a transaction. */
async function failTasks(
  queries: Queries,
  those: Clause,
  reason: string,
  now_ms: number,
): Promise<readonly StoredTask[]> {
  const rows = await sql(queries)`UPDATE tasks SET status = 'failed',
      result = ${JSON.stringify({ error: reason })}, updated_ms = ${now_ms}
    WHERE status = 'pending' AND ${those} RETURNING *`;
  const failed = rows.map(taskOf);
  await enqueue(queries, failed.flatMap(endOf), now_ms);
  return failed;
}

/** In the table: the report has not told it, as reports before contract 1.2. */
const untold = '';

/** Tasks of one kit that are kept; the oldest final ones make room. */
const tasks_max = 10_000;

/**
 * Stores a task report of a kit: the highest revision counts, and a final status stays. Revision 0 belongs to the service:
 * a later report of the kit replaces a failure for lack of an answer.
 */
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
  const reported = {
    status,
    revision,
    result: JSON.stringify(result),
    progress: progress ? JSON.stringify(progress) : null,
    updated_ms: Math.min(message.time_ms, now_ms),
  };
  const { payload } = dispatched;
  const [changed] = await sql(queries)`UPDATE tasks SET ${assigned(reported)},
      payload = CASE WHEN payload = '' THEN ${payload} ELSE payload END
    WHERE kit_id = ${kit_id} AND task_id = ${task_id}
      AND revision < ${revision} AND (revision = 0 OR status NOT IN ('completed', 'failed')) RETURNING *`;
  if (changed) return [{ kind: 'task', kit_id, task: taskOf(changed) }];
  // A dispatch that the kit could not read names no asset; a task of the kit's own service or technician is new to this one.
  if (asset_id === null || command_name === null) return [];
  const created_ms = Math.min(dispatched.created_ms, now_ms);
  const task = { kit_id, task_id, asset_id, command_name, ...reported, ...dispatched, created_ms };
  const clauses = 'ON CONFLICT (kit_id, task_id) DO NOTHING RETURNING *';
  const [added] = await insertRows(queries, 'tasks', [task], clauses);
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
