/** The command `get_params`: reads parameters of the autopilot for diagnosis. Nothing here writes one. */
import { z } from 'zod';
import type { JsonObject } from '../../../src/contract/json.ts';
import { type Command, type CommandContext, defineCommand } from '../../../src/toolkit/driver/command.ts';
import { type Bounded, notSent, reach } from './admission.ts';
import { readParameters } from './parameters.ts';
import { texts } from './parameter-texts.ts';

/** 1,400 parameters over a radio of 57,600 baud, with losses. */
const read_timeout_ms = 180_000;
const names_max = 100;
/** Length of the field. */
const name_chars_max = 16;

// Without a pattern in the published schema: the service reads no foreign regular expressions.
const name = z
  .string()
  .min(1)
  .max(name_chars_max)
  .refine((text) => /^[A-Za-z0-9_-]+$/u.test(text), 'must have only letters, digits, _ and -');

export function parameterCommands(vehicle: Bounded): readonly Command[] {
  const names = z
    .array(name)
    .min(1)
    .max(names_max)
    .optional()
    .describe('names of parameters; all when omitted')
    .meta({ title: 'Names' });
  const prefix = name
    .optional()
    .describe('only parameters whose names begin with this; all are read for it')
    .meta({ title: 'Prefix' });
  return [
    defineCommand({
      name: 'get_params',
      description: 'Read parameters of the autopilot, for diagnosis. Changes nothing on the vehicle.',
      risk_level: 'low',
      requires_approval: false,
      repeatable: true,
      timeout_ms: read_timeout_ms,
      input: z.strictObject({ names, prefix }),
      handle: async (input, context) => read(vehicle, input, context),
    }),
  ];
}

interface Wanted {
  readonly names?: readonly string[] | undefined;
  readonly prefix?: string | undefined;
}

async function read(
  vehicle: Bounded,
  { names, prefix }: Wanted,
  context: CommandContext,
): Promise<JsonObject> {
  if (names && prefix !== undefined) throw notSent(texts.names_and_prefix);
  const { to } = reach(vehicle, context);
  const { values, unanswered } = await readParameters(to, names, context);
  const chosen = [...values].filter(([key]) => prefix === undefined || key.startsWith(prefix));
  const sorted = chosen.toSorted(([a], [b]) => (a < b ? -1 : 1));
  return {
    count: sorted.length,
    parameters: Object.fromEntries(sorted),
    ...(unanswered.length > 0 ? { unanswered: [...unanswered] } : {}),
  };
}
