/** The English sentences of the page, as its modules hold them. */
import { en } from '../../../src/console/words/en.ts';

/** The sentence with this id, such as `lock.noLink`. */
export function word(id: string): string {
  let found: unknown = en;
  for (const part of id.split('.')) found = (found as Readonly<Record<string, unknown>> | undefined)?.[part];
  if (typeof found !== 'string') throw new Error(`the page has no sentence ${id}`);
  return found;
}
