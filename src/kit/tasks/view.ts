/** Tasks as the gateway's own tools show them, with the field names of the cloud's interface. */
import type { JsonObject } from '../../contract/json.ts';
import type { TaskOrigin } from '../../contract/tasks.ts';
import type { JournalEntry, TaskState } from '../outbox/protocol.ts';
import { readJournaled } from './dispatch.ts';
import { readResult } from './result.ts';
import { isOver } from './task.ts';

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
  /** Why the task is still open although nothing is done for it any more: its end cannot be recorded. */
  readonly note: string | null;
  /** Who asked; null: an earlier version did not keep it. */
  readonly origin: TaskOrigin | null;
}

/** A task that is open as far as the disk is concerned. */
export interface OpenTask {
  readonly entry: JournalEntry;
  /** Its end waits for the disk. */
  readonly note: string | undefined;
}

export function viewOf(entry: JournalEntry): TaskView {
  const { dispatch, origin } = readJournaled(entry.dispatch);
  return {
    id: entry.task_id,
    asset_id: dispatch?.asset_id ?? '',
    command_name: dispatch?.command_name ?? '',
    payload: dispatch?.payload ?? {},
    status: entry.state,
    result: readResult(entry.result) ?? {},
    created_at: dispatch?.created_at ?? new Date(entry.received_ms).toISOString(),
    updated_at: new Date(entry.updated_ms).toISOString(),
    note: null,
    origin: origin ?? null,
  };
}

/** What is not recorded is not final, also for the technician: the next run knows only what the disk has. */
export function openView({ entry, note }: OpenTask): TaskView {
  const view = viewOf(entry);
  return isOver(entry) ? { ...view, status: 'running', result: {}, note: note ?? null } : view;
}

/** The newest `limit` tasks; what memory knows of a task is newer than what the disk does. */
export function newestViews(
  memory: readonly OpenTask[],
  disk: readonly JournalEntry[],
  limit: number,
): readonly TaskView[] {
  const newer = new Map(memory.map((open) => [open.entry.task_id, open]));
  const on_disk = new Set(disk.map(({ task_id }) => task_id));
  const memory_only = memory.filter(({ entry }) => !on_disk.has(entry.task_id)).toReversed();
  const recorded = disk.map((entry) => {
    const open = newer.get(entry.task_id);
    return open ? openView(open) : viewOf(entry);
  });
  return [...memory_only.map(openView), ...recorded].slice(0, limit);
}
