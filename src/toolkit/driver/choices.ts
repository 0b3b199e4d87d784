/** Shows the values that a device knows in the schema of a command, each with the title that people know it by. */
import { cut, name_chars_max } from '../../contract/limits.ts';
import { type JsonObject, jsonObject } from '../../contract/json.ts';
import type { Command } from './command.ts';

export interface Choice {
  readonly value: string | number;
  readonly title: string;
}

/** What receivers of the contract read of one list. */
const choices_max = 256;

/**
 * The command with the choices of one property in its published schema (`oneOf` of constants); without choices, or with too
 * many, it stays as it is. The driver itself still checks the value against the device, whose list may have changed.
 */
export function withChoices(command: Command, property: string, choices: readonly Choice[]): Command {
  const properties = jsonObject.safeParse(command.input_schema['properties']).data;
  const values = new Map(choices.map((choice) => [choice.value, choice.title]));
  if (!properties || values.size === 0 || values.size > choices_max) return command;
  const description = jsonObject.safeParse(properties[property]).data?.['description'];
  const oneOf = Array.from(values, ([value, title]): JsonObject => ({
    type: typeof value === 'number' ? 'integer' : 'string',
    const: value,
    title: cut(title, name_chars_max) || String(value),
  }));
  const chosen: JsonObject = description === undefined ? { oneOf } : { description, oneOf };
  return {
    ...command,
    input_schema: { ...command.input_schema, properties: { ...properties, [property]: chosen } },
  };
}
