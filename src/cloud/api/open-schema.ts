/** Opens the schemas of what the service sends: later versions add fields. */
import type { Json } from '../../contract/json.ts';

/** The schema without `additionalProperties: false`, at any depth. */
export function withoutLimits(value: Json): Json {
  if (Array.isArray(value)) return value.map(withoutLimits);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([key, each]) => key !== 'additionalProperties' || each !== false)
      .map(([key, each = null]) => [key, withoutLimits(each)]),
  );
}
