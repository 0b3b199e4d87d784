/** Bounds a handler's result for the report: all of it, unless it is too large or not JSON. */
import { type JsonObject, jsonObject } from '../contract/json.ts';
import { messageOf } from '../errors.ts';
import { cleanTexts } from '../platform/foreign-text.ts';
import { result_chars_max } from './limits.ts';

/** The task is completed either way: its effect was seen, only the account of it is lost. */
export function reportable(result: unknown): JsonObject {
  let text: string | undefined;
  try {
    text = JSON.stringify(result ?? {});
  } catch (error) {
    return { truncated: true, reason: `the result cannot be written as JSON: ${messageOf(error)}` };
  }
  const chars = text?.length ?? 0;
  if (chars > result_chars_max) {
    const reason = `the result has ${chars} characters of JSON; at most ${result_chars_max} are reported`;
    return { truncated: true, reason };
  }
  return cleanTexts(readResult(text ?? '')) ?? { truncated: true, reason: 'the result is not a JSON object' };
}

/** A result as JSON text, read back; undefined when it is not a JSON object. */
export function readResult(text: string): JsonObject | undefined {
  try {
    return jsonObject.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}
