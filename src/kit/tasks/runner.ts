/** Tasks from their dispatch to their end: each is run at most once, one at a time for each asset, and every state is reported. */
import type { Journal } from '../outbox/api.ts';
import type { JournalEntry, TaskState } from '../outbox/protocol.ts';
import type { Clock } from '../../platform/clock.ts';
import { within } from '../../platform/time.ts';
import { EndedTasks, type TaskActivity } from './activity.ts';
import type { FindCommand } from './admission.ts';
import { task_limits, type TaskLimits } from './limits.ts';
import { type DispatchMeta, Reception } from './reception.ts';
import { takeUp, TaskRecorder, type TaskRecorderOptions } from './task-recorder.ts';
import { Scheduler } from './scheduler.ts';
import { entryOf, type Task, isOver } from './task.ts';
import { texts } from './texts.ts';
import type { JsonObject } from '../../contract/json.ts';
import type { TaskOrigin } from '../../contract/tasks.ts';
import { readJournaled } from './dispatch.ts';
import { readResult } from './result.ts';

export interface TaskRunnerOptions extends TaskRecorderOptions {
  readonly journal: Journal;
  readonly findCommand: FindCommand;
  /** Aborts when the connector stops: running handlers are stopped, and no task starts. */
  readonly signal: AbortSignal;
  readonly limits?: TaskLimits;
}

/** Pending and running: now. Completed and failed: since the start. `unreadable`: dispatches without a task id to answer to. */
export interface TaskStats {
  readonly pending: number;
  readonly running: number;
  readonly completed: number;
  readonly failed: number;
  readonly unreadable: number;
}

export interface TaskRunner {
  /**
   * Takes a dispatch: `raw` is the payload of the message or a parsed value. Resolves when it is journaled or refused
   * for good, so that it may be acknowledged. Rejects only if it must be delivered again: the connector stops
   * (`CommandRefused`) or the journal is broken.
   */
  receive(raw: unknown, meta: DispatchMeta): Promise<void>;
  cancel(task_id: string): void;
  /** Takes up what the last run left open; once, before dispatches arrive. */
  resume(): void;
  /** Takes up tasks of an earlier run that could not be read at the start. */
  takeUp(entries: readonly JournalEntry[]): void;
  /** An asset was announced, removed, or went online or offline. */
  assetsChanged(): void;
  /** Stops running tasks and waits at most `deadline_ms` for them. What is not over then stays as the journal has it. */
  stop(deadline_ms: number): Promise<void>;
  /** The newest tasks, newest first. */
  list(limit: number): Promise<readonly TaskView[]>;
  find(task_id: string): Promise<TaskView | undefined>;
  stats(): TaskStats;
}

/** Does nothing until `resume` or `receive` is called. */
export function createTaskRunner(options: TaskRunnerOptions): TaskRunner {
  const { journal, clock, log, findCommand, signal } = options;
  const ended = new EndedTasks();
  const observe = (activity: TaskActivity): void => {
    ended.observe(activity);
    options.observe(activity);
  };
  const recorder = new TaskRecorder({ ...options, observe });
  const limits = options.limits ?? task_limits;
  const scheduler = new Scheduler({ recorder, clock, log, observe, findCommand, limits });
  const reception = new Reception({ journal, recorder, scheduler, findCommand, clock, log, observe });
  let resumed = false;

  if (signal.aborted) void scheduler.halt();
  signal.addEventListener('abort', () => void scheduler.halt(), { once: true });

  const inMemory = (): readonly OpenTask[] => [
    ...recorder.unrecorded,
    ...scheduler.queue.tasks().map((task) => ({ entry: entryOf(task), note: undefined })),
  ];

  const stopAll = async (): Promise<void> => {
    await scheduler.halt();
    await reception.settled();
    await recorder.settled();
  };

  return {
    receive: async (raw, meta) => reception.receive(raw, meta),
    cancel(task_id) {
      const task = scheduler.queue.find(task_id.toLowerCase());
      if (task) scheduler.cancel(task);
      else log.info({ task_id: task_id.slice(0, 64) }, texts.cancel_ignored);
    },
    resume() {
      if (!resumed) takeUpAll(journal.left_open, { clock, recorder, scheduler });
      resumed = true;
    },
    takeUp(entries) {
      const isOpen = (id: string): boolean =>
        scheduler.queue.find(id) !== undefined || recorder.isUnrecorded(id);
      takeUpAll(
        entries.filter(({ task_id }) => !isOpen(task_id)),
        { clock, recorder, scheduler },
      );
    },
    assetsChanged: () => scheduler.advance(),
    async stop(deadline_ms) {
      await within(deadline_ms, stopAll());
      recorder.close();
    },
    async list(limit) {
      return newestViews(inMemory(), await journal.list(limit), limit);
    },
    async find(task_id) {
      const id = task_id.toLowerCase();
      const open = inMemory().find(({ entry }) => entry.task_id === id);
      if (open) return openView(open);
      const entry = await journal.find(id);
      return entry && viewOf(entry);
    },
    stats: () => ({ ...scheduler.queue.counts(), ...ended.counts(), unreadable: reception.unreadable }),
  };
}

interface Resuming {
  readonly clock: Clock;
  readonly recorder: TaskRecorder;
  readonly scheduler: Scheduler;
}

/** All of them are in line before the first one starts, so that a safety command finds what it takes the place of. */
function takeUpAll(left_open: readonly JournalEntry[], { clock, recorder, scheduler }: Resuming): void {
  const open: Task[] = [];
  for (const entry of left_open) {
    const { task, refusal } = takeUp(entry, clock.stamp());
    if (refusal === undefined) {
      scheduler.queue.add(task);
      open.push(task);
    } else {
      recorder.finish(task, { kind: 'fail', error: refusal });
    }
  }
  scheduler.admit(...open);
}

// Tasks as the gateway's own tools show them, with the field names of the cloud's interface.

/** Times are ISO 8601, UTC. Ids and name are empty when the dispatch could not be read. */
interface TaskView {
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
interface OpenTask {
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
