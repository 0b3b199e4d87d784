/** The data of a stored message, which was checked when it arrived. */
import { json, type Json, type JsonObject, jsonObject } from '../../../contract/json.ts';

export function jsonOf(text: string): Json {
  return json.parse(JSON.parse(text));
}

/** Empty when it is no object. */
export function objectOf(text: string): JsonObject {
  return jsonObject.catch({}).parse(JSON.parse(text));
}
