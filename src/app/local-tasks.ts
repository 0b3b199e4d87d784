/** Tasks that are dispatched on the gateway itself, and the tasks of the journal as the technician sees them. */
import { randomUUID } from 'node:crypto';
import { jsonObject } from '../contract/json.ts';
import { taskDispatch } from '../contract/tasks.ts';
import type { LocalApi, TaskView } from '../local/api.ts';
import type { Journal } from '../outbox/api.ts';
import type { JournalEntry } from '../outbox/protocol.ts';
import type { Clock } from '../platform/clock.ts';
import { CommandRefused } from '../errors.ts';
import type { TaskRunner } from '../tasks/runner.ts';

/** Tasks that a list shows. */
const recent_max = 20;

/** The same way in as for the cloud's dispatches: a local task is journaled, checked and reported like any other. */
export function localTasks(runner: Pick<TaskRunner, 'receive'>, journal: Pick<Journal, 'find' | 'list'>, clock: Clock) {
  const find: LocalApi['task'] = async (id) => {
    const entry = await journal.find(id);
    return entry && taskView(entry);
  };
  const recent: LocalApi['tasks'] = async () => (await journal.list(recent_max)).map(taskView);
  const dispatch: LocalApi['dispatch'] = async ({ asset_id, command, payload, deadline_s }) => {
    const task_id = randomUUID();
    const { time_ms } = clock.stamp();
    const deadline = deadline_s === undefined ? null : new Date(time_ms + deadline_s * 1000).toISOString();
    const created_at = new Date(time_ms).toISOString();
    const raw = JSON.stringify({ task_id, asset_id, command_name: command, payload, created_at, deadline });
    await runner.receive(raw, { task_id_in_topic: task_id, retained: false, duplicate: false });
    const task = await find(task_id);
    if (!task) throw new CommandRefused('the kit cannot record tasks now: the disk does not take them; nothing was done');
    return task;
  };
  return { find, recent, dispatch };
}

function taskView(entry: JournalEntry): TaskView {
  const dispatch = taskDispatch.safeParse(JSON.parse(entry.dispatch)).data;
  const created_ms = entry.received_ms;
  return {
    id: entry.task_id,
    asset_id: dispatch?.asset_id ?? '',
    command_name: dispatch?.command_name ?? '',
    payload: jsonObject.catch({}).parse(dispatch?.payload),
    status: entry.state,
    result: jsonObject.catch({}).parse(JSON.parse(entry.result || '{}')),
    created_at: dispatch?.created_at ?? new Date(created_ms).toISOString(),
    updated_at: new Date(entry.updated_ms).toISOString(),
  };
}
