/** The command `clip` of a camera whose media server records. */
import { z } from 'zod';
import type { JsonObject } from '../../../contract/json.ts';
import { type Command, defineCommand } from '../../driver/command.ts';
import { texts } from '../texts.ts';

/** Seconds of one clip. */
export const clip_s_max = 120;
/** The end of the clip may be awaited, and a slow server. */
const timeout_ms = 600_000;

const clipInput = z.strictObject({
  at: z.iso
    .datetime()
    .optional()
    .describe('the moment of interest, UTC, in the last 24 hours; left out: now'),
  before_s: z.number().min(0).max(clip_s_max).optional().describe('seconds before it'),
  after_s: z.number().min(0).max(clip_s_max).optional().describe('seconds after it'),
});
export type ClipInput = z.output<typeof clipInput>;

export function clipCommand(take: (input: ClipInput, signal: AbortSignal) => Promise<JsonObject>): Command {
  return defineCommand({
    name: 'clip',
    description: texts.clip_command,
    risk_level: 'low',
    timeout_ms,
    repeatable: true,
    own_line: true,
    input: clipInput,
    handle: async (input, { signal }) => take(input, signal),
  });
}
