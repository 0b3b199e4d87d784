/** The lines of tasks, one for each asset: who runs, who waits, in the order of reception, within limits. */
import { InvariantBroken, notSent } from '../errors.ts';
import type { TaskLimits } from './limits.ts';
import type { Task } from './task.ts';
import { texts } from './texts.ts';

export interface Line {
  readonly running: Task | undefined;
  readonly waiting: readonly Task[];
}

export class TaskQueue {
  readonly #limits: TaskLimits;
  readonly #tasks = new Map<string, Task>();
  /** By asset_id; an asset without tasks has no line. */
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
    const here = this.#lines.get(asset_id)?.waiting.length ?? 0;
    if (here >= waiting_per_asset_max) return notSent(texts.asset_full(here));
    const all = this.lines().reduce((sum, { waiting }) => sum + waiting.length, 0);
    return all >= waiting_max ? notSent(texts.kit_full(all)) : undefined;
  }

  /** Puts the task at the end of the line of its asset. */
  add(task: Task): void {
    this.#tasks.set(task.id, task);
    this.#line(task).waiting.push(task);
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

function keyOf({ id, asset_id }: Task): string {
  if (asset_id === null) throw new InvariantBroken(`task ${id} has no asset and cannot wait for one`);
  return asset_id;
}
