/** Moves tasks from state to state, and writes each move to the journal together with the report of it. */
import type { DriverLog } from '../driver/driver.ts';
import { InvariantBroken, messageOf } from '../errors.ts';
import type { Appender, Draft, Journal } from '../outbox/api.ts';
import type { JournalEntry } from '../outbox/protocol.ts';
import type { Clock } from '../platform/clock.ts';
import { remembered_max } from './limits.ts';
import { isTerminal, type TaskEvent, transition } from './machine.ts';
import type { Progress } from './progress.ts';
import { draftOf, entryOf, finalDraft, type Task } from './task.ts';

export type TaskLog = Pick<DriverLog, 'info' | 'warn' | 'error'>;

export interface ScribeOptions {
  readonly journal: Pick<Journal, 'record'>;
  readonly outbox: Appender;
  readonly clock: Clock;
  readonly log: TaskLog;
}

/** An entry of the journal and the report that belongs to it. */
interface Written {
  readonly entry: JournalEntry;
  readonly report: Draft;
}

export class Scribe {
  readonly #options: ScribeOptions;
  /** Ends that the disk does not have yet, and perhaps never will. */
  readonly #remembered = new Map<string, Written>();
  readonly #writes = new Set<Promise<void>>();
  readonly #ended = { completed: 0, failed: 0 };
  #closed = false;

  constructor(options: ScribeOptions) {
    this.#options = options;
  }

  /** Tasks that ended since the connector started. */
  get ended(): { readonly completed: number; readonly failed: number } {
    return { ...this.#ended };
  }

  get unwritten(): readonly JournalEntry[] {
    return [...this.#remembered.values()].map(({ entry }) => entry);
  }

  /** Resolves once `running` is on disk; rejects when the disk does not take it, and then nothing may be done. */
  async start(task: Task): Promise<void> {
    const { entry, report } = this.#move(task, { kind: 'start' });
    await this.#options.journal.record(entry, report);
  }

  /** Ends the task. Nobody waits for the disk: until it has the end, it is remembered here. */
  finish(task: Task, event: TaskEvent): void {
    if (!this.#closed) void this.keep(this.#move(task, event));
  }

  /** Moves a dispatch that fails at once, and gives what is to be journaled and reported of it. */
  refuse(task: Task, error: string): Written {
    return this.#move(task, { kind: 'fail', error });
  }

  /** Journals an end together with its report. Resolves when both are on disk, or when the disk does not take them. */
  async keep(final: Written): Promise<void> {
    const { task_id, state } = final.entry;
    this.#count(final);
    this.#remember(task_id, final);
    const write = this.#options.journal.record(final.entry, final.report).then(
      () => void this.#remembered.delete(task_id),
      (error: unknown) => {
        this.#options.log.error(
          { task_id, state, reason: messageOf(error) },
          'a task ended and could not be journaled',
        );
      },
    );
    this.#writes.add(write);
    await write;
    this.#writes.delete(write);
  }

  progress(task: Task, { message, pct }: Progress): void {
    if (this.#closed) return;
    this.#options.outbox.append(this.#move(task, { kind: 'progress', message, pct }).report);
  }

  /** Sends the final report again, if the task is over. */
  resend(entry: JournalEntry): void {
    const report = finalDraft(entry);
    if (report) this.#options.outbox.append(report);
  }

  /** Sends the final report again, if it is one that the disk does not have. */
  resendRemembered(task_id: string): boolean {
    const known = this.#remembered.get(task_id);
    if (known) this.#options.outbox.append(known.report);
    return known !== undefined;
  }

  /** Resolves when all that was written so far is on disk or refused. */
  async settled(): Promise<void> {
    await Promise.all(this.#writes);
  }

  /** From now on the journal belongs to the next run: what still happens is not written. */
  close(): void {
    this.#closed = true;
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

  #count({ entry }: Written): void {
    if (entry.state === 'completed' || entry.state === 'failed') this.#ended[entry.state] += 1;
  }

  #remember(task_id: string, final: Written): void {
    this.#remembered.set(task_id, final);
    const [oldest] = this.#remembered.keys();
    if (this.#remembered.size > remembered_max && oldest !== undefined) this.#remembered.delete(oldest);
  }
}
