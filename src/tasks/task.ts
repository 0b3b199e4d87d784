/** A task in memory, from its reception to its end, and the forms in which it is journaled and reported. */
import type { JsonObject } from '../contract/json.ts';
import { channels } from '../contract/topics.ts';
import type { Draft } from '../outbox/api.ts';
import type { JournalEntry } from '../outbox/protocol.ts';
import { readJournaled } from './dispatch.ts';
import { final_revision, isTerminal, received, type ReportBody, type TaskState } from './machine.ts';
import { readResult } from './result.ts';
import type { Due } from './timing.ts';

/** Why a task is stopped before its own end. */
export type Ending =
  | { readonly kind: 'cancel' }
  | { readonly kind: 'supersede'; readonly by: string }
  | { readonly kind: 'expire' }
  /** The connector stops. */
  | { readonly kind: 'stop' };

/** What is known of a task at its reception. Ids and name are null when the dispatch could not be read. */
export interface TaskFacts extends Due {
  readonly id: string;
  readonly asset_id: string | null;
  readonly command_name: string | null;
  readonly payload: JsonObject;
  /** The dispatch, JSON text. */
  readonly text: string;
  readonly received_ms: number;
  /** From the journal: its asset may not be announced yet, which is waited for. */
  readonly patient: boolean;
}

export interface Task extends TaskFacts {
  state: TaskState;
  /** UTC of the last move. */
  updated_ms: number;
  /** The journal has it. Until then it keeps its place in the line and does not start. */
  admitted: boolean;
  /** The last reason to stop it; undefined while there is none. */
  ending: Ending | undefined;
  /** Its signal is the handler's. */
  readonly stop: AbortController;
  /** Aborts at the end of the task: ends its timers. */
  readonly gone: AbortController;
  /** Resolves when the handler was told to stop and had its time. */
  readonly given_up: PromiseWithResolvers<void>;
}

export function createTask(facts: TaskFacts, state: TaskState = received): Task {
  return {
    ...facts,
    state,
    updated_ms: facts.received_ms,
    admitted: false,
    ending: undefined,
    stop: new AbortController(),
    gone: new AbortController(),
    given_up: Promise.withResolvers<void>(),
  };
}

export function entryOf(task: Task): JournalEntry {
  return {
    task_id: task.id,
    state: task.state.status,
    dispatch: task.text,
    result: JSON.stringify(isTerminal(task.state) ? task.state.result : {}),
    received_ms: task.received_ms,
    updated_ms: task.updated_ms,
    deadline_ms: task.deadline_ms,
  };
}

export function draftOf(task: Pick<Task, 'id' | 'asset_id' | 'command_name'>, body: ReportBody): Draft {
  const { id: task_id, asset_id, command_name } = task;
  return {
    channel: channels.task(task_id),
    lane: 'task',
    data: { task_id, asset_id, command_name, ...body },
  };
}

/** The final report of a journaled task, once more; undefined while the task is not over. */
export function finalDraft(entry: JournalEntry): Draft | undefined {
  if (entry.state !== 'completed' && entry.state !== 'failed') return undefined;
  const dispatch = readJournaled(entry.dispatch);
  const about = {
    id: entry.task_id,
    asset_id: dispatch?.asset_id ?? null,
    command_name: dispatch?.command_name ?? null,
  };
  return draftOf(about, {
    status: entry.state,
    revision: final_revision,
    result: readResult(entry.result) ?? {},
  });
}
