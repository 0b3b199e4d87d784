/** The life of a task, event by event. */
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { taskReport } from '../../../../src/contract/tasks.ts';
import {
  final_revision,
  isTerminal,
  received,
  type TaskEvent,
  type TaskState,
  transition,
} from '../../../../src/kit/tasks/machine.ts';
import { texts } from '../../../../src/kit/tasks/texts.ts';

const running: TaskState = { status: 'running', revision: 3, attempt: 'first' };
const interrupted: TaskState = { status: 'running', revision: 3, attempt: 'interrupted' };
const repeated: TaskState = { status: 'running', revision: 3, attempt: 'repeated' };
const earlier = texts.earlier_interrupted;

const start: TaskEvent = { kind: 'start' };
const progress: TaskEvent = { kind: 'progress', message: 'half way', pct: 50 };
const succeed: TaskEvent = { kind: 'succeed', result: { seen: true } };
const fail: TaskEvent = { kind: 'fail', error: 'low battery' };
const cancel: TaskEvent = { kind: 'cancel' };
const supersede: TaskEvent = { kind: 'supersede', by: 'disarm' };
const expire: TaskEvent = { kind: 'expire' };

const failures: readonly [TaskState, TaskEvent, string][] = [
  [received, fail, 'low battery'],
  [received, cancel, texts.cancelled_early],
  [received, supersede, 'superseded by disarm'],
  [received, expire, 'expired: its deadline passed before it started; command not sent'],
  [running, fail, 'low battery'],
  [running, cancel, 'cancelled while running'],
  [running, supersede, 'superseded by disarm'],
  [running, expire, texts.no_answer],
  [interrupted, fail, `low battery; ${earlier}`],
  [interrupted, cancel, texts.interrupted],
  [interrupted, supersede, texts.interrupted],
  [interrupted, expire, texts.interrupted],
  [repeated, fail, `low battery; ${earlier}`],
  [repeated, cancel, `cancelled while running; ${earlier}`],
  [repeated, supersede, `superseded by disarm; ${earlier}`],
  [repeated, expire, texts.no_answer],
];

const refusals: readonly [TaskState, TaskEvent][] = [
  [received, progress],
  [received, succeed],
  [running, start],
  [repeated, start],
  [interrupted, progress],
  [interrupted, succeed],
];

describe('a task', () => {
  it.each(failures)('in %j that meets %j fails with "%s"', (state, event, error) => {
    const result = { status: 'failed', revision: final_revision, result: { error } };
    expect(transition(state, event)).toEqual({ kind: 'moved', state: result, report: result });
  });

  it.each(refusals)('in %j refuses %j', (state, event) => {
    expect(transition(state, event).kind).toBe('refused');
  });

  it.each([
    [received, 'first'],
    [interrupted, 'repeated'],
  ] as const)('in %j starts with the next revision, as its %s run', (state, attempt) => {
    const revision = state.revision + 1;
    expect(transition(state, start)).toEqual({
      kind: 'moved',
      state: { status: 'running', revision, attempt },
      report: { status: 'running', revision, result: {} },
    });
  });

  it('is completed with its result when it succeeds', () => {
    const result = { status: 'completed', revision: final_revision, result: { seen: true } };
    expect(transition(running, succeed)).toEqual({ kind: 'moved', state: result, report: result });
  });

  it('is interrupted by a restart, reports nothing, and leaves room for progress that was not journaled', () => {
    expect(transition(running, { kind: 'restart', elapsed_ms: 60_000 })).toEqual({
      kind: 'moved',
      state: { status: 'running', revision: 60_000, attempt: 'interrupted' },
      report: undefined,
    });
    expect(transition(running, { kind: 'restart', elapsed_ms: -5 })).toMatchObject({
      state: { revision: 3 },
    });
    expect(transition(running, { kind: 'restart', elapsed_ms: Number.MAX_SAFE_INTEGER })).toMatchObject({
      state: { revision: 2 ** 30 },
    });
  });
});

const anyEvent: fc.Arbitrary<TaskEvent> = fc.oneof(
  fc.constantFrom(start, progress, succeed, fail, cancel, supersede, expire),
  fc.integer().map((elapsed_ms): TaskEvent => ({ kind: 'restart', elapsed_ms })),
);

describe('whatever happens to a task', () => {
  it('every report is one of the contract, its revision rises, and nothing follows the final one', () => {
    fc.assert(
      fc.property(fc.array(anyEvent, { maxLength: 40 }), (events) => {
        let state: TaskState = received;
        let revision = 0;
        let finals = 0;
        for (const event of events) {
          const moved = transition(state, event);
          if (moved.kind === 'refused') continue;
          expect(finals).toBe(0);
          state = moved.state;
          if (!moved.report) continue;
          taskReport.parse({
            task_id: crypto.randomUUID(),
            asset_id: null,
            command_name: null,
            ...moved.report,
          });
          expect(moved.report.revision).toBeGreaterThan(revision);
          revision = moved.report.revision;
          if (isTerminal(state)) finals += 1;
        }
      }),
    );
  });

  it('completion comes only after running, and pending never comes back', () => {
    fc.assert(
      fc.property(fc.array(anyEvent, { maxLength: 40 }), (events) => {
        const path = ['pending'];
        let state: TaskState = received;
        for (const event of events) {
          const moved = transition(state, event);
          if (moved.kind === 'moved') state = moved.state;
          if (path.at(-1) !== state.status) path.push(state.status);
        }
        expect([
          'pending',
          'pending running',
          'pending failed',
          'pending running failed',
          'pending running completed',
        ]).toContain(path.join(' '));
      }),
    );
  });
});
