/** Reads a payload that a person typed as JSON; which commands are sent without a question, and how often one is repeated while its button is held. */
import { field, isJsonObject, parseJson } from '../json.ts';
import { t } from '../words/words.ts';
import type { CommandDefinition, JsonValue } from '../types.js';

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
  if (isJsonObject(value)) return { payload: value, faults: new Map() };
  return { payload: {}, faults: new Map([[json_field, t.form.notJson]]) };
}

/** Just before the movement would end without a new command. */
const share = 0.85;
/** A lost stop costs 2 s at most, however long one movement may last. */
const repeat_max_ms = 1_700;
/** The service takes ten changes a second of a key. */
const repeat_min_ms = 300;

/**
 * From `x-kit-move-ms` of the schema, how long one command moves; 1.7 s where that is missing.
 * @returns milliseconds
 */
export function repeatOf({ input_schema }: Pick<CommandDefinition, 'input_schema'>): number {
  const move_ms = field(input_schema, 'x-kit-move-ms');
  if (typeof move_ms !== 'number') return repeat_max_ms;
  return Math.min(repeat_max_ms, Math.max(repeat_min_ms, Math.round(share * move_ms)));
}
