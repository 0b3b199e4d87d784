/** One sentence for what a schema refused: the first fault and how many more there are, however many were found. */
import type { z } from 'zod';

const sentence_chars_max = 300;

export function firstFault({ issues }: z.ZodError): string {
  const [first] = issues;
  if (!first) return 'does not fit the contract';
  const place = first.path.length > 0 ? `${first.path.join('.')}: ` : '';
  const more = issues.length > 1 ? ` (and ${issues.length - 1} more)` : '';
  return `${`${place}${first.message}`.slice(0, sentence_chars_max)}${more}`;
}
