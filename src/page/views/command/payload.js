/** Reads a payload that a person typed as JSON; and which commands are sent without a question. */
import { isRecord, parseJson } from '../../world/json.js';
import { t } from '../../words/words.js';

/** @import { CommandDefinition, JsonValue } from '../../types.d.ts' */

/** @param {CommandDefinition} command */
export function needsConfirmation({ risk_level, requires_approval }) {
  return risk_level !== 'low' || requires_approval;
}

/** The name of the one input of such a form. */
export const json_field = '(json)';

/**
 * @param {string} text
 * @returns {{ readonly payload: Readonly<Record<string, JsonValue>>, readonly faults: ReadonlyMap<string, string> }}
 */
export function readJson(text) {
  const value = parseJson(text.trim() === '' ? '{}' : text);
  if (isPayload(value)) return { payload: value, faults: new Map() };
  return { payload: {}, faults: new Map([[json_field, t.form.notJson]]) };
}

/**
 * A record that the JSON parser returned holds JSON values only.
 * @param {unknown} value
 * @returns {value is Readonly<Record<string, JsonValue>>}
 */
function isPayload(value) {
  return isRecord(value);
}
