/** Tasks from their dispatch to their end: each is run at most once, one at a time for each asset, and every state is reported. */
import type { Journal } from '../outbox/api.ts';
import type { JournalEntry, TaskState } from '../outbox/protocol.ts';
import type { Clock, Stamp } from '../../platform/clock.ts';
import { within } from '../../platform/time.ts';
import type { ObserveTasks, TaskActivity } from './activity.ts';
import { type Admitted, type FindCommand, judge } from './admission.ts';
import { task_limits, type TaskLimits } from './limits.ts';
import { takeUp, type TaskLog, TaskRecorder, type TaskRecorderOptions } from './task-recorder.ts';
import { Scheduler } from './scheduler.ts';
import { createTask, entryOf, isOver, type Task, type TaskFacts } from './task.ts';
import { texts } from './texts.ts';
import type { JsonObject } from '../../contract/json.ts';
import type { TaskDispatch, TaskOrigin } from '../../contract/tasks.ts';
import { journalText, type ReadDispatch, readDispatch, readJournaled } from './dispatch.ts';
import { readResult } from './result.ts';
import { z } from 'zod';
import { CommandRefused, StorageUnavailable } from '../../platform/errors.ts';
import { cleanText, cleanTexts } from '../../platform/foreign-text.ts';
import { cannotRecord } from './sentences.ts';
import type { Delivery, Judged } from './timing.ts';

/** Who made a task on the gateway itself: a key of the kit's service, or a user of the machine. */
interface LocalAuthor {
  readonly via: 'service' | 'local';
  readonly user: string | null;
  readonly uid: number | null;
}

export interface DispatchMeta extends Omit<Delivery, 'local'> {
  readonly task_id_in_topic: string;
  /** Left out: the cloud dispatched it. */
  readonly author?: LocalAuthor | undefined;
}

interface ReceptionParts {
  readonly journal: Pick<Journal, 'admit'>;
  readonly recorder: TaskRecorder;
  readonly scheduler: Scheduler;
  readonly findCommand: FindCommand;
  readonly clock: Clock;
  readonly log: TaskLog;
  readonly observe: ObserveTasks;
}

/** Takes dispatches in: each task id once, judged, journaled, and only then acknowledged and put in line. */
class Reception {
  readonly #parts: ReceptionParts;
  /** Dispatches on their way to the journal. A second copy waits for the answer of the first. */
  readonly #admissions = new Map<string, Promise<void>>();
  #unreadable = 0;
  /** The newest creation of a dispatch from the cloud: UTC minus monotonic time, which shows how late it is at least. */
  #least_offset_ms = Number.NEGATIVE_INFINITY;

  constructor(parts: ReceptionParts) {
    this.#parts = parts;
  }

  /** Dispatches without a task id to answer to. */
  get unreadable(): number {
    return this.#unreadable;
  }

  async receive(raw: unknown, meta: DispatchMeta): Promise<void> {
    const { scheduler, recorder, log } = this.#parts;
    if (scheduler.halted) throw new CommandRefused(texts.stopping_refused);
    const id = z.uuid().safeParse(meta.task_id_in_topic);
    if (!id.success) {
      this.#unreadable += 1;
      log.warn({ task_id: meta.task_id_in_topic.slice(0, 64) }, texts.no_task_id);
      return;
    }
    const task_id = id.data.toLowerCase();
    const under_way = this.#admissions.get(task_id);
    if (under_way) {
      await under_way;
      return;
    }
    if (scheduler.queue.find(task_id) || recorder.isUnrecorded(task_id)) return;
    if (recorder.full) {
      log.warn({ task_id }, texts.too_many_results);
      return;
    }
    const admission = this.#takeIn(task_id, raw, meta).finally(() => this.#admissions.delete(task_id));
    this.#admissions.set(task_id, admission);
    await admission;
  }

  /** Resolves when the journal has answered for every dispatch received so far. */
  async settled(): Promise<void> {
    await Promise.allSettled(this.#admissions.values());
  }

  async #takeIn(task_id: string, raw: unknown, meta: DispatchMeta): Promise<void> {
    const { clock, findCommand, scheduler } = this.#parts;
    const read = readDispatch(raw, task_id);
    const { author, ...how } = meta;
    const stamp = clock.stamp();
    const at_least_ms = this.#leastTime_ms(read.dispatch, stamp, author);
    const delivery = { ...how, local: author !== undefined, at_least_ms };
    const origin = originOf(read.dispatch, author);
    const full = scheduler.queue.full.bind(scheduler.queue);
    const judged =
      read.refusal === undefined
        ? judge(read.dispatch, { findCommand, stamp, delivery, full })
        : { refusal: read.refusal };
    const reading = 'refusal' in judged ? undefined : judged.reading;
    const task = createTask(factsOf({ task_id, read, origin, stamp, judged }), { reading });
    // Its refusal is journaled too, so that a second delivery gets the same answer even when the reason is gone by then.
    await ('refusal' in judged ? this.#parts.recorder.refuse(task, judged.refusal) : this.#admit(task));
  }

  /** Lower bound of the time of day without a set clock: the latest creation of a dispatch that has arrived. */
  #leastTime_ms(
    dispatch: TaskDispatch | undefined,
    { mono_ms }: Stamp,
    author: LocalAuthor | undefined,
  ): number {
    if (dispatch && !author) {
      const created_ms = Date.parse(dispatch.created_at);
      this.#least_offset_ms = Math.max(this.#least_offset_ms, created_ms - mono_ms);
    }
    return mono_ms + this.#least_offset_ms;
  }

