/** A task in memory, from its reception to its end, and the forms in which it is journaled and reported. */
import type { JsonObject } from '../../contract/json.ts';
import type { TaskOrigin } from '../../contract/tasks.ts';
import { channels } from '../../contract/topics.ts';
import type { Draft } from '../outbox/api.ts';
import type { JournalEntry } from '../outbox/protocol.ts';
import { readJournaled, reportedOf } from './dispatch.ts';
import { final_revision, isTerminal, received, type ReportBody, type TaskState } from './machine.ts';
import { readResult } from './result.ts';
import type { Due } from './timing.ts';
import { ZodError } from 'zod';
import type { Command, Invocation } from '../../toolkit/driver/command.ts';
import { faultSentence, thrownSentence } from './sentences.ts';

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
  /** Undefined when it was journaled by a version that did not keep it. */
  readonly origin: TaskOrigin | undefined;
  /** What the journal keeps of the dispatch, JSON text. */
  readonly text: string;
  readonly received_ms: number;
  /** From the journal, or received just after a start: its asset may not be announced yet, which is waited for. */
  readonly patient: boolean;
}

export interface Task extends TaskFacts {
  state: TaskState;
  /** When its handler was called in this run, on the monotonic clock. */
  started_mono_ms: number | undefined;
  /** UTC of the last move. */
  updated_ms: number;
  /** The journal has it. Until then it keeps its place in the line and does not start. */
  admitted: boolean;
  /** It has left the line of its asset, since its command does not touch the device (`own_line`). */
  apart: boolean;
  /** The payload as its command read it last; undefined while no command was found. */
  reading: Reading | undefined;
  /** The last reason to stop it; undefined while there is none. */
  ending: Ending | undefined;
  /** Its signal is the handler's. */
  readonly stop: AbortController;
  /** Aborts at the end of the task: ends its timers. */
  readonly gone: AbortController;
  /** Resolves when the handler did not stop within its grace period. */
  readonly given_up: PromiseWithResolvers<void>;
}

interface TaskStart {
  readonly state?: TaskState;
  readonly reading?: Reading | undefined;
}

export function createTask(facts: TaskFacts, { state = received, reading }: TaskStart = {}): Task {
  return {
    ...facts,
    state,
    reading,
    started_mono_ms: undefined,
    updated_ms: facts.received_ms,
    admitted: false,
    apart: false,
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

type About = Pick<Task, 'id' | 'asset_id' | 'command_name' | 'origin' | 'text'>;

export function draftOf(about: About, body: ReportBody): Draft {
  const { id: task_id, asset_id, command_name, origin, text } = about;
  // Progress is reported often, and the first and the last report have the dispatch.
  const dispatched = body.progress ? {} : reportedOf(text);
  return {
    channel: channels.task(task_id),
    lane: 'task',
    data: { task_id, asset_id, command_name, ...body, ...(origin ? { origin } : {}), ...dispatched },
  };
}

/** Whether the journal has the end of the task. */
export function isOver(
  entry: JournalEntry,
): entry is JournalEntry & { readonly state: 'completed' | 'failed' } {
  return entry.state === 'completed' || entry.state === 'failed';
}

/** The final report of a journaled task, once more; undefined while the task is not over. */
export function finalDraft(entry: JournalEntry): Draft | undefined {
  if (!isOver(entry)) return undefined;
  const { dispatch, origin } = readJournaled(entry.dispatch);
  const about = {
    origin,
    id: entry.task_id,
    text: entry.dispatch,
    asset_id: dispatch?.asset_id ?? null,
    command_name: dispatch?.command_name ?? null,
  };
  return draftOf(about, {
    status: entry.state,
    revision: final_revision,
    result: readResult(entry.result) ?? {},
  });
}

/** A payload that its command accepts. */
export interface Runnable {
  readonly command: Command;
  readonly invocation: Invocation;
}

/** A payload as a command has read it; `refusal`: the sentence with which its task fails. */
type Reading = Runnable | { readonly command: Command; readonly refusal: string };

/** The payload of a task: validated once, when its command is first found, and shared by all that follows. */
export function readPayload(command: Command, payload: unknown): Reading {
  try {
    return { command, invocation: command.read(payload) };
  } catch (error) {
    const refusal =
      error instanceof ZodError
        ? faultSentence(error, 'payload', command.input_schema)
        : thrownSentence(error);
    return { command, refusal };
  }
}

/**
 * The reading of the task by the live command. A driver may have announced another command of that name since: then its
 * schema decides and its handler is called, never one of an earlier announcement.
 */
export function readingBy(command: Command, task: Task): Reading {
  if (task.reading?.command !== command) task.reading = readPayload(command, task.payload);
  return task.reading;
}
