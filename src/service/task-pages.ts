/** Tasks of a kit over the pages of the store, which are smaller than asked for where tasks are large. */
import type { Store, StoredTask, TaskQuery } from './store/store.ts';

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
