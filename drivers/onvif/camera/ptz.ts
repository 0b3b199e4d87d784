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
import {
  type Arrival,
  type Control,
  type MotorTurns,
  MovementUnsupported,
  move,
  type PtzParts,
  begins_within_ms,
  travel,
} from './movement.ts';
import { endTours, goTo, preset_chars_max } from './presets.ts';
import { type Axis, motorKey, profileToken } from './ptz-stop.ts';
import type { PtzAbilities, Space, Spaces } from './ptz-abilities.ts';
import { texts } from '../texts.ts';
import { operation, schema_namespace } from '../soap/soap.ts';
import { attribute, escapeXml, find, type XmlNode } from '../soap/xml.ts';

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

// Ways to a position in the coordinates of the camera, or by a distance (ONVIF PTZ Service Specification, sections 5.3 and 5.8).

/** Of `pan`, `tilt` and `zoom`, as far as the camera has them. */
type Position = Readonly<Record<string, number | undefined>>;
type PositionInput = z.ZodObject<Record<string, z.ZodType<number | undefined>>>;

const way = { risk_level: 'low', timeout_ms: 30_000 } as const;

/** Share of the range within which a position counts as reached. */
const tolerance = 0.02;

/** The commands of a camera that knows where it looks. */
function positionCommands(
  { motor, inTurn }: Control,
  { absolute, relative, hasHome }: Pick<PtzAbilities, 'absolute' | 'relative' | 'hasHome'>,
): readonly Command[] {
  const profile = profileToken(motor.profile);
  const ptzAbsolute = defineCommand({
    ...way,
    name: 'ptz_absolute',
    description: 'Goes to a position in the coordinates of the camera',
    input: absoluteInput(absolute),
    handle: async (position, context) =>
      inTurn('ptz_absolute', async (turn) => {
        const inner = `${profile}<Position>${vectorOf(absolute, position)}</Position>`;
        const arrival = arrivalAt(absolute, position);
        const asked = operation('ptz', 'AbsoluteMove', inner);
        return jsonOf(position, await travel({ ...turn, axis: 'all' }, asked, context, arrival));
      }),
  });
  const ptzRelative = defineCommand({
    ...way,
    name: 'ptz_relative',
    description: 'Turns or zooms by so much from where the camera looks now',
    input: relativeInput(relative),
    handle: async (distance, context) =>
      inTurn('ptz_relative', async (turn) => {
        const inner = `${profile}<Translation>${vectorOf(relative, distance)}</Translation>`;
        return jsonOf(
          distance,
          await travel({ ...turn, axis: 'all' }, operation('ptz', 'RelativeMove', inner), context),
        );
      }),
  });
  const ptzHome = defineCommand({
    ...way,
    name: 'ptz_home',
    description: 'Goes to the home position of the camera',
    input: noInput,
    handle: async (_none, context) =>
      inTurn('ptz_home', async (turn) => {
        const asked = operation('ptz', 'GotoHomePosition', profile);
        return { reached: await travel({ ...turn, axis: 'all' }, asked, context) };
      }),
  });
  return [
    ...(hasSpace(absolute) ? [ptzAbsolute] : []),
    ...(hasSpace(relative) ? [ptzRelative] : []),
    ...(hasHome ? [ptzHome] : []),
  ];
}

function hasSpace({ pan_tilt, zoom }: Spaces): boolean {
  return (pan_tilt ?? zoom) !== undefined;
}

function jsonOf(position: Position, reached: string): JsonObject {
  const named = Object.entries(position).flatMap(([name, value]): [string, number][] =>
    value === undefined ? [] : [[name, value]],
  );
  return { ...Object.fromEntries(named), reached };
}

/** Pan and tilt belong together; the lens may stay as it is. */
function absoluteInput(spaces: Spaces): PositionInput {
  const { zoom, ...turn } = axesOf(spaces);
  return z.strictObject({ ...turn, ...(zoom && { zoom: spaces.pan_tilt ? zoom.optional() : zoom }) });
}

function relativeInput(spaces: Spaces): PositionInput {
  const axes = Object.entries(axesOf(spaces));
  return z.strictObject(Object.fromEntries(axes.map(([name, axis]) => [name, axis.default(0)])));
}

/** Once it had its time to begin, a standstill anywhere is the end. */
function arrivalAt({ pan_tilt, zoom }: Spaces, position: Position): Arrival {
  let end_ms: number | undefined;
  let isThere: boolean | undefined;
  return {
    isThere: () => isThere,
    hasArrived(status, wasMoving): boolean {
      end_ms ??= performance.now() + begins_within_ms;
      const at = find(status, 'position');
      const axes = [
        ...areAt(find(at, 'panTilt'), pan_tilt, [position['pan'], position['tilt']]),
        ...areAt(find(at, 'zoom'), zoom, [position['zoom']]),
      ];
      isThere = axes.length === 0 ? undefined : axes.every(Boolean);
      return isThere !== false || wasMoving || performance.now() > end_ms;
    },
  };
}

/** Of each coordinate that is reported and wanted. */
function areAt(
  at: XmlNode | undefined,
  space: Space | undefined,
  wanted: readonly (number | undefined)[],
): readonly boolean[] {
  const reported = attribute(at, 'space') ?? space?.uri;
  if (!space || reported !== space.uri) return [];
  return [space.x, space.y].flatMap((range, index) => {
    const [is, goal] = [Number(attribute(at, index === 0 ? 'x' : 'y')), wanted[index]];
    if (!range || goal === undefined || !Number.isFinite(is)) return [];
    const width = range.max - range.min;
    const distance = Math.abs(is - goal);
    // A camera that turns round has two numbers for one direction.
    return [Math.min(distance, Math.abs(width - distance)) <= width * tolerance];
  });
}

function axesOf({ pan_tilt, zoom }: Spaces): Record<string, z.ZodNumber> {
  const axes = [
    ['pan', pan_tilt?.x, 'positive is to the right'],
    ['tilt', pan_tilt?.y, 'positive is up'],
    ['zoom', zoom?.x, 'positive is nearer'],
  ] as const;
  return Object.fromEntries(
    axes.flatMap(([name, range, about]) => {
      const unit = unitOf(name === 'zoom' ? zoom : pan_tilt);
      return range ? [[name, z.number().min(range.min).max(range.max).describe(`${unit}; ${about}`)]] : [];
    }),
  );
}

function unitOf(space: Space | undefined): string {
  const uri = space?.uri ?? '';
  if (uri.includes('Spherical')) return 'degrees';
  return uri.endsWith('SpaceFov') ? 'parts of half the picture' : "the camera's own scale";
}

function vectorOf({ pan_tilt, zoom }: Spaces, position: Position): string {
  const tt = `xmlns="${schema_namespace}"`;
  const turn =
    pan_tilt &&
    `<PanTilt ${tt} x="${position['pan'] ?? 0}" y="${position['tilt'] ?? 0}"${spaceOf(pan_tilt)}/>`;
  const near = position['zoom'];
  const lens = zoom && near !== undefined ? `<Zoom ${tt} x="${near}"${spaceOf(zoom)}/>` : '';
  return `${turn ?? ''}${lens}`;
}

/** The generic space is the one that is meant where none is named. */
function spaceOf({ uri }: Space): string {
  return uri === '' || uri.includes('Generic') ? '' : ` space="${escapeXml(uri)}"`;
}
