/** Commands that move a camera. */
import { z } from 'zod';
import type { JsonObject } from '../../../src/contract/json.ts';
import { withChoices } from '../../../src/toolkit/driver/choices.ts';
import {
  type Command,
  command_timeout_default_ms,
  type CommandContext,
  defineCommand,
  noInput,
} from '../../../src/toolkit/driver/command.ts';
import { type Control, type MotorTurns, MovementUnsupported, move, type PtzParts } from './movement.ts';
import { positionCommands, way } from './positions.ts';
import { endTours, goTo, preset_chars_max } from './presets.ts';
import { type Axis, motorKey } from './ptz-stop.ts';
import type { PtzAbilities } from './ptz-abilities.ts';
import { texts } from '../texts.ts';

const directions = { up: [0, 1], down: [0, -1], left: [-1, 0], right: [1, 0] } as const;
const zooms = { in: [1, 0], out: [-1, 0] } as const;

const speed_default = 0.5;

const speed = z
  .number()
  .min(0)
  .max(1)
  .default(speed_default)
  .describe('fraction of the maximum speed; 0 stops');
const zoomInput = z.strictObject({ direction: z.enum(['in', 'out', 'stop']), speed });
const presetInput = z.strictObject({
  preset_token: z
    .string()
    .min(1)
    .max(preset_chars_max)
    .describe("the camera's token of the preset, not its name; of a patrol tour: and its token"),
});

type Velocity = readonly [number, number];

interface PtzOfferParts extends Omit<PtzParts, 'axis' | 'endTours'> {
  readonly turns: MotorTurns;
  /** The camera does not have a movement that was offered. */
  readonly onWithdrawn: () => void;
}

/** Makes the commands of a camera that moves, for its abilities of now. They run one at a time, also those made earlier. */
export function ptzOffer({
  turns,
  onWithdrawn,
  ...parts
}: PtzOfferParts): (abilities: PtzAbilities) => readonly Command[] {
  const withdrawn = new Set<string>();
  return (abilities) => {
    const { hasTours } = abilities;
    const { soap, url, profile } = parts;
    // Also when the connection ends.
    const end = async (): Promise<string | undefined> => endTours({ soap, url, profile });
    const motor = { ...parts, endTours: hasTours ? end : undefined };
    const inTurn: Control['inTurn'] = async (name, work) => {
      try {
        return await turns.take(async (end) =>
          work({ ...motor, signal: AbortSignal.any([motor.signal, end]) }),
        );
      } catch (error) {
        if (error instanceof MovementUnsupported) {
          withdrawn.add(name);
          onWithdrawn();
        }
        throw error;
      }
    };
    const control = { motor, turns, inTurn };
    const moving = [
      ...velocityCommands(control, abilities),
      ...(abilities.hasPresets ? [presetCommand(control, abilities)] : []),
      ...positionCommands(control, abilities),
    ].filter(({ name }) => !withdrawn.has(name));
    const isStoppable = moving.length === 0 || moving.some(({ name }) => name === 'ptz_move');
    return isStoppable ? moving : [...moving, stopCommand(control)];
  };
}

function velocityCommands(control: Control, { directions: possible, hasZoom }: PtzAbilities) {
  const { move_ms } = control.motor;
  const ptzMove = defineCommand({
    ...urgent(control),
    name: 'ptz_move',
    description: `Pans or tilts for ${move_ms / 1_000} s, then stops; direction "stop" stops at once`,
    input: z
      .strictObject({ direction: z.enum([...possible, 'stop']), speed })
      .meta({ 'x-kit-move-ms': move_ms }),
    handle: async ({ direction, speed: share }, context) => {
      const velocity = direction === 'stop' ? undefined : scaled(directions[direction], share);
      const moved = await run(control, { name: 'ptz_move', axis: 'pan_tilt', velocity }, context);
      return resultOf(direction, share, moved);
    },
  });
  const zoom = defineCommand({
    ...urgent(control),
    name: 'zoom',
    description: `Zooms in or out for ${move_ms / 1_000} s, then stops; direction "stop" stops at once`,
    input: zoomInput.meta({ 'x-kit-move-ms': move_ms }),
    handle: async ({ direction, speed: share }, context) => {
      const velocity = direction === 'stop' ? undefined : scaled(zooms[direction], share);
      const moved = await run(control, { name: 'zoom', axis: 'zoom', velocity }, context);
      return resultOf(direction, share, moved);
    },
  });
  return [...(possible.length > 0 ? [ptzMove] : []), ...(hasZoom ? [zoom] : [])];
}

function presetCommand({ inTurn }: Control, { presets, hasTours }: PtzAbilities): Command {
  const ptzPreset = defineCommand({
    ...way,
    name: 'ptz_preset',
    description: 'Goes to a stored position of the camera, or starts one of its patrols, which a stop ends',
    input: presetInput,
    handle: async ({ preset_token }, context) =>
      inTurn('ptz_preset', async (turn) =>
        goTo({ ...turn, axis: 'pan_tilt' }, preset_token, hasTours, context),
      ),
  });
  const choices = presets.map(({ token, name, tour }) => ({
    value: token,
    title: tour === undefined ? (name ?? token) : texts.patrol(name ?? tour),
  }));
  return withChoices(ptzPreset, 'preset_token', choices);
}

/** Of a camera that goes to positions only. */
function stopCommand(control: Control): Command {
  return defineCommand({
    ...urgent(control),
    name: 'ptz_stop',
    description: 'Stops the camera and its patrol',
    input: noInput,
    handle: async (_none, context) =>
      run(control, { name: 'ptz_stop', axis: 'all', velocity: undefined }, context),
  });
}

function urgent({ motor: { move_ms } }: Control) {
  return {
    risk_level: 'low',
    // The newest command counts, and "stop" must never wait behind a movement.
    safety: true,
    timeout_ms: move_ms + command_timeout_default_ms,
  } as const;
}

interface Run {
  /** Of the command. */
  readonly name: string;
  readonly axis: Axis;
  readonly velocity: Velocity | undefined;
}

/** Ends what another lens of the same motor does; the tasks of this one are superseded already. */
async function run(
  { turns, inTurn }: Control,
  { name, axis, velocity }: Run,
  context: CommandContext,
): Promise<JsonObject> {
  turns.interrupt();
  return inTurn(name, async (turn) => {
    const motor = { ...turn, axis };
    return motor.owed.during(motorKey(motor), async () => move(motor, velocity, context));
  });
}

/** Undefined at speed 0, which stops. */
function scaled([x, y]: Velocity, share: number): Velocity | undefined {
  return share === 0 ? undefined : [x * share, y * share];
}

function resultOf(direction: string, speed_share: number, moved: JsonObject): JsonObject {
  if (moved['moved_ms'] === undefined) return { direction: 'stop', ...moved };
  return { direction, speed: speed_share, ...moved };
}
