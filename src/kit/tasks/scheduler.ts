/** Decides whose turn it is: the first of each line once its asset is there, and a safety command before all others. */
import { sleep, aborted } from '../../platform/time.ts';
import { type FindCommand, offline } from './admission.ts';
import { type TaskLimits, deadline_grace_ms, supersede_grace_ms } from './limits.ts';
import type { TaskEvent } from './machine.ts';
import { type Ending, readingBy, type Runnable, type Task } from './task.ts';
import { isPast } from './timing.ts';
import { texts } from './texts.ts';
import { InvariantBroken, notSent, CommandRefused } from '../../platform/errors.ts';
import type { Command, Invocation } from '../../toolkit/driver/command.ts';
import type { Clock } from '../../platform/clock.ts';
import type { ObserveTasks } from './activity.ts';
import { pacedProgress, type TaskLog, type TaskRecorder } from './task-recorder.ts';
import { reportable } from './result.ts';
import { cannotRecord, thrownSentence } from './sentences.ts';

interface SchedulerParts extends ExecutionParts {
  readonly findCommand: FindCommand;
  readonly limits: TaskLimits;
}

/** What is to be done with the first of a line. */
type Turn =
  | { readonly kind: 'wait' }
  | { readonly kind: 'end'; readonly event: TaskEvent }
  | { readonly kind: 'run'; readonly reading: Runnable };

export class Scheduler {
  readonly queue: TaskQueue;
  readonly #parts: SchedulerParts;
  readonly #executions = new Set<Promise<void>>();
  #halted = false;

  constructor(parts: SchedulerParts) {
    this.#parts = parts;
    this.queue = new TaskQueue(parts.limits);
  }

  get halted(): boolean {
    return this.#halted;
  }

  /** The tasks are journaled: from now on they may start, be pre-empted, or expire. */
  admit(...tasks: readonly Task[]): void {
    for (const task of tasks) {
      task.admitted = true;
      if (task.ending && task.ending.kind !== 'stop') this.#end(task, task.ending);
      else if (!this.#halted) void this.#watchDeadline(task);
    }
    this.advance();
  }

  /** The journal does not take the task. */
  leave(task: Task): void {
    this.queue.remove(task);
    this.advance();
  }

  cancel(task: Task): void {
    if (task.ending) return;
    if (this.queue.isRunning(task)) interrupt(task, { kind: 'cancel' });
    else this.#endWaiting(task, { kind: 'cancel' });
    this.advance();
  }

  /** Looks at every line: something has changed. */
  advance(): void {
    for (const line of this.queue.lines()) this.#advance(line);
  }

  /** Stops the running tasks and starts no more. Resolves when all of them have stopped. */
  async halt(): Promise<void> {
    if (!this.#halted) {
      this.#halted = true;
      for (const task of this.queue.tasks()) {
        task.gone.abort();
        if (this.queue.isRunning(task) && !task.ending) interrupt(task, { kind: 'stop' });
      }
    }
    await Promise.all(this.#executions);
  }

  #advance(line: Line): void {
    if (this.#halted) return;
    for (const task of line.waiting.filter((each) => this.#mayLeaveLine(each)))
      this.#advance(this.queue.setApart(task));
    this.#preempt(line);
    while (!line.running) {
      const [first] = line.waiting;
      if (!first?.admitted) return;
      const turn = this.#turn(first);
      if (turn.kind === 'wait') return;
      if (turn.kind === 'end') this.#end(first, turn.event);
      else this.#begin(first, line, turn.reading);
    }
  }

  #mayLeaveLine(task: Task): boolean {
    if (task.apart || !task.admitted) return false;
    const turn = this.#turn(task);
    return turn.kind === 'run' && turn.reading.command.own_line;
  }

  /** The newest safety command takes the place of all that were received before it. */
  #preempt(line: Line): void {
    const at = line.waiting.findLastIndex((task) => this.#isReadySafety(task));
    const safety = line.waiting[at];
    if (!safety) return;
    const ending: Ending = { kind: 'supersede', by: safety.command_name ?? '' };
    for (const earlier of line.waiting.slice(0, at)) this.#endWaiting(earlier, ending);
    if (line.running && line.running.ending?.kind !== 'supersede') interrupt(line.running, ending);
  }

  /** A safety command that cannot be carried out, or that may be a second copy, stops nothing. */
  #isReadySafety(task: Task): boolean {
    if (!task.admitted) return false;
    const turn = this.#turn(task);
    return turn.kind === 'run' && turn.reading.invocation.is_safety;
  }

  #turn(task: Task): Turn {
    const { findCommand, clock } = this.#parts;
    if (isPast(task, clock.stamp())) return { kind: 'end', event: { kind: 'expire' } };
    const found = findCommand(task.asset_id ?? '', task.command_name ?? '');
    if ('refusal' in found) return task.patient ? { kind: 'wait' } : fail(found.refusal);
    const { asset, command } = found;
    if (task.state.status === 'running' && !command.repeatable) return fail(texts.interrupted);
    if (!asset.online) return task.patient ? { kind: 'wait' } : fail(offline(asset));
    const reading = readingBy(command, task);
    return 'refusal' in reading ? fail(reading.refusal) : { kind: 'run', reading };
  }

  #begin(task: Task, line: Line, reading: Runnable): void {
    this.queue.start(task);
    const execution = this.#run(task, line, reading).finally(() => this.#executions.delete(execution));
    this.#executions.add(execution);
  }

