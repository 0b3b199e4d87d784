/** JSON text that is the same whenever the content is the same, so that content can be compared as text. */

/** Like `JSON.stringify` of a value that JSON can carry, with the keys of every object in order. */
export function stableJson(value: unknown): string {
  return JSON.stringify(value, (_key, inner: unknown) => (isRecord(inner) ? inKeyOrder(inner) : inner));
}

function inKeyOrder(record: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(record).sort(([a], [b]) => (a < b ? -1 : 1)));
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
