/** The place in a list of tasks from which the next page continues. Opaque to clients. */
import type { StoredTask, TaskQuery } from '../store/store.ts';

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