  async #run(task: Task, line: Line, reading: Runnable): Promise<void> {
    await execute(task, reading, this.#parts);
    this.queue.remove(task);
    this.#advance(line);
  }

  #end(task: Task, event: TaskEvent): void {
    this.queue.remove(task);
    this.#parts.recorder.finish(task, event);
  }

  /** What the journal does not have yet cannot end yet: it ends once it is admitted. */
  #endWaiting(task: Task, ending: Exclude<Ending, { kind: 'stop' }>): void {
    if (task.admitted) this.#end(task, ending);
    else task.ending = ending;
  }

  async #watchDeadline(task: Task): Promise<void> {
    await sleep(task.due_mono_ms - this.#parts.clock.stamp().mono_ms, task.gone.signal);
    if (task.gone.signal.aborted) return;
    if (this.queue.isRunning(task)) interrupt(task, { kind: 'expire' });
    else this.#end(task, { kind: 'expire' });
    this.advance();
  }
}

function fail(error: string): Turn {
  return { kind: 'end', event: { kind: 'fail', error } };
}

interface Line {
  readonly running: Task | undefined;
  readonly waiting: readonly Task[];
}

/**
 * The lines of tasks, one for each asset, and one more for each command that does not touch it: who runs, who waits, in the order of
 * reception, within limits.
 */
export class TaskQueue {
  readonly #limits: TaskLimits;
  readonly #tasks = new Map<string, Task>();
  /** By `keyOf`; without tasks there is no line. */
  readonly #lines = new Map<string, { running: Task | undefined; readonly waiting: Task[] }>();

  constructor(limits: TaskLimits) {
    this.#limits = limits;
  }

  find(task_id: string): Task | undefined {
    return this.#tasks.get(task_id);
  }

