/** Takes dispatches in: each task id once, judged, journaled, and only then acknowledged and put in line. */
import { z } from 'zod';
import type { TaskDispatch } from '../contract/tasks.ts';
import { CommandRefused, StorageUnavailable } from '../errors.ts';
import type { Journal } from '../outbox/api.ts';
import type { Clock, Stamp } from '../platform/clock.ts';
import { type FindCommand, judge } from './admission.ts';
import { readDispatch } from './dispatch.ts';
import type { Scheduler } from './scheduler.ts';
import type { Scribe, TaskLog } from './scribe.ts';
import { cannotRecord } from './sentences.ts';
import { createTask, entryOf, type Task, type TaskFacts } from './task.ts';
import type { Delivery, Due, Judged } from './timing.ts';

export interface DispatchMeta extends Delivery {
  readonly task_id_in_topic: string;
}

interface ReceptionParts {
  readonly journal: Pick<Journal, 'admit'>;
  readonly scribe: Scribe;
  readonly scheduler: Scheduler;
  readonly findCommand: FindCommand;
  readonly clock: Clock;
  readonly log: TaskLog;
}

export class Reception {
  readonly #parts: ReceptionParts;
  /** Dispatches on their way to the journal. A second copy waits for the answer of the first. */
  readonly #admissions = new Map<string, Promise<void>>();
  #unreadable = 0;

  constructor(parts: ReceptionParts) {
    this.#parts = parts;
  }

  /** Dispatches without a task id to answer to. */
  get unreadable(): number {
    return this.#unreadable;
  }

  async receive(raw: unknown, meta: DispatchMeta): Promise<void> {
    const { scheduler, scribe, log } = this.#parts;
    if (scheduler.halted) throw new CommandRefused('the connector stops and takes no more tasks');
    const id = z.uuid().safeParse(meta.task_id_in_topic);
    if (!id.success) {
      this.#unreadable += 1;
      log.warn(
        { task_id: meta.task_id_in_topic.slice(0, 64) },
        'a dispatch whose topic has no task id is ignored',
      );
      return;
    }
    const task_id = id.data.toLowerCase();
    const under_way = this.#admissions.get(task_id);
    if (under_way) {
      await under_way;
      return;
    }
    if (scheduler.queue.find(task_id) || scribe.resendRemembered(task_id)) return;
    const admission = this.#takeIn(task_id, raw, meta).finally(() => this.#admissions.delete(task_id));
    this.#admissions.set(task_id, admission);
    await admission;
  }

  /** Resolves when the journal has answered for every dispatch received so far. */
  async settled(): Promise<void> {
    await Promise.allSettled(this.#admissions.values());
  }

  async #takeIn(task_id: string, raw: unknown, delivery: Delivery): Promise<void> {
    const { clock, findCommand, scheduler } = this.#parts;
    const read = readDispatch(raw, task_id);
    const stamp = clock.stamp();
    const full = scheduler.queue.full.bind(scheduler.queue);
    const judged =
      read.refusal === undefined
        ? judge(read.dispatch, { findCommand, stamp, delivery, full })
        : { refusal: read.refusal };
    const task = createTask(factsOf({ task_id, ...read, stamp, judged }));
    await ('refusal' in judged ? this.#refuse(task, judged.refusal) : this.#admit(task));
  }

  async #admit(task: Task): Promise<void> {
    const { journal, scheduler, scribe } = this.#parts;
    // It has its place in the line before the journal answers, so that the order is that of reception.
    scheduler.queue.add(task);
    try {
      const known = await journal.admit(entryOf(task));
      if (!known) {
        scheduler.admit(task);
        return;
      }
      scheduler.leave(task);
      scribe.resend(known);
    } catch (error) {
      scheduler.leave(task);
      if (!(error instanceof StorageUnavailable)) throw error;
      scribe.finish(task, { kind: 'fail', error: cannotRecord(error) });
    }
  }

  /**
   * The refusal is journaled too, so that a second delivery gets the same answer even when the reason is gone by then.
   * It is acknowledged only once its report is on disk: nobody would send either of them again.
   */
  async #refuse(task: Task, error: string): Promise<void> {
    const { journal, scribe } = this.#parts;
    const refused = scribe.refuse(task, error);
    try {
      const known = await journal.admit(refused.entry);
      if (known) scribe.resend(known);
      else await scribe.keep(refused);
    } catch (thrown) {
      if (!(thrown instanceof StorageUnavailable)) throw thrown;
      await scribe.keep(refused);
    }
  }
}

interface NewTask {
  readonly task_id: string;
  readonly dispatch: TaskDispatch | undefined;
  readonly text: string;
  readonly stamp: Stamp;
  readonly judged: Judged<Due>;
}

function factsOf({ task_id, dispatch, text, stamp, judged }: NewTask): TaskFacts {
  const due =
    'refusal' in judged
      ? { deadline_ms: stamp.time_ms, due_mono_ms: stamp.mono_ms, created_mono_ms: null }
      : judged;
  return {
    id: task_id,
    asset_id: dispatch?.asset_id ?? null,
    command_name: dispatch?.command_name ?? null,
    payload: dispatch?.payload ?? {},
    text,
    received_ms: stamp.time_ms,
    patient: false,
    ...due,
  };
}