  async #admit(task: Task): Promise<void> {
    const { journal, scheduler, recorder, observe } = this.#parts;
    // It has its place in the line before the journal answers, so that the order is that of reception.
    scheduler.queue.add(task);
    try {
      const known = await journal.admit(entryOf(task));
      if (!known) {
        observe({ kind: 'accepted', task });
        scheduler.admit(task);
        return;
      }
      scheduler.leave(task);
      recorder.resend(known);
    } catch (error) {
      scheduler.leave(task);
      if (!(error instanceof StorageUnavailable)) throw error;
      await recorder.refuse(task, cannotRecord(error));
    }
  }
}

function originOf(dispatch: TaskDispatch | undefined, author: LocalAuthor | undefined): TaskOrigin {
  const requested_by = dispatch?.requested_by ?? null;
  if (author) return cleanTexts({ ...author, requested_by });
  const name = dispatch?.requested_by_name;
  return { via: 'cloud', user: name ? cleanText(name) : null, uid: null, requested_by };
}

interface NewTask {
  readonly task_id: string;
  readonly read: ReadDispatch;
  readonly origin: TaskOrigin;
  readonly stamp: Stamp;
  readonly judged: Judged<Admitted>;
}

function factsOf({ task_id, read, origin, stamp, judged }: NewTask): TaskFacts {
  const { dispatch } = read;
  const due =
    'refusal' in judged
      ? { deadline_ms: stamp.time_ms, due_mono_ms: stamp.mono_ms, created_mono_ms: null }
      : judged.due;
  return {
    id: task_id,
    asset_id: dispatch?.asset_id ?? null,
    command_name: dispatch?.command_name ?? null,
    payload: dispatch?.payload ?? {},
    origin,
    text: journalText(read, {
      origin,
      refused: 'refusal' in judged,
      repeatable: 'reading' in judged && judged.reading?.command.repeatable === true,
    }),
    received_ms: stamp.time_ms,
    patient: 'reading' in judged && judged.reading === undefined,
    ...due,
  };
}

export interface TaskRunnerOptions extends TaskRecorderOptions {
  readonly journal: Journal;
  readonly findCommand: FindCommand;
  /** Aborts when the connector stops: running handlers are stopped, and no task starts. */
  readonly signal: AbortSignal;
  readonly limits?: TaskLimits;
}

export type TaskRunner = ReturnType<typeof createTaskRunner>;

/** Does nothing until `resume` or `receive` is called. */
export function createTaskRunner(options: TaskRunnerOptions) {
  const { journal, clock, log, findCommand, signal } = options;
  const ended = { completed: 0, failed: 0 };
  const observe = (activity: TaskActivity): void => {
    const { kind } = activity;
    if (kind === 'completed' || kind === 'failed') ended[kind] += 1;
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
    /**
     * Takes a dispatch: `raw` is the payload of the message or a parsed value. Resolves when it is journaled or refused
     * for good, so that it may be acknowledged. Rejects only if it must be delivered again: the connector stops
     * (`CommandRefused`) or the journal is broken.
     */
    receive: async (raw: unknown, meta: DispatchMeta) => reception.receive(raw, meta),
    cancel(task_id: string): void {
      const task = scheduler.queue.find(task_id.toLowerCase());
      if (task) scheduler.cancel(task);
      else log.info({ task_id: task_id.slice(0, 64) }, texts.cancel_ignored);
    },
    /** Takes up what the last run left open; once, before dispatches arrive. */
    resume(): void {
      if (!resumed) takeUpAll(journal.left_open, { clock, recorder, scheduler });
      resumed = true;
    },
    /** Takes up tasks of an earlier run that could not be read at the start. */
    takeUp(entries: readonly JournalEntry[]): void {
      const isOpen = (id: string): boolean =>
        scheduler.queue.find(id) !== undefined || recorder.isUnrecorded(id);
      takeUpAll(
        entries.filter(({ task_id }) => !isOpen(task_id)),
        { clock, recorder, scheduler },
      );
    },
    /** An asset was announced, removed, or went online or offline. */
    assetsChanged: (): void => scheduler.advance(),
    /** Stops running tasks and waits at most `deadline_ms` for them. What is not over then stays as the journal has it. */
    async stop(deadline_ms: number): Promise<void> {
      await within(deadline_ms, stopAll());
      recorder.close();
    },
    /** The newest tasks, newest first. */
    async list(limit: number): Promise<readonly TaskView[]> {
      return newestViews(inMemory(), await journal.list(limit), limit);
    },
    async find(task_id: string): Promise<TaskView | undefined> {
      const id = task_id.toLowerCase();
      const open = inMemory().find(({ entry }) => entry.task_id === id);
      if (open) return openView(open);
      const entry = await journal.find(id);
      return entry && viewOf(entry);
    },
    /** Pending and running: now. Completed and failed: since the start. `unreadable`: dispatches without a task id to answer to. */
    stats: () => ({ ...scheduler.queue.counts(), ...ended, unreadable: reception.unreadable }),
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
