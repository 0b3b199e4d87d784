/** Cuts what a device reported to the limits of the contract: a long name must not cost the message that carries it. */
import type { z } from 'zod';
import { cut } from './limits.ts';

/** Rounds of cutting: a list is checked for its length only once its entries fit. */
const rounds_max = 4;

/** Parses; where the only faults are texts and lists beyond their limits, cuts those and parses again. */
export function fit<S extends z.ZodType>(schema: S, value: unknown): z.ZodSafeParseResult<z.output<S>> {
  let read = schema.safeParse(value);
  if (read.success || !isTooLong(read.error)) return read;
  const copy: unknown = structuredClone(value);
  for (let round = 0; round < rounds_max && !read.success && isTooLong(read.error); round += 1) {
    for (const issue of read.error.issues) if (issue.code === 'too_big') shorten(copy, issue);
    read = schema.safeParse(copy);
  }
  return read;
}

function isTooLong({ issues }: z.ZodError): boolean {
  return issues.every(({ code }) => code === 'too_big');
}

function shorten(value: unknown, { path, maximum }: z.core.$ZodIssueTooBig): void {
  const holder = path
    .slice(0, -1)
    .reduce<unknown>((from, key) => (isRecord(from) ? Reflect.get(from, key) : undefined), value);
  const key = path.at(-1);
  if (key === undefined || !isRecord(holder)) return;
  const long: unknown = Reflect.get(holder, key);
  if (typeof long === 'string') Reflect.set(holder, key, cut(long, Number(maximum)));
  else if (Array.isArray(long)) Reflect.set(holder, key, long.slice(0, Number(maximum)));
}

function isRecord(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}
