/** Moves tasks from state to state, and writes each move to the journal together with the report of it. */
import type { DriverLog } from '../../toolkit/driver/driver.ts';
import {
  CommandRefused,
  InvariantBroken,
  messageOf,
  StorageUnavailable,
  notSent,
} from '../../platform/errors.ts';
import type { Appender, Draft, Journal } from '../outbox/api.ts';
import type { JournalEntry } from '../outbox/protocol.ts';
import type { Clock, Stamp } from '../../platform/clock.ts';
import { backoff, sleep, within } from '../../platform/time.ts';
import type { ObserveTasks } from './activity.ts';
import { unrecorded_max, progress_every_ms, sentence_chars_max } from './limits.ts';
import { isTerminal, type TaskEvent, transition, received, type TaskState } from './machine.ts';
import { errorOf, unrecordedNote } from './sentences.ts';
import { draftOf, entryOf, finalDraft, isOver, type Task, createTask } from './task.ts';
import { texts } from './texts.ts';
import { cleanText } from '../../platform/foreign-text.ts';
import { cut } from '../../contract/limits.ts';
import { readJournaled } from './dispatch.ts';
import { judgeAgain } from './timing.ts';

export type TaskLog = Pick<DriverLog, 'info' | 'warn' | 'error'>;

export interface TaskRecorderOptions {
  readonly journal: Pick<Journal, 'record' | 'conclude' | 'find'>;
  readonly outbox: Appender;
  readonly clock: Clock;
  readonly log: TaskLog;
  readonly observe: ObserveTasks;
  /** Aborts when the connector stops. */
  readonly signal: AbortSignal;
}

/** An entry of the journal and the report that belongs to it. */
interface Written {
  readonly entry: JournalEntry;
  readonly report: Draft;
}

/** An end that the disk does not have yet. It is final once the disk has it. */
interface UnrecordedEnd extends Written {
  readonly task: Task;
  /** Revision of the note, a report that is not final. */
  readonly note_revision: number;
  /** Text of the note; undefined until the disk has refused the result. */
  note: string | undefined;
}

/** Pauses between attempts to read a disk that cannot be read. */
const disk_retry_ms = { first: 1_000, max: 30_000 } as const;
/** A disk that has not answered by then counts as failing until it answers. */
const disk_answer_ms = 2_000;

export class TaskRecorder {
  readonly #options: TaskRecorderOptions;
  readonly #unrecorded = new Map<string, UnrecordedEnd>();
  /** First answers of the disk that are awaited. */
  readonly #attempts = new Set<Promise<void>>();
  readonly #close = new AbortController();

  constructor(options: TaskRecorderOptions) {
    this.#options = options;
  }

