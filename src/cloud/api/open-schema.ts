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

/**
 * The same schema as tools for OpenAPI 3.0 read it after a conversion: an integer above 0 begins at 1, and what may be null beside a
 * reference names no type `null` (oapi-codegen#2218, progenitor). An integer that may pass 32 bits says so: without a format generators of
 * Go, C# and Java take 32, and their clients fail at a file of 3 GB (pulp/pulpcore#3590). Examples stay as they are.
 */
export function convertible(value: Json): Json {
  if (Array.isArray(value)) return value.map(convertible);
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).map(([key, each = null]): [string, Json] => [
    key,
    key === 'example' ? each : convertible(each),
  ]);
  const schema: Record<string, Json> = Object.fromEntries(entries);
  if (schema['type'] === 'integer' && typeof schema['exclusiveMinimum'] === 'number') {
    schema['minimum'] = schema['exclusiveMinimum'] + 1;
    delete schema['exclusiveMinimum'];
  }
  const { type = null, maximum } = schema;
  const isLong = typeof maximum !== 'number' || maximum >= 2 ** 31;
  if (isLong && [type].flat().includes('integer')) schema['format'] = 'int64';
  return schema;
}
