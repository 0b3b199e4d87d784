/** Every command of every autopilot, and a vehicle that meets its preconditions, for the table of how commands end. */
import { readFile } from 'node:fs/promises';
import type { MissionKind } from '../../../../../drivers/mavlink/vehicles/mission-kinds.ts';
import { command_names, type CommandName } from '../../../../../drivers/mavlink/options.ts';
import type { JsonObject } from '../../../../../src/contract/json.ts';
import { field } from '../../../../fakes/fake-drone.ts';
import { MissionDrone, missionItem } from '../../../../fakes/mission-drone.ts';
import { payloadOf } from './commands-lab.ts';

/** A line of the table: a command, and for those that store what they are about. */
export interface Row {
  readonly name: CommandName;
  readonly kind?: MissionKind;
  /** As the table writes it. */
  readonly label: string;
}

export const stores: ReadonlySet<CommandName> = new Set([
  'download_mission',
  'upload_mission',
  'clear_mission',
]);
const flies_mission: ReadonlySet<CommandName> = new Set(['start_mission', 'pause_mission', 'resume_mission']);
const on_the_ground: ReadonlySet<CommandName> = new Set([
  'arm',
  'disarm',
  'takeoff',
  'get_params',
  ...stores,
]);
const stored_kinds = [
  ['mission', ''],
  ['fence', ' of a fence'],
  ['rally', ' of rally points'],
] as const;

export interface Flown {
  readonly label: string;
  readonly about: Partial<ConstructorParameters<typeof MissionDrone>[0]>;
  /** All when omitted; others behave as one of the vehicles above. */
  readonly commands?: readonly CommandName[];
  /** Not offered, or refused before anything is sent. */
  readonly lacks: readonly CommandName[];
}
/** Boats behave as rovers. */
export const flown: readonly Flown[] = [
  { label: 'ArduCopter', about: { type: 2 }, lacks: ['orbit', 'surface'] },
  { label: 'ArduPlane', about: { type: 1 }, lacks: ['land', 'surface', 'set_heading'] },
  {
    label: 'ArduRover',
    about: { type: 10 },
    lacks: ['takeoff', 'land', 'set_altitude', 'orbit', 'surface', 'set_heading'],
  },
  { label: 'PX4', about: { autopilot: 'px4', type: 2 }, lacks: ['surface', 'enable_fence'] },
  {
    label: 'quadplane',
    about: { type: 1, quadplane: true },
    commands: ['return_home', 'set_mode', 'takeoff', 'hold', 'land'],
    lacks: [],
  },
  { label: 'ArduSub', about: { type: 12 }, commands: ['arm', 'disarm', 'hold', 'surface'], lacks: [] },
];

/** Made of others of the table, or of requests for parameters; or off unless a configuration names it. They have tests of their own. */
const untold: ReadonlySet<CommandName> = new Set([
  'reposition',
  'change_return_altitude',
  'download_log',
  'emergency_stop',
]);

/** Returns the lines of these commands, in their order. */
export function rowsOf(names: readonly CommandName[] = command_names): readonly Row[] {
  return names
    .filter((name) => !untold.has(name))
    .flatMap((name) =>
      stores.has(name)
        ? stored_kinds.map(([kind, of]) => ({ name, kind, label: `\`${name}\`${of}` }))
        : [{ name, label: `\`${name}\`` }],
    );
}

const fence_plan = {
  fileType: 'Plan',
  version: 1,
  geoFence: {
    version: 2,
    polygons: [],
    circles: [{ inclusion: true, circle: { center: [field.lat, field.lon], radius: 300 }, version: 1 }],
  },
};
const rally_plan = {
  fileType: 'Plan',
  version: 1,
  rallyPoints: { version: 2, points: [[field.lat + 0.0002, field.lon, 30]] },
};

export function payloadFor({ name, kind = 'mission' }: Row): JsonObject {
  const payload = payloadOf(name) ?? {};
  if (!stores.has(name) || kind === 'mission') return payload;
  const plan = kind === 'fence' ? fence_plan : rally_plan;
  return name === 'upload_mission' ? { kind, plan } : { kind };
}

/** Starts a vehicle that this command may be sent to; on the ground or in the air. */
export async function startVehicle(
  { about }: Flown,
  { name }: Row,
  more: ConstructorParameters<typeof MissionDrone>[0],
): Promise<MissionDrone> {
  const drone = new MissionDrone({ ...about, ...more, airborne: !on_the_ground.has(name) });
  await drone.start();
  return drone;
}

/** Resolves when a feed of the vehicle shows this. */
export type Sees = (feed: string, fits?: (data: JsonObject) => boolean) => Promise<unknown>;

/** Resolves when the vehicle has reported what the commands need. */
export async function untilKnown({ about }: Flown, sees: Sees): Promise<void> {
  // Rovers of ArduPilot have a home at a height where it cannot be.
  const hasHome = about.type !== 10;
  await sees('gps', ({ alt_m, relative_alt_m }) => alt_m !== null && (!hasHome || relative_alt_m !== null));
  await sees('sys_status', ({ ekf_ok, pre_arm_check }) => ekf_ok !== null && pre_arm_check !== null);
  await sees('home');
  await sees('mission');
}

/** Brings the vehicle into the state that the command needs, and resolves when it is seen. */
export async function prepare(drone: MissionDrone, { name }: Row, sees: Sees): Promise<void> {
  if (stores.has(name) || flies_mission.has(name)) {
    const { stored } = drone.missions;
    drone.mission = Array.from({ length: 6 }, (_, seq) => missionItem(seq));
    stored[1] = [missionItem(0, { command: 5_003, param1: 200, mission_type: 1, frame: 0, z: 0 })];
    stored[2] = [missionItem(0, { command: 5_100, mission_type: 2 })];
    if (stores.has(name) || name === 'pause_mission') return;
    drone.flight.mode = 'LOITER';
    await sees('sys_status', ({ flight_mode }) => flight_mode === 'LOITER');
    return;
  }
  if (name !== 'disarm' && name !== 'takeoff' && name !== 'set_heading') return;
  drone.flight.armed = true;
  if (name !== 'disarm') drone.flight.mode = 'GUIDED';
  const mode = drone.options.autopilot === 'px4' ? 'LOITER' : 'GUIDED';
  await sees('sys_status', ({ armed, flight_mode }) => {
    return armed === true && (name === 'disarm' || flight_mode === mode);
  });
}

export const killed = 'daemon killed';
const readme_file = new URL('../../../../../drivers/mavlink/README.md', import.meta.url);
const [begin, end] = ['<!-- outcomes -->\n', '<!-- end of outcomes -->'];

/** Returns the cell of the written table, for a line and a vehicle; undefined: it has no such line. */
export async function writtenCell(row: Row, vehicle: string, column: string): Promise<string | undefined> {
  const text = await readFile(readme_file, 'utf8');
  const lines = text.slice(text.indexOf(begin), text.indexOf(end)).split('\n');
  const cells = (line: string): readonly string[] =>
    line
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim());
  const at = cells(lines.find((line) => line.startsWith('| command')) ?? '').indexOf(column);
  const fits = ([first = '']: readonly string[]): boolean => {
    if (!first.startsWith(row.label)) return false;
    const vehicles = first.slice(row.label.length);
    return vehicles === '' || (vehicles.startsWith(', ') && vehicles.slice(2).split(', ').includes(vehicle));
  };
  return lines.map(cells).find(fits)?.[at];
}
