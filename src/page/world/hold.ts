/** How often a command is sent again while its button is held. */
import { field } from './json.ts';
import type { CommandDefinition } from '../types.d.ts';

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
