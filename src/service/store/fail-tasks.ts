/** Fails tasks that their kit has not begun, and queues their ends for webhooks. */
import { enqueue } from '../webhooks/enqueue.ts';
import { endOf } from '../webhooks/events.ts';
import { taskOf } from './rows.ts';
import type { Queries } from './sql/database.ts';
import type { StoredTask } from './store.ts';

/** A task without a report by its due time. A later report still counts. */
const no_answer = 'the kit did not answer before the deadline of the command; outcome unknown';
/** Tasks that one call fails; the next call follows within a second. */
const silent_at_once = 500;

interface TaskId {
  readonly kit_id: string;
  readonly task_id: string;
}

/** In a transaction. `isSilent`: only while the kit has reported nothing of the task. */
async function failTask(
  queries: Queries,
  { kit_id, task_id }: TaskId,
  {
    reason,
    isSilent,
    now_ms,
  }: { readonly reason: string; readonly isSilent: boolean; readonly now_ms: number },
): Promise<readonly StoredTask[]> {
  const rows = await queries.all(
    `UPDATE tasks SET status = 'failed', result = ?, updated_ms = ?
     WHERE kit_id = ? AND task_id = ? AND status = 'pending' ${isSilent ? 'AND revision = 0' : ''} RETURNING *`,
    JSON.stringify({ error: reason }),
    now_ms,
    kit_id,
    task_id,
  );
  return rows.map(taskOf);
}

/** Fails a task that is pending. In a transaction. */
export async function failPending(
  queries: Queries,
  id: TaskId,
  reason: string,
  now_ms: number,
): Promise<StoredTask | undefined> {
  const failed = await failTask(queries, id, { reason, isSilent: false, now_ms });
  await enqueue(queries, failed.flatMap(endOf), now_ms);
  return failed[0];
}

/** The tasks of which no kit has reported anything by their due time. */
export async function readSilent(queries: Queries, now_ms: number): Promise<readonly TaskId[]> {
  const rows = await queries.all(
    `SELECT kit_id, task_id FROM tasks WHERE status = 'pending' AND revision = 0 AND due_ms < ?
     ORDER BY kit_id, task_id LIMIT ?`,
    now_ms,
    silent_at_once,
  );
  return rows.map((row) => ({ kit_id: String(row['kit_id']), task_id: String(row['task_id']) }));
}

/** Fails these, unless they have been reported meanwhile. In a transaction. */
export async function failSilent(
  queries: Queries,
  silent: readonly TaskId[],
  now_ms: number,
): Promise<readonly StoredTask[]> {
  const failed: StoredTask[] = [];
  for (const id of silent)
    failed.push(...(await failTask(queries, id, { reason: no_answer, isSilent: true, now_ms })));
  await enqueue(queries, failed.flatMap(endOf), now_ms);
  return failed;
}
