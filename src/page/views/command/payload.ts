/** Reads a payload that a person typed as JSON; and which commands are sent without a question. */
import { isRecord, parseJson } from '../../world/json.ts';
import { t } from '../../words/words.ts';
import type { CommandDefinition, JsonValue } from '../../types.d.ts';

export function needsConfirmation({ risk_level, requires_approval }: CommandDefinition) {
  return risk_level !== 'low' || requires_approval;
}

/** The name of the one input of such a form. */
export const json_field = '(json)';

export function readJson(text: string): {
  readonly payload: Readonly<Record<string, JsonValue>>;
  readonly faults: ReadonlyMap<string, string>;
} {
  const value = parseJson(text.trim() === '' ? '{}' : text);
  if (isPayload(value)) return { payload: value, faults: new Map() };
  return { payload: {}, faults: new Map([[json_field, t.form.notJson]]) };
}

/** A record that the JSON parser returned holds JSON values only. */
function isPayload(value: unknown): value is Readonly<Record<string, JsonValue>> {
  return isRecord(value);
}
