/** The life of a task as a pure function: pending, running, then completed or failed, and no way back. */
import type { JsonObject } from '../../contract/json.ts';
import type { TaskReport } from '../../contract/tasks.ts';
import { notSent } from '../../platform/errors.ts';
import { texts } from './texts.ts';

export type TaskState =
  | { readonly status: 'pending'; readonly revision: number }
  | { readonly status: 'running'; readonly revision: number; readonly attempt: Attempt }
  | TerminalState;

/**
 * `first`: its handler runs for the first time. `interrupted`: an earlier run of the connector started it, and no handler
 * runs now. `repeated`: its handler runs once more, and what the earlier run did is not known.
 */
export type Attempt = 'first' | 'interrupted' | 'repeated';

export interface TerminalState {
  readonly status: 'completed' | 'failed';
  readonly revision: typeof final_revision;
  readonly result: JsonObject;
}

export type TaskEvent =
  | { readonly kind: 'start' }
  | { readonly kind: 'progress'; readonly message: string; readonly pct: number | null }
  | { readonly kind: 'succeed'; readonly result: JsonObject }
  | { readonly kind: 'fail'; readonly error: string }
  /** `detail`: what the handler reported about the outcome. */
  | { readonly kind: 'cancel'; readonly detail?: string }
  /** A safety command of this name takes its place. */
  | { readonly kind: 'supersede'; readonly by: string; readonly detail?: string }
  | { readonly kind: 'expire' }
  /** The connector starts and finds the task in its journal, `elapsed_ms` after it was received. */
  | { readonly kind: 'restart'; readonly elapsed_ms: number };

/** The part of a report that follows from the transition. */
export type ReportBody = Pick<TaskReport, 'status' | 'revision' | 'result' | 'progress'>;

export type Transition =
  | { readonly kind: 'moved'; readonly state: TaskState; readonly report: ReportBody | undefined }
  | { readonly kind: 'refused'; readonly why: string };

/**
 * The revision of every final report. It is one number, so that the journal need not keep it and a report that is sent
 * again after a restart is the same report.
 */
export const final_revision = 2 ** 31 - 1;
/** Leaves room for the reports of one run below the final one. */
const restart_revision_max = 2 ** 30;

export const received: TaskState = { status: 'pending', revision: 0 };

/** What `event` makes of a task in `state`, and what is to be reported. Nothing leaves a final state. */
export function transition(state: TaskState, event: TaskEvent): Transition {
  switch (state.status) {
    case 'pending':
      return fromPending(state, event);
    case 'running':
      return fromRunning(state, event);
    case 'completed':
    case 'failed':
      break;
  }
  return { kind: 'refused', why: `the task is ${state.status} already` };
}

export function isTerminal(state: TaskState): state is TerminalState {
  return state.status === 'completed' || state.status === 'failed';
}

function fromPending(state: TaskState & { status: 'pending' }, event: TaskEvent): Transition {
  switch (event.kind) {
    case 'start':
      return running(state.revision + 1, 'first');
    case 'fail':
      return failed(event.error);
    case 'cancel':
      return failed(texts.cancelled_early);
    case 'supersede':
      return failed(texts.superseded_by(event.by));
    case 'expire':
      return failed(notSent(texts.expired_early));
    case 'restart':
      return {
        kind: 'moved',
        state: { ...state, revision: leapt(state, event.elapsed_ms) },
        report: undefined,
      };
    case 'progress':
    case 'succeed':
      break;
  }
  return { kind: 'refused', why: 'the task has not started' };
}

function fromRunning(state: TaskState & { status: 'running' }, event: TaskEvent): Transition {
  if (state.attempt === 'interrupted') return fromInterrupted(state, event);
  switch (event.kind) {
    case 'start':
      break;
    case 'progress':
      return running(state.revision + 1, state.attempt, { message: event.message, pct: event.pct });
    case 'succeed':
      return { kind: 'moved', ...final('completed', event.result) };
    case 'fail':
      return failed(ofAttempt(state, event.error));
    case 'cancel':
      return failed(ofAttempt(state, detailed(texts.cancelled_running, event.detail)));
    case 'supersede':
      return failed(ofAttempt(state, detailed(texts.superseded_by(event.by), event.detail)));
    case 'expire':
      return failed(texts.no_answer);
    case 'restart':
      return interrupted(state, event.elapsed_ms);
  }
  return { kind: 'refused', why: 'the task is running already' };
}

/** Only the start of a repeatable command leads out of here with more to come. */
function fromInterrupted(state: TaskState & { status: 'running' }, event: TaskEvent): Transition {
  switch (event.kind) {
    case 'start':
      return running(state.revision + 1, 'repeated');
    case 'fail':
      return failed(ofAttempt(state, event.error));
    case 'cancel':
    case 'supersede':
    case 'expire':
      return failed(texts.interrupted);
    case 'restart':
      return interrupted(state, event.elapsed_ms);
    case 'progress':
    case 'succeed':
      break;
  }
  return { kind: 'refused', why: 'the task was interrupted and has not started again' };
}

/** What is true of the last run is not all that is true of the machine when there was an earlier one. */
function ofAttempt({ attempt }: TaskState & { status: 'running' }, error: string): string {
  return attempt === 'first' || error === texts.interrupted
    ? error
    : `${error}; ${texts.earlier_interrupted}`;
}

function running(revision: number, attempt: Attempt, progress?: ReportBody['progress']): Transition {
  const report: ReportBody = { status: 'running', revision, result: {}, ...(progress ? { progress } : {}) };
  return { kind: 'moved', state: { status: 'running', revision, attempt }, report };
}

function interrupted(before: TaskState, elapsed_ms: number): Transition {
  const state: TaskState = { status: 'running', revision: leapt(before, elapsed_ms), attempt: 'interrupted' };
  return { kind: 'moved', state, report: undefined };
}

/**
 * Reports that are not final may have left from memory only, so their number is not known after a restart. There is at
 * most one a second: the milliseconds since the task was received are more.
 */
function leapt({ revision }: TaskState, elapsed_ms: number): number {
  const leap = Math.min(Math.max(0, Math.floor(elapsed_ms)), restart_revision_max);
  return Math.max(revision, leap);
}

function detailed(error: string, detail: string | undefined): string {
  return detail === undefined ? error : `${error}: ${detail}`;
}

function failed(error: string): Transition {
  return { kind: 'moved', ...final('failed', { error }) };
}

function final(status: 'completed' | 'failed', result: JsonObject) {
  const state: TerminalState = { status, revision: final_revision, result };
  return { state, report: state };
}
