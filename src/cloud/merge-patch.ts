/** JSON Merge Patch (RFC 7396). */
import { type Json, type JsonObject, jsonObject } from '../contract/json.ts';

/** Members that are null go, and objects are merged. */
export function mergePatch(target: JsonObject, patch: JsonObject = {}): JsonObject {
  const merged = new Map(Object.entries(target));
  for (const [name, value = null] of Object.entries(patch)) {
    const before = merged.get(name) ?? null;
    if (value === null) merged.delete(name);
    else merged.set(name, isObject(value) ? mergePatch(isObject(before) ? before : {}, value) : value);
  }
  return jsonObject.parse(Object.fromEntries(merged));
}

function isObject(value: Json): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
