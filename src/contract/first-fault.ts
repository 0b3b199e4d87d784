/** One sentence for what a schema refused: the first fault and how many more there are, however many were found. */
import { z } from 'zod';
import type { JsonObject } from './json.ts';

const sentence_chars_max = 300;
/** Of a value that is wrong, so much is shown. */
const value_chars_max = 60;

interface Refused {
  readonly value: unknown;
  /** What it is called, as the first word of the path; empty: nothing. */
  readonly name: string;
}

/** `refused`: with it, the sentence has the value that is wrong, where that is a text or a number. */
export function firstFault({ issues }: z.ZodError, refused?: Refused): string {
  const [first] = issues;
  if (!first) return 'does not fit the contract';
  const path = [...(refused?.name ? [refused.name] : []), ...first.path];
  const place = path.length > 0 ? `${path.join('.')}: ` : '';
  const message = refused ? first.message.replace(/^Invalid input: /u, '') : first.message;
  const received = refused ? receivedText(first, refused.value) : '';
  const more = issues.length > 1 ? ` (and ${issues.length - 1} more)` : '';
  return `${`${place}${message}${received}`.slice(0, sentence_chars_max)}${more}`;
}

function receivedText({ path, message }: z.core.$ZodIssue, whole: unknown): string {
  const value = path.reduce<unknown>(
    (at, key) => (typeof at === 'object' && at !== null ? Reflect.get(at, key) : undefined),
    whole,
  );
  if (typeof value !== 'string' && typeof value !== 'number' && typeof value !== 'boolean') return '';
  const text = JSON.stringify(typeof value === 'string' ? value.slice(0, value_chars_max) : value);
  return /, received \w+$/u.test(message) ? ` ${text}` : `, received ${text}`;
}

const described = z.object({ description: z.string() });

/** What the number that breaks a bound counts from, as the command describes the field: ` (metres above home)`. */
export function datumOf({ code, path }: z.core.$ZodIssue, { properties }: JsonObject): string {
  if (code !== 'too_big' && code !== 'too_small') return '';
  const fields = z.record(z.string(), z.unknown()).safeParse(properties).data ?? {};
  const field = described.safeParse(fields[String(path[0])]).data;
  return field ? ` (${field.description})` : '';
}
