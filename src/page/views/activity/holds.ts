/** Joins the tasks of one hold of the PTZ pad to one row: a hold is many moves and a stop. */
import type { TaskResource } from '../../types.d.ts';

/** Moves farther apart belong to different holds. */
const apart_ms = 6_000;

/** @returns newest first; the newest task of each hold */
export function groupHolds(
  tasks: readonly TaskResource[],
): readonly { readonly task: TaskResource; readonly times: number }[] {
  const ordered = tasks.toSorted((a, b) => Date.parse(b.created_at) - Date.parse(a.created_at));
  const groups: { task: TaskResource; times: number; last_ms: number }[] = [];
  for (const task of ordered) {
    const time_ms = Date.parse(task.created_at);
    const hold =
      task.command_name === 'ptz_move'
        ? groups.find(
            (group) =>
              group.task.command_name === 'ptz_move' &&
              group.task.asset_id === task.asset_id &&
              group.last_ms - time_ms < apart_ms,
          )
        : undefined;
    if (hold) {
      hold.times += 1;
      hold.last_ms = time_ms;
    } else groups.push({ task, times: 1, last_ms: time_ms });
  }
  return groups;
}
