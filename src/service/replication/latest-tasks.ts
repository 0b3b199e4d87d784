/** The latest tasks of a kit, over as many pages of the store as large ones take. */
import type { Store, StoredTask } from '../store/store.ts';

/** Returns up to `count` tasks, the newest first. */
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
