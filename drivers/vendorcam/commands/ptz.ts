/** Commands that move a camera or its lens. The interface counts the speed from 1 to 64; `stop` is a direction. */
import { z } from 'zod';
import { type Command, command_timeout_default_ms, defineCommand } from '../../../src/driver/command.ts';
import type { ChannelAbilities } from '../channels/abilities.ts';
import type { Move, Motors } from './motors.ts';

export interface PtzControls {
  readonly motors: Motors;
  readonly channel: number;
  readonly abilities: ChannelAbilities;
  readonly ptz_move_max_ms: number;
  /** Aborts when the driver stops. */
  readonly signal: AbortSignal;
}

const speed_default = 32;
const speed = z
  .int()
  .min(1)
  .max(64)
  .default(speed_default)
  .describe('1 slow to 64 fast; without effect on motors with one speed');

interface Motion<D extends string> {
  readonly name: string;
  readonly what: string;
  readonly ops: Readonly<Record<D, Move['op']>>;
  readonly direction: z.ZodType<D | 'stop'>;
}

export function ptzMove(controls: PtzControls): Command {
  return moving(controls, {
    name: 'ptz_move',
    what: 'Moves the camera',
    ops: { up: 'Up', down: 'Down', left: 'Left', right: 'Right' },
    direction: z.enum(['up', 'down', 'left', 'right', 'stop']),
  });
}

export function zoom(controls: PtzControls): Command {
  return moving(controls, {
    name: 'zoom',
    what: 'Zooms in or out',
    ops: { in: 'ZoomInc', out: 'ZoomDec' },
    direction: z.enum(['in', 'out', 'stop']),
  });
}

function moving<D extends string>(
  { motors, channel, abilities, ptz_move_max_ms, signal }: PtzControls,
  { name, what, ops, direction: directions }: Motion<D>,
): Command {
  return defineCommand({
    name,
    description: `${what} until "stop" or another command, for at most ${ptz_move_max_ms / 1_000} s; completed once it was stopped.`,
    risk_level: 'low',
    // A move or a stop replaces the earlier move.
    safety: true,
    timeout_ms: ptz_move_max_ms + command_timeout_default_ms,
    input: z.strictObject({ direction: directions, speed }).meta({ 'x-kit-move-ms': ptz_move_max_ms }),
    handle: async ({ direction, speed: asked }, context) => {
      if (direction === 'stop') {
        await motors.stop(channel);
        return { direction };
      }
      const told = abilities.takesSpeed ? asked : undefined;
      const move = { channel, op: ops[direction], speed: told, max_ms: ptz_move_max_ms };
      const moved_ms = await motors.move(move, AbortSignal.any([context.signal, signal]));
      return { direction, speed: told ?? null, moved_ms };
    },
  });
}
