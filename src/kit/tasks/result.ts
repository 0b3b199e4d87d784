/** Bounds a handler's result for the report: all of it, unless it is too large or not JSON. */
import { type JsonObject, jsonObject } from '../../contract/json.ts';
import { messageOf } from '../../platform/errors.ts';
import { cleanTexts } from '../../platform/foreign-text.ts';
import { result_chars_max } from './limits.ts';
import { texts } from './texts.ts';

/** The task is completed either way: its effect was seen, only the account of it is lost. */
export function reportable(result: unknown): JsonObject {
  let text: string | undefined;
  try {
    text = JSON.stringify(result ?? {});
  } catch (error) {
    return { truncated: true, reason: texts.result_not_json(messageOf(error)) };
  }
  const chars = text?.length ?? 0;
  if (chars > result_chars_max) {
    const reason = texts.result_too_long(chars, result_chars_max);
    return { truncated: true, reason };
  }
  return cleanTexts(readResult(text ?? '')) ?? { truncated: true, reason: texts.result_no_object };
}

/** A result as JSON text, read back; undefined when it is not a JSON object. */
export function readResult(text: string): JsonObject | undefined {
  try {
    return jsonObject.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}
