/** Takes up a task that an earlier run of the connector left pending or running. */
import { notSent } from '../../platform/errors.ts';
import type { JournalEntry } from '../outbox/protocol.ts';
import type { Stamp } from '../../platform/clock.ts';
import { readJournaled } from './dispatch.ts';
import { received, type TaskState, transition } from './machine.ts';
import { createTask, type Task } from './task.ts';
import { judgeAgain } from './timing.ts';
import { texts } from './texts.ts';

export interface TakenUp {
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
