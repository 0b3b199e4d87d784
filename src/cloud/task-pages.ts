/** Pages of tasks of a kit: the store has smaller ones than asked for where tasks are large, and a client continues at a cursor. */
import type { StoredTask, TaskQuery } from './stored/stored.ts';
import type { Store } from './store/sql-store.ts';

/** Returns up to `query.limit` tasks, the newest first, and whether more follow. */
export async function taskPage(
  store: Pick<Store, 'tasks'>,
  kit_id: string,
  query: TaskQuery,
): Promise<{ readonly tasks: readonly StoredTask[]; readonly hasMore: boolean }> {
  const found = await store.tasks(kit_id, { ...query, limit: query.limit + 1 });
  if (found.length > query.limit) return { tasks: found.slice(0, query.limit), hasMore: true };
  const after = found.at(-1);
  const rest = after ? await store.tasks(kit_id, { ...query, after, limit: 1 }) : [];
  return { tasks: found, hasMore: rest.length > 0 };
}

/** Returns up to `count` tasks, the newest first, whatever their size. */
export async function latestTasks(
  store: Pick<Store, 'tasks'>,
  kit_id: string,
  count: number,
): Promise<readonly StoredTask[]> {
  const found: StoredTask[] = [];
  while (found.length < count) {
    const page = await store.tasks(kit_id, { after: found.at(-1), limit: count - found.length });
    if (page.length === 0) break;
    found.push(...page);
  }
  return found;
}

type Place = NonNullable<TaskQuery['after']>;

const form = /^(\d{1,15})\.([0-9a-f-]{36})$/u;

export function cursorAfter({ created_ms, task_id }: StoredTask): string {
  return Buffer.from(`${created_ms}.${task_id}`).toString('base64url');
}

/** Undefined: the text is not a cursor of this service. */
export function readCursor(text: string): Place | undefined {
  const [, created_ms, task_id] = form.exec(Buffer.from(text, 'base64url').toString('latin1')) ?? [];
  return task_id === undefined ? undefined : { created_ms: Number(created_ms), task_id };
}