  /** Ends that the disk does not have: their tasks are still open, and `note` has the reason. */
  get unrecorded(): readonly (Pick<Written, 'entry'> & { readonly note: string | undefined })[] {
    return [...this.#unrecorded.values()];
  }

  /** Whether the result of this task waits for the disk: it must not be admitted again. */
  isUnrecorded(task_id: string): boolean {
    return this.#unrecorded.has(task_id);
  }

  /** So many ends wait for the disk that no further dispatch can be refused. */
  get full(): boolean {
    return this.#unrecorded.size >= unrecorded_max;
  }

  /** Resolves once `running` is on disk; rejects when the disk write fails, and then nothing may be done. */
  async start(task: Task): Promise<void> {
    const { entry, report } = this.#move(task, { kind: 'start' });
    await this.#options.journal.record(entry, report);
  }

  /** Ends a journaled task without waiting for the disk: the result is kept here until it is recorded. */
  finish(task: Task, event: TaskEvent): void {
    if (this.#close.signal.aborted) return;
    const end = this.#end(task, event);
    this.#announce(end);
    void this.#conclude(end);
  }

  /**
   * Fails a dispatch that was not taken in. Resolves when its end is on disk or, while the disk refuses, is remembered.
   * If the journal turns out to have another end of the task, that one is reported again; if an earlier run left the task
   * running, its outcome is unknown. Rejects with `CommandRefused` after `close`: the dispatch must be delivered again.
   */
  async refuse(task: Task, error: string): Promise<void> {
    this.#refuseIfClosed();
    const end = this.#end(task, { kind: 'fail', error });
    try {
      const known = await this.#options.journal.find(task.id);
      this.#refuseIfClosed();
      await this.#refuseUnlessOver(end, known);
    } catch (thrown) {
      if (!(thrown instanceof StorageUnavailable)) throw thrown;
      this.#refuseIfClosed();
      this.#reportUnrecorded(end, messageOf(thrown));
      void this.#refuseLater(end);
    }
  }

  progress(task: Task, { message, pct }: Progress): void {
    if (this.#close.signal.aborted) return;
    this.#options.outbox.append(this.#move(task, { kind: 'progress', message, pct }).report);
  }

  /** Sends the final report again, if the task is over. */
  resend(entry: JournalEntry): void {
    if (this.#close.signal.aborted) return;
    const report = finalDraft(entry);
    if (report) this.#options.outbox.append(report);
  }

  /** Resolves when the disk has answered for every end so far: it is stored or refused. */
  async settled(): Promise<void> {
    await Promise.allSettled(this.#attempts);
  }

  /** From now on the journal belongs to the next run: what still happens is not written. */
  close(): void {
    this.#close.abort();
  }

  #end(task: Task, event: TaskEvent): UnrecordedEnd {
    const { revision } = task.state;
    const end = { ...this.#move(task, event), task, note_revision: revision + 1, note: undefined };
    this.#unrecorded.set(task.id, end);
    return end;
  }

  /** The disk cannot be read, and what it has of the task must not be overwritten unseen. */
  async #refuseLater(end: UnrecordedEnd): Promise<void> {
    for (const pause_ms of backoff(disk_retry_ms.first, disk_retry_ms.max)) {
      await sleep(pause_ms, this.#close.signal);
      if (this.#close.signal.aborted) return;
      try {
        const known = await this.#options.journal.find(end.task.id);
        if (this.#close.signal.aborted) return;
        await this.#refuseUnlessOver(end, known);
        return;
      } catch (error) {
        if (!(error instanceof StorageUnavailable)) throw error;
      }
    }
  }

  #refuseIfClosed(): void {
    if (this.#close.signal.aborted) throw new CommandRefused(texts.stopping_refused);
  }

  async #refuseUnlessOver(end: UnrecordedEnd, known: JournalEntry | undefined): Promise<void> {
    if (known && isOver(known)) {
      this.#unrecorded.delete(end.task.id);
      this.resend(known);
      return;
    }
    if (known?.state === 'running') {
      // An earlier run started it and the file could not be read at the start: `command not sent` would be false.
      const { task } = takeUp(known, this.#options.clock.stamp());
      this.finish(task, { kind: 'fail', error: texts.interrupted });
      return;
    }
    this.#announce(end);
    await this.#conclude(end);
  }

  /** Resolves with the disk's first answer, or when that takes too long. */
  async #conclude(end: UnrecordedEnd): Promise<void> {
    const { journal, signal } = this.#options;
    const { tried, stored } = journal.conclude(end.entry, end.report);
    void this.#track(tried);
    void this.#forgetOnce(stored, end.task.id);
    let reason = 'the disk does not answer';
    try {
      const answer = await within(
        disk_answer_ms,
        tried.then(() => 'stored' as const),
        signal,
      );
      if (answer === 'stored' || signal.aborted) return;
    } catch (error) {
      reason = messageOf(error);
    }
    this.#reportUnrecorded(end, reason);
  }

  async #forgetOnce(stored: Promise<void>, task_id: string): Promise<void> {
    try {
      await stored;
      this.#unrecorded.delete(task_id);
    } catch {
      // The thread of the buffer has died: the process ends, and the next run finds what the disk has.
    }
  }

  /** Reports the result to the cloud as not final, since a later run has only what is on disk. After `close` no buffer keeps it. */
  #reportUnrecorded(end: UnrecordedEnd, reason: string): void {
    if (this.#close.signal.aborted) return;
    const { entry, task, note_revision: revision } = end;
    const { task_id, state } = entry;
    this.#options.log.error({ task_id, state, reason }, texts.result_not_recorded);
    end.note = unrecordedNote(task.state, reason);
    const progress = { message: end.note, pct: null };
    this.#options.outbox.append(draftOf(task, { status: 'running', revision, result: {}, progress }));
  }

  async #track(attempt: Promise<void>): Promise<void> {
    this.#attempts.add(attempt);
    await Promise.allSettled([attempt]);
    this.#attempts.delete(attempt);
  }

  #move(task: Task, event: TaskEvent): Written {
    const moved = transition(task.state, event);
    if (moved.kind === 'refused')
      throw new InvariantBroken(`task ${task.id}: no ${event.kind}, ${moved.why}`);
    if (!moved.report) throw new InvariantBroken(`task ${task.id}: ${event.kind} reports nothing`);
    task.state = moved.state;
    task.updated_ms = this.#options.clock.stamp().time_ms;
    if (isTerminal(moved.state)) task.gone.abort();
    return { entry: entryOf(task), report: draftOf(task, moved.report) };
  }

  #announce({ task }: UnrecordedEnd): void {
    const { clock, observe } = this.#options;
    const { state, started_mono_ms } = task;
    if (!isTerminal(state)) return;
    const ran_ms = started_mono_ms === undefined ? null : clock.stamp().mono_ms - started_mono_ms;
    if (state.status === 'completed') observe({ kind: 'completed', task, ran_ms });
    else observe({ kind: 'failed', task, ran_ms, error: errorOf(state) });
  }
}

// Thins the progress of one task: the first word at once, then the newest at most once in a while.

export interface Progress {
  readonly message: string;
  readonly pct: number | null;
}

/** The function that a handler calls as often as it likes. Silent once `signal` aborts. */
export function pacedProgress(signal: AbortSignal, report: (progress: Progress) => void) {
  let newest: Progress | undefined;
  let busy = false;
  const drain = async (): Promise<void> => {
    while (newest && !signal.aborted) {
      const progress = newest;
      newest = undefined;
      report(progress);
      await sleep(progress_every_ms, signal);
    }
    busy = false;
  };
  return (message: string, pct?: number): void => {
    newest = { message: cut(cleanText(message), sentence_chars_max), pct: percent(pct) };
    if (busy) return;
    busy = true;
    void drain();
  };
}

function percent(pct: number | undefined): number | null {
  return pct === undefined || Number.isNaN(pct) ? null : Math.min(100, Math.max(0, pct));
}

// Takes up a task that an earlier run of the connector left pending or running.

interface TakenUp {
  readonly task: Task;
  /** Why it is over at once; undefined when it may still run once its asset is there. */
  readonly refusal: string | undefined;
}

export function takeUp(entry: JournalEntry, stamp: Stamp): TakenUp {
  const { dispatch, origin, repeatable } = readJournaled(entry.dispatch);
  const judged = dispatch
    ? judgeAgain(dispatch, entry.deadline_ms, stamp)
    : { refusal: notSent(texts.restart_unreadable) };
  const due =
    'refusal' in judged
      ? {
          deadline_ms: entry.deadline_ms ?? stamp.time_ms,
          due_mono_ms: stamp.mono_ms,
          created_mono_ms: null,
        }
      : judged;
  const facts = {
    id: entry.task_id,
    asset_id: dispatch?.asset_id ?? null,
    command_name: dispatch?.command_name ?? null,
    payload: dispatch?.payload ?? {},
    origin,
    text: entry.dispatch,
    received_ms: entry.received_ms,
    patient: true,
    ...due,
  };
  const task = createTask(facts, { state: journaledState(entry, stamp) });
  return { task, refusal: refusalOf(task, judged, repeatable) };
}

function refusalOf(task: Task, judged: object, repeatable: boolean): string | undefined {
  const late = 'refusal' in judged && typeof judged.refusal === 'string' ? judged.refusal : undefined;
  if (task.state.status !== 'running') return late;
  // Its outcome stays unknown, however long its asset or its deadline takes: it is reported at once.
  return late === undefined && repeatable ? undefined : texts.interrupted;
}

function journaledState({ state, received_ms }: JournalEntry, stamp: Stamp): TaskState {
  const left: TaskState =
    state === 'running' ? { status: 'running', revision: 1, attempt: 'first' } : received;
  const moved = transition(left, { kind: 'restart', elapsed_ms: stamp.time_ms - received_ms });
  return moved.kind === 'moved' ? moved.state : left;
}
