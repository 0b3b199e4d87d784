/** The lines of tasks, one for each asset: order, limits, and that a line ends with its last task. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { InvariantBroken, notSent } from '../../../../src/platform/errors.ts';
import { task_limits } from '../../../../src/kit/tasks/limits.ts';
import { TaskQueue } from '../../../../src/kit/tasks/scheduler.ts';
import { createTask, type Task } from '../../../../src/kit/tasks/task.ts';
import { texts } from '../../../../src/kit/tasks/texts.ts';

const limits = { ...task_limits, waiting_per_asset_max: 3, waiting_max: 5 };

function taskOf(id: string, asset_id: string | null): Task {
  return createTask({
    id,
    asset_id,
    command_name: 'goto_waypoint',
    payload: {},
    origin: undefined,
    text: '{}',
    received_ms: 0,
    patient: false,
    deadline_ms: 60_000,
    due_mono_ms: 60_000,
    created_mono_ms: 0,
  });
}

function filled(ids: readonly string[], asset_id = 'drone') {
  const queue = new TaskQueue(limits);
  const tasks = ids.map((id) => taskOf(id, asset_id));
  for (const task of tasks) queue.add(task);
  return { queue, tasks };
}

describe('TaskQueue', () => {
  it('keeps tasks of one asset in the order of reception, one running at a time', () => {
    const { queue, tasks } = filled(['a', 'b', 'c']);
    const [first, second] = tasks as [Task, Task, Task];
    queue.start(first);
    expect(queue.lines()).toEqual([{ running: first, waiting: tasks.slice(1) }]);
    expect(() => queue.start(second)).toThrow(InvariantBroken);
    queue.remove(first);
    queue.start(second);
    expect([queue.isRunning(first), queue.isRunning(second)]).toEqual([false, true]);
  });

  it('starts no task before those that were received earlier', () => {
    const { queue, tasks } = filled(['a', 'b']);
    expect(() => queue.start(tasks[1] as Task)).toThrow(InvariantBroken);
  });

  it('lets no further task wait for an asset with a full line, and names how many wait', () => {
    const { queue } = filled(['a', 'b', 'c']);
    expect(queue.full('drone', false)).toBe(notSent(texts.asset_full(3)));
    expect(queue.full('camera', false)).toBeUndefined();
  });

  it('lets no further task wait on a kit with too many, whatever its asset', () => {
    const { queue } = filled(['a', 'b', 'c']);
    for (const id of ['d', 'e']) queue.add(taskOf(id, 'camera'));
    expect(queue.full('radio', false)).toBe(notSent(texts.kit_full(5)));
  });

  it('counts waiting tasks only: those that run take no place', () => {
    const { queue, tasks } = filled(['a', 'b', 'c']);
    queue.start(tasks[0] as Task);
    expect(queue.full('drone', false)).toBeUndefined();
  });

  it('has room for a safety command always', () => {
    const { queue } = filled(['a', 'b', 'c', 'd', 'e', 'f']);
    expect(queue.full('drone', true)).toBeUndefined();
  });

  it('refuses a task without an asset as a contradiction', () => {
    expect(() => new TaskQueue(limits).add(taskOf('a', null))).toThrow(InvariantBroken);
  });

  it('removes a waiting task from the middle of its line', () => {
    const { queue, tasks } = filled(['a', 'b', 'c']);
    queue.remove(tasks[1] as Task);
    expect(queue.lines()[0]?.waiting.map(({ id }) => id)).toEqual(['a', 'c']);
    expect(queue.find('b')).toBeUndefined();
    expect(queue.find('c')).toBe(tasks[2]);
  });

  it('agrees with a list for each asset over any order of operations, and keeps no line without tasks', () => {
    fc.assert(
      fc.property(fc.array(operation, { maxLength: 60 }), (operations) => {
        const queue = new TaskQueue(limits);
        const model: Model = new Map();
        for (const [index, each] of operations.entries()) apply(each, String(index), queue, model);
        const lines = [...model.values()];
        expect(queue.lines()).toHaveLength(lines.length);
        for (const line of lines) expect(queue.lines()).toContainEqual(line);
        expect(queue.counts()).toEqual({
          pending: lines.reduce((sum, { waiting }) => sum + waiting.length, 0),
          running: lines.filter(({ running }) => running).length,
        });
      }),
      { numRuns: 300 },
    );
  });
});

const operation = fc.record({
  kind: fc.constantFrom('add', 'start', 'remove'),
  asset: fc.constantFrom('a', 'b', 'c'),
  at: fc.nat(10),
});

/** The line of each asset that has one. */
type Model = Map<string, { readonly running: Task | undefined; readonly waiting: readonly Task[] }>;

/** Does the same to both, where it may be done. */
function apply(
  { kind, asset, at }: { readonly kind: string; readonly asset: string; readonly at: number },
  id: string,
  queue: TaskQueue,
  model: Model,
): void {
  const { running, waiting } = model.get(asset) ?? { running: undefined, waiting: [] };
  const [first, ...others] = waiting;
  if (kind === 'add') {
    const task = taskOf(id, asset);
    queue.add(task);
    model.set(asset, { running, waiting: [...waiting, task] });
  } else if (kind === 'start' && !running && first) {
    queue.start(first);
    model.set(asset, { running: first, waiting: others });
  } else if (kind === 'remove') {
    const all = [...(running ? [running] : []), ...waiting];
    const chosen = all[at % Math.max(1, all.length)];
    if (!chosen) return;
    queue.remove(chosen);
    const left = all.filter((each) => each !== chosen);
    if (left.length === 0) model.delete(asset);
    else {
      const runs = running === chosen ? undefined : running;
      model.set(asset, { running: runs, waiting: left.filter((each) => each !== runs) });
    }
  }
}
