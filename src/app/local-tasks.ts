/** Tasks that are dispatched on the gateway itself, and the tasks of the journal as the technician sees them. */
import { randomUUID } from 'node:crypto';
import { CommandRefused, notSent } from '../errors.ts';
import type { LocalApi } from '../local/api.ts';
import type { Clock } from '../platform/clock.ts';
import type { TaskRunner } from '../tasks/runner.ts';

/** Tasks that a list shows. */
const recent_max = 20;

/** The same way in as for the cloud's dispatches: a local task is journaled, checked and reported like any other. */
export function localTasks(runner: Pick<TaskRunner, 'receive' | 'find' | 'list'>, clock: Clock) {
  const recent: LocalApi['tasks'] = async () => runner.list(recent_max);
  const dispatch: LocalApi['dispatch'] = async ({ asset_id, command, payload, deadline_s }, user) => {
    const task_id = randomUUID();
    const { time_ms } = clock.stamp();
    const deadline = deadline_s === undefined ? null : new Date(time_ms + deadline_s * 1000).toISOString();
    const created_at = new Date(time_ms).toISOString();
    const raw = { task_id, asset_id, command_name: command, payload, created_at, deadline };
    const author = { via: 'local', user: user.name, uid: user.uid } as const;
    await runner.receive(raw, { task_id_in_topic: task_id, retained: false, duplicate: false, author });
    const task = await runner.find(task_id);
    if (!task) throw new CommandRefused(notSent('the task was not admitted'));
    return task;
  };
  return { recent, dispatch };
}