  tasks(): readonly Task[] {
    return [...this.#tasks.values()];
  }

  lines(): readonly Line[] {
    return [...this.#lines.values()];
  }

  counts(): { readonly pending: number; readonly running: number } {
    const running = this.lines().filter((line) => line.running).length;
    return { pending: this.#tasks.size - running, running };
  }

  isRunning(task: Task): boolean {
    return this.#line(task).running === task;
  }

  /** Why no further task of the asset may wait. A safety command always may: it takes the place of the others. */
  full(asset_id: string, is_safety: boolean): string | undefined {
    if (is_safety) return undefined;
    const { waiting_per_asset_max, waiting_max } = this.#limits;
    const lines = this.lines();
    const here = lines.flatMap(({ waiting }) => waiting).filter((task) => task.asset_id === asset_id).length;
    if (here >= waiting_per_asset_max) return notSent(texts.asset_full(here));
    const all = lines.reduce((sum, { waiting }) => sum + waiting.length, 0);
    return all >= waiting_max ? notSent(texts.kit_full(all)) : undefined;
  }

  /** Puts the task at the end of the line of its asset. */
  add(task: Task): void {
    this.#tasks.set(task.id, task);
    this.#line(task).waiting.push(task);
  }

  /** Moves it from the line of its asset to the end of the line of its name, which is returned. */
  setApart(task: Task): Line {
    this.remove(task);
    task.apart = true;
    this.add(task);
    return this.#line(task);
  }

  /** Makes the first of a line the running one. */
  start(task: Task): void {
    const line = this.#line(task);
    if (line.running || line.waiting.shift() !== task)
      throw new InvariantBroken(`task ${task.id} started out of turn`);
    line.running = task;
  }

  /** Takes the task out of its line, whether it waits or runs. */
  remove(task: Task): void {
    const line = this.#line(task);
    this.#tasks.delete(task.id);
    const at = line.waiting.indexOf(task);
    if (at >= 0) line.waiting.splice(at, 1);
    if (line.running === task) line.running = undefined;
    if (!line.running && line.waiting.length === 0) this.#lines.delete(keyOf(task));
  }

  #line(task: Task) {
    const line = this.#lines.get(keyOf(task)) ?? { running: undefined, waiting: [] };
    this.#lines.set(keyOf(task), line);
    return line;
  }
}

function keyOf({ id, asset_id, apart, command_name }: Task): string {
  if (asset_id === null) throw new InvariantBroken(`task ${id} has no asset and cannot wait for one`);
  return apart ? `${asset_id} ${command_name}` : asset_id;
}

// Carries out one task: journals its start, calls the handler, and never waits for a handler that does not stop.

interface ExecutionParts {
  readonly recorder: TaskRecorder;
  readonly clock: Clock;
  readonly log: TaskLog;
  readonly observe: ObserveTasks;
}

type Outcome =
  | { readonly kind: 'succeeded'; readonly result: unknown }
  | { readonly kind: 'threw'; readonly thrown: unknown };

/**
 * Resolves when the asset is free again. The task is over then, unless the connector stops: a task that was not over in
 * time stays `running` in the journal.
 */
async function execute(task: Task, { command, invocation }: Runnable, parts: ExecutionParts): Promise<void> {
  const { recorder, clock, log, observe } = parts;
  /** What an earlier run of the connector did of it is not known. */
  const again = task.state.status === 'running';
  try {
    // A slow disk must not hold back a task beyond its deadline, nor a safety command behind it.
    await Promise.race([recorder.start(task), aborted(task.stop.signal)]);
  } catch (error) {
    recorder.finish(task, { kind: 'fail', error: again ? texts.interrupted : cannotRecord(error) });
    return;
  }
  // The disk took its time: the machine may have slept meanwhile, or the time of day was set.
  const ending = task.ending ?? (isPast(task, clock.stamp()) ? ({ kind: 'expire' } as const) : undefined);
  if (ending) {
    recorder.finish(task, { kind: 'fail', error: again ? texts.interrupted : notStarted(ending) });
    return;
  }
  task.started_mono_ms = clock.stamp().mono_ms;
  observe({ kind: 'started', task });
  const settled = invoke(task, invocation, { ...parts, again });
  const outcome = await Promise.race([settled, task.given_up.promise]);
  if (outcome) {
    conclude(task, command, outcome, parts);
    return;
  }
  recorder.finish(task, stoppedBy(task.ending));
  void logLate(task, settled, log);
}

async function logLate({ id, command_name }: Task, settled: Promise<Outcome>, log: TaskLog): Promise<void> {
  const { kind } = await settled;
  log.warn({ task_id: id, command: command_name, outcome: kind }, texts.late_result);
}

/** Requests the handler to stop. Its task ends with it, or at the end of its grace period. */
function interrupt(task: Task, ending: Ending): void {
  task.ending = ending;
  task.stop.abort(new CommandRefused(reasons[ending.kind]));
  const grace_ms = graces_ms[ending.kind];
  if (grace_ms !== undefined) void giveUpAfter(grace_ms, task);
}

async function giveUpAfter(grace_ms: number, task: Task): Promise<void> {
  await sleep(grace_ms, task.gone.signal);
  if (!task.gone.signal.aborted) task.given_up.resolve();
}

/** A cancelled handler may run until its deadline; a stopping connector has its own deadline. */
const graces_ms: Readonly<Record<Ending['kind'], number | undefined>> = {
  cancel: undefined,
  supersede: supersede_grace_ms,
  expire: deadline_grace_ms,
  stop: undefined,
};

const reasons: Readonly<Record<Ending['kind'], string>> = {
  cancel: texts.cancelled,
  supersede: texts.superseded,
  expire: texts.deadline_passed,
  stop: texts.stopping,
};

async function invoke(
  task: Task,
  invocation: Invocation,
  { recorder, clock, again }: ExecutionParts & { readonly again: boolean },
): Promise<Outcome> {
  try {
    const result = await invocation.run({
      signal: task.stop.signal,
      progress: pacedProgress(task.gone.signal, (progress) => recorder.progress(task, progress)),
      remaining_ms: () => Math.max(0, task.due_mono_ms - clock.stamp().mono_ms),
      repeated: again,
      age_ms: () => (task.created_mono_ms === null ? null : clock.stamp().mono_ms - task.created_mono_ms),
    });
    return { kind: 'succeeded', result };
  } catch (thrown) {
    return { kind: 'threw', thrown };
  }
}

/** A handler that succeeds has seen the effect: the task is completed, even after a request to stop. */
function conclude(task: Task, command: Command, outcome: Outcome, { recorder, log }: ExecutionParts): void {
  const { ending } = task;
  if (outcome.kind === 'succeeded') {
    recorder.finish(task, { kind: 'succeed', result: reportable(outcome.result) });
    return;
  }
  const { thrown } = outcome;
  const error = thrownSentence(thrown);
  // The report has another sentence then; the log keeps what the device did.
  if (ending)
    log.info({ task_id: task.id, reason: error }, `${command.name} stopped: ${reasons[ending.kind]}`);
  // The next run may do it again, and does so with what it finds in the journal.
  if (ending?.kind === 'stop' && command.repeatable) return;
  const explained = thrown instanceof CommandRefused && thrown !== task.stop.signal.reason;
  const own_words = !ending || (ending.kind === 'expire' && explained);
  recorder.finish(
    task,
    own_words ? { kind: 'fail', error } : stoppedBy(ending, explained ? error : undefined),
  );
}

/** `running` was on its way to the disk, and the handler was not called. */
function notStarted(ending: Ending): string {
  if (ending.kind === 'supersede') return texts.superseded_by(ending.by);
  if (ending.kind === 'cancel') return texts.cancelled_early;
  if (ending.kind === 'expire') return notSent(texts.expired_early);
  return notSent(texts.stopped_early);
}

function stoppedBy(ending: Ending | undefined, detail?: string): TaskEvent {
  if (ending?.kind === 'cancel' || ending?.kind === 'supersede')
    return { ...ending, ...(detail === undefined ? {} : { detail }) };
  if (!ending || ending.kind === 'stop') return { kind: 'fail', error: texts.interrupted_by_stop };
  return ending;
}
