/** Carries out one task: journals its start, calls the handler, and never waits for a handler that does not stop. */
import type { Command, Invocation } from '../../toolkit/driver/command.ts';
import { CommandRefused, notSent } from '../../platform/errors.ts';
import type { Clock } from '../../platform/clock.ts';
import { aborted, sleep } from '../../platform/time.ts';
import type { ObserveTasks } from './activity.ts';
import { deadline_grace_ms, supersede_grace_ms } from './limits.ts';
import type { TaskEvent } from './machine.ts';
import type { Ending, Runnable, Task } from './task.ts';
import { pacedProgress } from './progress.ts';
import { reportable } from './result.ts';
import type { TaskLog, TaskRecorder } from './task-recorder.ts';
import { cannotRecord, thrownSentence } from './sentences.ts';
import { isPast } from './timing.ts';
import { texts } from './texts.ts';

export interface ExecutionParts {
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
export async function execute(
  task: Task,
  { command, invocation }: Runnable,
  parts: ExecutionParts,
): Promise<void> {
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
export function interrupt(task: Task, ending: Ending): void {
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
