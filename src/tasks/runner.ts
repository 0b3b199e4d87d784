/** Tasks from their dispatch to their end: each is run at most once, one at a time for each asset, and every state is reported. */
import type { Journal } from '../outbox/api.ts';
import type { JournalEntry } from '../outbox/protocol.ts';
import type { Clock } from '../platform/clock.ts';
import { within } from '../platform/time.ts';
import type { FindCommand } from './admission.ts';
import { task_limits, type TaskLimits } from './limits.ts';
import { type DispatchMeta, Reception } from './reception.ts';
import { takeUp } from './resume.ts';
import { Scheduler } from './scheduler.ts';
import { Scribe, type ScribeOptions } from './scribe.ts';
import { entryOf, type Task } from './task.ts';
import { newestViews, type TaskView, viewOf } from './view.ts';

export interface TaskRunnerOptions extends ScribeOptions {
  readonly journal: Journal;
  readonly findCommand: FindCommand;
  /** Aborts when the connector stops: running tasks are told to stop, and nothing new starts. */
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
  const scribe = new Scribe(options);
  const scheduler = new Scheduler({ scribe, clock, log, findCommand, limits: options.limits ?? task_limits });
  const reception = new Reception({ journal, scribe, scheduler, findCommand, clock, log });
  let resumed = false;

  if (signal.aborted) void scheduler.halt();
  signal.addEventListener('abort', () => void scheduler.halt(), { once: true });

  const inMemory = (): readonly JournalEntry[] => [
    ...scribe.unwritten,
    ...scheduler.queue.tasks().map(entryOf),
  ];

  const stopAll = async (): Promise<void> => {
    await scheduler.halt();
    await reception.settled();
    await scribe.settled();
  };

  return {
    receive: async (raw, meta) => reception.receive(raw, meta),
    cancel(task_id) {
      const task = scheduler.queue.find(task_id.toLowerCase());
      if (task) scheduler.cancel(task);
      else log.info({ task_id: task_id.slice(0, 64) }, 'a task that is not open cannot be cancelled');
    },
    resume() {
      if (!resumed) takeUpAll(journal.left_open, { clock, scribe, scheduler });
      resumed = true;
    },
    assetsChanged: () => scheduler.advance(),
    async stop(deadline_ms) {
      await within(deadline_ms, stopAll());
      scribe.close();
    },
    async list(limit) {
      return newestViews(inMemory(), await journal.list(limit), limit);
    },
    async find(task_id) {
      const id = task_id.toLowerCase();
      const entry = inMemory().find((each) => each.task_id === id) ?? (await journal.find(id));
      return entry && viewOf(entry);
    },
    stats: () => ({ ...scheduler.queue.counts(), ...scribe.ended, unreadable: reception.unreadable }),
  };
}

interface Resuming {
  readonly clock: Clock;
  readonly scribe: Scribe;
  readonly scheduler: Scheduler;
}

/** All of them are in line before the first one starts, so that a safety command finds what it takes the place of. */
function takeUpAll(left_open: readonly JournalEntry[], { clock, scribe, scheduler }: Resuming): void {
  const open: Task[] = [];
  for (const entry of left_open) {
    const { task, refusal } = takeUp(entry, clock.stamp());
    if (refusal === undefined) {
      scheduler.queue.add(task);
      open.push(task);
    } else {
      scribe.finish(task, { kind: 'fail', error: refusal });
    }
  }
  scheduler.admit(...open);
}
