/** Commands that move a camera. */
import { z } from 'zod';
import type { JsonObject } from '../../../src/contract/json.ts';
import { withChoices } from '../../../src/toolkit/driver/choices.ts';
import {
  type Command,
  command_timeout_default_ms,
  type CommandContext,
  defineCommand,
} from '../../../src/toolkit/driver/command.ts';
import { move, type PtzParts } from './movement.ts';
import { goTo, type Preset, readPresets } from './presets.ts';
import { type Axis, motorKey } from './ptz-stop.ts';
import { operation, type Soap } from '../soap/soap.ts';
import { all, find, type XmlNode } from '../soap/xml.ts';

const directions = { up: [0, 1], down: [0, -1], left: [-1, 0], right: [1, 0] } as const;
const zooms = { in: [1, 0], out: [-1, 0] } as const;

const speed_default = 0.5;

const speed = z
  .number()
  .min(0)
  .max(1)
  .default(speed_default)
  .describe('fraction of the maximum speed; 0 stops');
const moveInput = z.strictObject({
  direction: z.enum(['up', 'down', 'left', 'right', 'stop']),
  speed,
});
const zoomInput = z.strictObject({ direction: z.enum(['in', 'out', 'stop']), speed });
const presetInput = z.strictObject({
  preset_token: z.string().min(1).max(64).describe("the camera's token of the preset, not its name"),
});

/** What the PTZ service of a camera can do. */
export interface PtzAbilities {
  readonly hasPanTilt: boolean;
  readonly hasZoom: boolean;
  /** As the camera lists them now; empty: none, or not readable. */
  readonly presets: readonly Preset[];
}

type Velocity = readonly [number, number];

/** Makes the commands of a camera that moves, for its abilities of now. They run one at a time, also those made earlier. */
export function ptzOffer(parts: Omit<PtzParts, 'axis'>): (abilities: PtzAbilities) => readonly Command[] {
  const { owed, move_ms } = parts;
  let turn: Promise<unknown> = Promise.resolve();
  /** A new movement begins only when the last one was stopped: its stop must not end this one. */
  const inTurn = async <T>(work: () => Promise<T>): Promise<T> => {
    const mine = turn.then(work);
    turn = mine.catch(() => undefined);
    return mine;
  };
  const run = async (axis: Axis, velocity: Velocity | undefined, context: CommandContext) => {
    const motor = { ...parts, axis };
    return inTurn(async () => owed.during(motorKey(motor), async () => move(motor, velocity, context)));
  };
  const about = {
    risk_level: 'low',
    // The newest command counts, and "stop" must never wait behind a movement.
    safety: true,
    timeout_ms: move_ms + command_timeout_default_ms,
  } as const;
  const ptzMove = defineCommand({
    ...about,
    name: 'ptz_move',
    description: `Pans or tilts for ${move_ms / 1_000} s, then stops; direction "stop" stops at once`,
    input: moveInput.meta({ 'x-kit-move-ms': move_ms }),
    handle: async ({ direction, speed: share }, context) => {
      const velocity = direction === 'stop' ? undefined : scaled(directions[direction], share);
      return resultOf(direction, share, await run('pan_tilt', velocity, context));
    },
  });
  const zoom = defineCommand({
    ...about,
    name: 'zoom',
    description: `Zooms in or out for ${move_ms / 1_000} s, then stops; direction "stop" stops at once`,
    input: zoomInput.meta({ 'x-kit-move-ms': move_ms }),
    handle: async ({ direction, speed: share }, context) => {
      const velocity = direction === 'stop' ? undefined : scaled(zooms[direction], share);
      return resultOf(direction, share, await run('zoom', velocity, context));
    },
  });
  const ptzPreset = defineCommand({
    name: 'ptz_preset',
    description: 'Goes to a stored position of the camera',
    risk_level: 'low',
    timeout_ms: 30_000,
    input: presetInput,
    handle: async ({ preset_token }, context) =>
      inTurn(async () => goTo({ ...parts, axis: 'pan_tilt' }, preset_token, context)),
  });
  return ({ hasPanTilt, hasZoom, presets }) => {
    const choices = presets.map(({ token, name }) => ({ value: token, title: name ?? token }));
    return [
      ...(hasPanTilt ? [ptzMove] : []),
      ...(hasZoom ? [zoom] : []),
      withChoices(ptzPreset, 'preset_token', choices),
    ];
  };
}

/** Undefined at speed 0, which stops. */
function scaled([x, y]: Velocity, share: number): Velocity | undefined {
  return share === 0 ? undefined : [x * share, y * share];
}

function resultOf(direction: string, speed_share: number, moved: JsonObject): JsonObject {
  if (moved['moved_ms'] === undefined) return { direction: 'stop', ...moved };
  return { direction, speed: speed_share, ...moved };
}

/** See ONVIF PTZ Service Specification, section 5.1.1: the velocity spaces of the nodes. */
export async function readPtzAbilities(soap: Soap, url: string, profile: string): Promise<PtzAbilities> {
  const outcome = await soap.call({ ...operation('ptz', 'GetNodes'), url });
  const nodes = outcome.kind === 'reply' ? all(find(outcome.body, 'getNodesResponse'), 'ptzNode') : [];
  const hasZoom = nodes.some((node) => hasSpace(node, 'continuousZoomVelocitySpace'));
  const listed = await readPresets({ soap, url, profile });
  return {
    // A camera that does not describe its nodes pans and tilts.
    hasPanTilt: !hasZoom || nodes.some((node) => hasSpace(node, 'continuousPanTiltVelocitySpace')),
    hasZoom,
    presets: 'presets' in listed ? listed.presets : [],
  };
}

function hasSpace(node: XmlNode, space: string): boolean {
  return find(node, 'supportedPTZSpaces', space) !== undefined;
}
