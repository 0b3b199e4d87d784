/** Carries out one task: journals its start, calls the handler, and never waits for a handler that does not stop. */
import type { Command } from '../driver/command.ts';
import { CommandRefused } from '../errors.ts';
import type { Clock } from '../platform/clock.ts';
import { aborted, sleep } from '../platform/time.ts';
import { deadline_grace_ms, supersede_grace_ms } from './limits.ts';
import { interrupted_error, type TaskEvent } from './machine.ts';
import { pacedProgress } from './progress.ts';
import { reportable } from './result.ts';
import type { Scribe, TaskLog } from './scribe.ts';
import { cannotRecord, thrownSentence } from './sentences.ts';
import type { Ending, Task } from './task.ts';

export interface ExecutionParts {
  readonly scribe: Scribe;
  readonly clock: Clock;
  readonly log: TaskLog;
}

type Outcome =
  | { readonly kind: 'succeeded'; readonly result: unknown }
  | { readonly kind: 'threw'; readonly thrown: unknown };

/**
 * Resolves when the asset is free again. The task is over then, unless the connector stops: a task that was not over in
 * time stays `running` in the journal.
 */
export async function execute(task: Task, command: Command, parts: ExecutionParts): Promise<void> {
  const { scribe, log } = parts;
  /** What an earlier run of the connector did of it is not known. */
  const again = task.state.status === 'running';
  try {
    // A slow disk must not hold back a task beyond its deadline, nor a safety command behind it.
    await Promise.race([scribe.start(task), aborted(task.stop.signal)]);
  } catch (error) {
    scribe.finish(task, { kind: 'fail', error: again ? interrupted_error : cannotRecord(error) });
    return;
  }
  if (task.ending) {
    scribe.finish(task, { kind: 'fail', error: again ? interrupted_error : notStarted(task.ending) });
    return;
  }
  const settled = invoke(task, command, parts);
  const outcome = await Promise.race([settled, task.given_up.promise]);
  if (outcome) {
    conclude(task, command, outcome, parts);
    return;
  }
  scribe.finish(task, stoppedBy(task.ending));
  void logLate(task, settled, log);
}

async function logLate({ id, command_name }: Task, settled: Promise<Outcome>, log: TaskLog): Promise<void> {
  const { kind } = await settled;
  log.warn(
    { task_id: id, command: command_name, outcome: kind },
    'a handler settled after its task was over; ignored',
  );
}

/** Tells the handler to stop. Its task ends with it, or without it when its time is over. */
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

/** A cancelled handler may go on until its deadline; a stopping connector has a deadline of its own. */
const graces_ms: Readonly<Record<Ending['kind'], number | undefined>> = {
  cancel: undefined,
  supersede: supersede_grace_ms,
  expire: deadline_grace_ms,
  stop: undefined,
};

const reasons: Readonly<Record<Ending['kind'], string>> = {
  cancel: 'the task was cancelled',
  supersede: 'a safety command takes the place of the task',
  expire: 'the deadline of the task has passed',
  stop: 'the connector stops',
};

async function invoke(task: Task, command: Command, { scribe, clock }: ExecutionParts): Promise<Outcome> {
  try {
    const result = await command.invoke(task.payload, {
      signal: task.stop.signal,
      progress: pacedProgress(task.gone.signal, (progress) => scribe.progress(task, progress)),
      remaining_ms: () => Math.max(0, task.due_mono_ms - clock.stamp().mono_ms),
      age_ms: () => (task.created_mono_ms === null ? null : clock.stamp().mono_ms - task.created_mono_ms),
    });
    return { kind: 'succeeded', result };
  } catch (thrown) {
    return { kind: 'threw', thrown };
  }
}

/** A handler that succeeds has seen the effect: that counts, also when it was told to stop. */
function conclude(task: Task, command: Command, outcome: Outcome, { scribe, log }: ExecutionParts): void {
  const { ending } = task;
  if (outcome.kind === 'succeeded') {
    scribe.finish(task, { kind: 'succeed', result: reportable(outcome.result) });
    return;
  }
  const { thrown } = outcome;
  const error = thrownSentence(thrown);
  // The report has a sentence of its own then; what the device did is worth a line.
  if (ending) log.info({ task_id: task.id, reason: error }, `${command.name} was told to stop`);
  // The next run may do it again, and does so with what it finds in the journal.
  if (ending?.kind === 'stop' && command.repeatable) return;
  const explained = thrown instanceof CommandRefused && thrown !== task.stop.signal.reason;
  const own_words = !ending || (ending.kind === 'expire' && explained);
  scribe.finish(task, own_words ? { kind: 'fail', error } : stoppedBy(ending));
}

/** `running` was on its way to the disk, and the handler was not called. */
function notStarted(ending: Ending): string {
  if (ending.kind === 'supersede') return `superseded by ${ending.by}`;
  if (ending.kind === 'cancel') return 'cancelled before it started';
  if (ending.kind === 'expire') return 'expired: its deadline passed before it started; nothing was done';
  return 'the connector stopped before it started; nothing was done';
}

function stoppedBy(ending: Ending | undefined): TaskEvent {
  if (!ending || ending.kind === 'stop')
    return { kind: 'fail', error: 'interrupted by a stop of the connector, outcome unknown' };
  return ending;
}
