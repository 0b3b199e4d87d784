/** Reads what a section means although some of its keys have faults, so that one run names every fault. */
import type { z } from 'zod';
import { valueAt } from './faults.ts';

type Issue = z.core.$ZodIssue;

/**
 * The section without the keys that have faults, which are reported by the schema of the whole file. Undefined when a
 * required one is among them: then nothing more can be checked.
 */
export function soundPart<S extends z.ZodType>(schema: S, value: unknown): z.output<S> | undefined {
  const read = schema.safeParse(value);
  if (read.success) return read.data;
  const rest = structuredClone(value);
  for (const issue of read.error.issues) removeFaulty(rest, issue);
  return schema.safeParse(rest).data;
}

/**
 * Faults that the schema reports only once those of `issues` are repaired: rules about several keys, such as unique names, run
 * on sound values only. Rules about a group that has a faulty key itself are left for the next run, since they may be about that key.
 */
export function issuesBehind(schema: z.ZodType, value: unknown, issues: readonly Issue[]): readonly Issue[] {
  const rest = structuredClone(value);
  for (const issue of issues) removeFaulty(rest, issue);
  const unsound = new Set(
    issues.map(({ code, path }) => pathText(code === 'unrecognized_keys' ? path : path.slice(0, -1))),
  );
  const further = schema.safeParse(rest).error?.issues ?? [];
  return further.filter(({ code, path }) => {
    // The path of a rule is that of the group that it checks, or of one of its keys.
    const isGroup = isObject(valueAt(rest, path));
    return code === 'custom' && !unsound.has(pathText(isGroup ? path : path.slice(0, -1)));
  });
}

function pathText(path: readonly PropertyKey[]): string {
  return path.map(String).join('\n');
}

function removeFaulty(root: unknown, issue: Issue): void {
  const unknown = issue.code === 'unrecognized_keys' ? issue.keys : undefined;
  const path = unknown ? issue.path : issue.path.slice(0, -1);
  const last = issue.path.at(-1);
  const keys = unknown ?? (last === undefined ? [] : [last]);
  const parent = valueAt(root, path);
  // An entry of a list is left: without it, the places of the others would be wrong.
  if (!isObject(parent) || Array.isArray(parent)) return;
  for (const key of keys) Reflect.deleteProperty(parent, key);
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}
