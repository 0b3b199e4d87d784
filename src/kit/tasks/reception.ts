/** Takes dispatches in: each task id once, judged, journaled, and only then acknowledged and put in line. */
import { z } from 'zod';
import type { TaskDispatch, TaskOrigin } from '../../contract/tasks.ts';
import { CommandRefused, StorageUnavailable } from '../../platform/errors.ts';
import type { Journal } from '../outbox/api.ts';
import type { Clock, Stamp } from '../../platform/clock.ts';
import { cleanText, cleanTexts } from '../../platform/foreign-text.ts';
import type { ObserveTasks } from './activity.ts';
import { type Admitted, type FindCommand, judge } from './admission.ts';
import { journalText, type ReadDispatch, readDispatch } from './dispatch.ts';
import type { Scheduler } from './scheduler.ts';
import type { TaskRecorder, TaskLog } from './task-recorder.ts';
import { cannotRecord } from './sentences.ts';
import { createTask, entryOf, type Task, type TaskFacts } from './task.ts';
import type { Delivery, Judged } from './timing.ts';
import { texts } from './texts.ts';

/** Who made a task on the gateway itself: a key of the kit's service, or a user of the machine. */
export interface LocalAuthor {
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

export class Reception {
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
