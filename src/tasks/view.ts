/** Tasks as the gateway's own tools show them, with the field names of the cloud's interface. */
import type { JsonObject } from '../contract/json.ts';
import type { JournalEntry, TaskState } from '../outbox/protocol.ts';
import { readJournaled } from './dispatch.ts';
import { readResult } from './result.ts';

/** Times are ISO 8601, UTC. Ids and name are empty when the dispatch could not be read. */
export interface TaskView {
  readonly id: string;
  readonly asset_id: string;
  readonly command_name: string;
  readonly payload: JsonObject;
  readonly status: TaskState;
  /** Output when completed, `error` when failed, else empty. */
  readonly result: JsonObject;
  readonly created_at: string;
  readonly updated_at: string;
}

export function viewOf(entry: JournalEntry): TaskView {
  const dispatch = readJournaled(entry.dispatch);
  return {
    id: entry.task_id,
    asset_id: dispatch?.asset_id ?? '',
    command_name: dispatch?.command_name ?? '',
    payload: dispatch?.payload ?? {},
    status: entry.state,
    result: readResult(entry.result) ?? {},
    created_at: dispatch?.created_at ?? new Date(entry.received_ms).toISOString(),
    updated_at: new Date(entry.updated_ms).toISOString(),
  };
}

/** The newest `limit` tasks; what memory knows of a task is newer than what the disk does. */
export function newestViews(
  memory: readonly JournalEntry[],
  disk: readonly JournalEntry[],
  limit: number,
): readonly TaskView[] {
  const newer = new Map(memory.map((entry) => [entry.task_id, entry]));
  const on_disk = new Set(disk.map(({ task_id }) => task_id));
  const memory_only = memory.filter(({ task_id }) => !on_disk.has(task_id)).toReversed();
  const all = [...memory_only, ...disk.map((entry) => newer.get(entry.task_id) ?? entry)];
  return all.slice(0, limit).map(viewOf);
}
