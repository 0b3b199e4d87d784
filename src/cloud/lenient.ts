/** Validates messages of kits with the strict schemas of the contract, but ignores fields of later minor versions. */
import type { z } from 'zod';
import { firstFault } from '../contract/first-fault.ts';

/** Rounds of removing unknown keys; each removes all that one validation reports. */
const rounds_max = 4;

/**
 * Returns the value without keys that the schema does not define, or the fault when it violates the schema in any other
 * way. `value` comes from `JSON.parse` and is changed.
 */
export function readLenient<S extends z.ZodType>(
  schema: S,
  value: unknown,
): { readonly data: z.output<S> } | { readonly fault: string } {
  for (let round = 0; ; round += 1) {
    const read = schema.safeParse(value);
    if (read.success) return { data: read.data };
    const unknown = read.error.issues.filter((issue) => issue.code === 'unrecognized_keys');
    if (unknown.length < read.error.issues.length || round === rounds_max) {
      return { fault: firstFault(read.error, { value, name: 'data' }) };
    }
    for (const { path, keys } of unknown) {
      const holder = path.reduce<unknown>(
        (at, key) => (isRecord(at) ? Reflect.get(at, key) : undefined),
        value,
      );
      if (isRecord(holder)) for (const key of keys) Reflect.deleteProperty(holder, key);
    }
  }
}

function isRecord(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}
