import type { ChildProcess } from 'node:child_process';

/** Processes that a test file may leave to the next one, by pid. Modules are read again for each file; what is global stays. */
const place = Symbol.for('processes that outlive a test file');
const kept = globalThis as { [place]?: Set<number> };

export const outliving = (kept[place] ??= new Set());

/** Leaves it to the next test files; it does not keep this process alive. */
export function outlive(child: ChildProcess): void {
  child.unref();
  if (child.pid !== undefined) outliving.add(child.pid);
}
