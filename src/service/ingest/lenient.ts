/** Reads what a kit sent with the contract's strict schemas, and yet takes what a later minor version has added. */
import { z } from 'zod';

/** Rounds of taking unknown keys out; each takes all that one reading names. */
const rounds_max = 4;

/**
 * The value without the keys that the schema does not know. Undefined, with the reason, when it breaks the schema in any
 * other way. `value` comes from `JSON.parse` and is changed.
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
      return { fault: z.prettifyError(read.error) };
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
