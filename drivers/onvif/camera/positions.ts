/** Ways to a position in the coordinates of the camera, or by a distance (ONVIF PTZ Service Specification, sections 5.3 and 5.8). */
import { z } from 'zod';
import type { JsonObject } from '../../../src/contract/json.ts';
import { type Command, defineCommand, noInput } from '../../../src/toolkit/driver/command.ts';
import { begins_within_ms, type Control, travel } from './movement.ts';
import type { PtzAbilities, Space, Spaces } from './ptz-abilities.ts';
import { type HasArrived, profileToken } from './ptz-stop.ts';
import { operation, schema_namespace } from '../soap/soap.ts';
import { attribute, escapeXml, find, type XmlNode } from '../soap/xml.ts';

/** Of `pan`, `tilt` and `zoom`, as far as the camera has them. */
type Position = Readonly<Record<string, number | undefined>>;
type PositionInput = z.ZodObject<Record<string, z.ZodType<number | undefined>>>;

export const way = { risk_level: 'low', timeout_ms: 30_000 } as const;

/** Share of the range within which a position counts as reached. */
const tolerance = 0.02;

/** The commands of a camera that knows where it looks. */
export function positionCommands(
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
        const reached = await travel({ ...turn, axis: 'all' }, asked, context, (...now) =>
          arrival.hasArrived(...now),
        );
        return jsonOf(position, arrival.isElsewhere() ? 'accepted' : reached);
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

/** Whether the camera stands at the position, as far as it reports that; once it had its time to begin, a standstill anywhere is the end. */
function arrivalAt({ pan_tilt, zoom }: Spaces, position: Position) {
  const end_ms = performance.now() + begins_within_ms;
  let isElsewhere = false;
  return {
    isElsewhere: () => isElsewhere,
    hasArrived(...[status, wasMoving]: Parameters<HasArrived>): boolean {
      const at = find(status, 'position');
      isElsewhere =
        isOff(find(at, 'panTilt'), pan_tilt, [position['pan'], position['tilt']]) ||
        isOff(find(at, 'zoom'), zoom, [position['zoom']]);
      return !isElsewhere || wasMoving || performance.now() > end_ms;
    },
  };
}

function isOff(
  at: XmlNode | undefined,
  space: Space | undefined,
  wanted: readonly (number | undefined)[],
): boolean {
  const reported = attribute(at, 'space') ?? space?.uri;
  if (!space || reported !== space.uri) return false;
  return [space.x, space.y].some((range, index) => {
    const [is, goal] = [Number(attribute(at, index === 0 ? 'x' : 'y')), wanted[index]];
    if (!range || goal === undefined || !Number.isFinite(is)) return false;
    const width = range.max - range.min;
    const distance = Math.abs(is - goal);
    // A camera that turns round has two numbers for one direction.
    return Math.min(distance, Math.abs(width - distance)) > width * tolerance;
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
