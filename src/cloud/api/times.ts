/** The one reader of the times that clients and people write. */
import { z } from 'zod';
import { texts } from '../texts.ts';

/** With a zone, since the answer may not depend on where the service runs; days that do not exist are refused. */
export const zonedTime = z.iso.datetime({
  offset: true,
  error: ({ input }) => texts.no_zoned_time(String(input)),
});

/** Milliseconds since 1970 of 2001 to 2286: numbers of ten digits are seconds, and would be read as 1970. */
const milliseconds = /^[1-9]\d{12}$/u;

/** Returns milliseconds since 1970; undefined: the text is no such time. `Date.parse` finds one in nearly any text, such as "day -1". */
export function readTime(text: string): number | undefined {
  if (milliseconds.test(text)) return Number(text);
  return zonedTime.safeParse(text).success ? Date.parse(text) : undefined;
}

/** Whether it is a name of the IANA time zone database. */
export function isZone(name: string): boolean {
  try {
    return new Intl.DateTimeFormat('en', { timeZone: name }).resolvedOptions().timeZone !== '';
  } catch {
    return false;
  }
}
