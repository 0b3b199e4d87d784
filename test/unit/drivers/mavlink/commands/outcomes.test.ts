/**
 * Every command, on every autopilot, in every way that it can end. The outcomes make the table of the driver's README:
 * `KIT_CONNECTOR_WRITE_TABLES=1 npm test -- test/unit/drivers/mavlink/commands/outcomes` writes it.
 */
import { readFile, writeFile } from 'node:fs/promises';
import { afterAll, describe, expect, it } from 'vitest';
import { command_names, type CommandName } from '../../../../../drivers/mavlink/options.ts';
import { assetId } from '../../../../../src/contract/identity.ts';
import type { FakeDrone } from '../../../../fakes/fake-drone.ts';
import { kit_id } from '../../../../support/kit/hub-lab.ts';
import { MissionDrone, missionItem } from '../../../../fakes/mission-drone.ts';
import { drone_key, type MavlinkLab, withLab } from '../mavlink-lab.ts';
import { payloadOf } from './commands-lab.ts';
import { texts as task_texts } from '../../../../../src/tasks/texts.ts';

const readme = new URL('../../../../../drivers/mavlink/README.md', import.meta.url);
const [begin, end] = ['<!-- outcomes -->\n', '<!-- end of outcomes -->'];

/** What the vehicle does with the command; `cancel` stops the task. */
const scenarios = {
  'accepted, done': () => undefined,
  'refused with a text': (drone) => {
    drone.react = () => ({ result: 2, texts: ['not now'] });
  },
  'accepted without effect': (drone) => {
    drone.react = () => ({ result: 0 });
  },
  'no answer': (drone) => {
    drone.react = () => undefined;
  },
  'vehicle restarts': (drone) => {
    drone.react = () => {
      void drone.reboot();
      return undefined;
    };
  },
  'link lost': (drone) => {
    drone.react = () => {
      drone.silent = true;
      return undefined;
    };
  },
  cancelled: (drone, cancel) => {
    drone.react = () => {
      setTimeout(cancel, 100);
      return undefined;
    };
  },
} as const satisfies Record<string, (drone: FakeDrone, cancel: () => void) => void>;
type Scenario = keyof typeof scenarios;
const scenario_names = Object.keys(scenarios) as Scenario[];

/** The same with messages of the mission protocol. */
const transfers = {
  'accepted, done': () => undefined,
  'refused with a text': (drone) => {
    drone.missions.intercept = ({ name }) => {
      const isReadBack = drone.missions.has_received && name.startsWith('MISSION_REQUEST');
      drone.missions.refuses = isReadBack ? undefined : { type: 14 };
      if (!isReadBack && name !== 'MISSION_ACK') drone.sendText('not now', 4);
      return false;
    };
  },
  'accepted without effect': (drone) => {
    drone.missions.forgetful = true;
    drone.missions.intercept = ({ name }) => name === 'MISSION_REQUEST_INT' && !drone.missions.has_received;
  },
  'no answer': (drone) => {
    drone.missions.intercept = () => true;
  },
  'vehicle restarts': (drone) => {
    drone.missions.intercept = ({ name }) => {
      if (name === 'MISSION_COUNT') return false;
      drone.missions.intercept = undefined;
      void drone.reboot();
      return true;
    };
  },
  'link lost': (drone) => {
    drone.missions.intercept = () => {
      drone.silent = true;
      return true;
    };
  },
  cancelled: (drone, cancel) => {
    drone.missions.intercept = () => {
      setTimeout(cancel, 100);
      return true;
    };
  },
} as const satisfies Record<Scenario, (drone: MissionDrone, cancel: () => void) => void>;

/** The same with requests for parameters, which a vehicle can neither refuse nor accept. */
const readings = {
  'accepted, done': () => undefined,
  'no answer': (drone) => {
    drone.withheld.add('PARAM_VALUE');
  },
  'vehicle restarts': (drone) => {
    drone.withheld.add('PARAM_VALUE');
    drone.onParameters = () => void drone.reboot();
  },
  'link lost': (drone) => {
    drone.onParameters = () => {
      drone.silent = true;
    };
  },
  cancelled: (drone, cancel) => {
    drone.withheld.add('PARAM_VALUE');
    drone.onParameters = () => void setTimeout(cancel, 100);
  },
} as const satisfies Partial<Record<Scenario, (drone: MissionDrone, cancel: () => void) => void>>;

const stores: ReadonlySet<CommandName> = new Set(['download_mission', 'upload_mission', 'clear_mission']);
const flies_mission: ReadonlySet<CommandName> = new Set(['start_mission', 'pause_mission', 'resume_mission']);
const on_the_ground: ReadonlySet<CommandName> = new Set([
  'arm',
  'disarm',
  'takeoff',
  'get_params',
  ...stores,
]);

interface Flown {
  readonly label: string;
  readonly about: Partial<ConstructorParameters<typeof MissionDrone>[0]>;
  /** All when omitted; others behave as one of the vehicles above. */
  readonly commands?: readonly CommandName[];
  /** Not offered, or refused before anything is sent. */
  readonly lacks: readonly CommandName[];
}
/** Boats behave as rovers. */
const flown: readonly Flown[] = [
  { label: 'ArduCopter', about: { type: 2 }, lacks: ['orbit'] },
  { label: 'ArduPlane', about: { type: 1 }, lacks: ['takeoff', 'land'] },
  { label: 'ArduRover', about: { type: 10 }, lacks: ['takeoff', 'land', 'set_altitude', 'orbit'] },
  { label: 'PX4', about: { autopilot: 'px4', type: 2 }, lacks: [] },
  {
    label: 'quadplane',
    about: { type: 1, quadplane: true },
    commands: ['return_home', 'set_mode', 'takeoff', 'hold', 'land'],
    lacks: [],
  },
  { label: 'ArduSub', about: { type: 12 }, commands: ['arm', 'disarm', 'hold'], lacks: [] },
];
const none = '–';
const cells = new Map<string, string>();
/** Outcomes of commands that a vehicle lacks. */
const lacked: string[] = [];

/** Runs `fn` with a vehicle that meets the preconditions of all commands. */
async function withVehicle(
  about: Flown['about'],
  fn: (lab: MavlinkLab, drone: MissionDrone) => Promise<void>,
): Promise<void> {
  await withLab(async (lab) => {
    const drone = new MissionDrone({ port: lab.port, ...about });
    try {
      await drone.start();
      // Rovers of ArduPilot have a home at a height where it cannot be.
      const hasHome = about.type !== 10;
      await lab.sees(
        'gps',
        ({ alt_m, relative_alt_m }) => alt_m !== null && (!hasHome || relative_alt_m !== null),
      );
      await lab.sees('sys_status', ({ ekf_ok, pre_arm_check }) => ekf_ok !== null && pre_arm_check !== null);
      await lab.sees('home');
      await lab.sees('mission');
      await fn(lab, drone);
    } finally {
      drone.stop();
    }
  });
}

async function prepare(lab: MavlinkLab, drone: MissionDrone, name: CommandName): Promise<void> {
  if (stores.has(name) || flies_mission.has(name)) {
    drone.mission = Array.from({ length: 6 }, (_, seq) => missionItem(seq));
    if (stores.has(name) || name === 'pause_mission') return;
    drone.flight.mode = 'LOITER';
    await lab.sees('sys_status', ({ flight_mode }) => flight_mode === 'LOITER');
    return;
  }
  if (name !== 'disarm' && name !== 'takeoff') return;
  drone.flight.armed = true;
  if (name === 'takeoff') drone.flight.mode = 'GUIDED';
  const mode = drone.options.autopilot === 'px4' ? 'LOITER' : 'GUIDED';
  await lab.sees('sys_status', ({ armed, flight_mode }) => {
    return armed === true && (name !== 'takeoff' || flight_mode === mode);
  });
}

function arrange(drone: MissionDrone, name: CommandName, scenario: Scenario, cancel: () => void): void {
  const react: ((drone: MissionDrone, cancel: () => void) => void) | undefined = stores.has(name)
    ? transfers[scenario]
    : name === 'get_params'
      ? (readings as Partial<typeof transfers>)[scenario]
      : scenarios[scenario];
  react?.(drone, cancel);
}

async function outcomeOf(
  lab: MavlinkLab,
  drone: MissionDrone,
  name: CommandName,
  scenario: Scenario,
): Promise<string> {
  if (name === 'get_params' && !(scenario in readings)) return none;
  await prepare(lab, drone, name);
  const cancelled = new AbortController();
  const cancel = (): void => cancelled.abort(new Error(task_texts.cancelled));
  arrange(drone, name, scenario, cancel);
  try {
    await lab.command(name, payloadOf(name), { signal: cancelled.signal, remaining_ms: 20_000 });
    return 'completed';
  } catch (error) {
    return endingOf(error instanceof Error ? error.message : String(error), name, scenario);
  }
}

function endingOf(sentence: string, name: CommandName, scenario: Scenario): string {
  if (sentence.endsWith('; outcome unknown')) return 'unknown';
  if (sentence.includes(': not now')) return 'failed, the text';
  const isRefused = sentence.endsWith('; command not sent') || sentence.includes('has no command');
  if (isRefused && scenario === 'accepted, done') return none;
  if (name === 'download_mission' || name === 'get_params') return 'failed, nothing changed';
  return / has \d+ items now| still has a /u.test(sentence) ? 'failed, what it holds' : sentence;
}

/** Lines of one command: vehicles share a line where they do not differ, and one that lacks the command has none. */
function lines(name: CommandName): readonly string[] {
  const columns = [...scenario_names, 'daemon killed'];
  const having = flown.filter(({ label }) => cells.has(`${name} ${label} ${columns[0]}`));
  const row = ({ label }: Flown): string =>
    columns.map((each) => cells.get(`${name} ${label} ${each}`)).join(' | ');
  const groups = [...Map.groupBy(having, row)];
  return groups.map(([text, vehicles]) => {
    const isWhole = groups.length === 1 && flown.every((each) => vehicles.includes(each) || each.commands);
    const who = isWhole ? '' : `, ${vehicles.map(({ label }) => label).join(', ')}`;
    return `| \`${name}\`${who} | ${text} |`;
  });
}

function table(): string {
  const head = ['command', ...scenario_names, 'daemon killed'];
  return [
    `| ${head.join(' | ')} |`,
    `|${head.map(() => '---').join('|')}|`,
    ...command_names.flatMap(lines),
    '',
  ].join('\n');
}

async function fly({ label, about, lacks }: Flown, name: CommandName, scenario: Scenario): Promise<void> {
  if (lacks.includes(name) && scenario !== 'accepted, done') return;
  await withVehicle({ ...about, airborne: !on_the_ground.has(name) }, async (lab, drone) => {
    const outcome = await outcomeOf(lab, drone, name, scenario);
    if (lacks.includes(name)) {
      lacked.push(outcome);
      return;
    }
    cells.set(`${name} ${label} ${scenario}`, outcome);
    const found = lab.hub.findCommand(assetId(kit_id, drone_key), name);
    // What may not run again has an unknown outcome after a restart, whatever it is.
    const is_repeatable = 'command' in found && found.command.repeatable;
    cells.set(`${name} ${label} daemon killed`, is_repeatable ? 'again' : 'unknown');
  });
}

describe('Every command on every autopilot', () => {
  // All at once: they wait for deadlines of vehicles nearly all the time.
  it.concurrent.each(scenario_names)(
    'ends as its table says: %s',
    async (scenario) => {
      // Each command has its own vehicle.
      const flights = flown.flatMap((each) =>
        (each.commands ?? command_names).map(async (name) => fly(each, name, scenario)),
      );
      await Promise.all(flights);
      const seen = [...cells].filter(([key]) => key.endsWith(` ${scenario}`));
      const commands = flown.flatMap(({ commands: some = command_names, lacks }) =>
        some.filter((name) => !lacks.includes(name)),
      );
      expect(seen).toHaveLength(commands.length);
      expect(lacked.filter((outcome) => outcome !== none)).toEqual([]);
      const allowed: Partial<Record<Scenario, string>> = {
        'accepted, done': 'completed',
        'refused with a text': 'failed, the text',
      };
      const isMoving = (key: string): boolean => {
        const name = key.split(' ', 1)[0] ?? '';
        return name !== 'get_params' && ![...stores].some((each) => each === name);
      };
      // Nothing shows the speed that was set, so that its acceptance is all there is.
      const isSpeed = (key: string): boolean =>
        key.startsWith('set_speed ') && scenario === 'accepted without effect';
      const moving = seen.filter(([key]) => isMoving(key));
      expect(moving.filter(([key, outcome]) => isSpeed(key) && outcome !== 'completed')).toEqual([]);
      const others = moving.filter(([key]) => !isSpeed(key));
      expect(others.filter(([, outcome]) => outcome !== (allowed[scenario] ?? 'unknown'))).toEqual([]);
      // What is stored can be read, and a reading changes nothing: what is known of it is said.
      const known = ['failed, nothing changed', 'failed, what it holds', 'unknown', none];
      const expected = allowed[scenario];
      const endings =
        expected === undefined ? known : [expected, ...(expected === 'completed' ? [] : [none])];
      expect(seen.filter(([key, outcome]) => !isMoving(key) && !endings.includes(outcome))).toEqual([]);
    },
    240_000,
  );

  afterAll(async () => {
    const text = await readFile(readme, 'utf8');
    const [from, until] = [text.indexOf(begin) + begin.length, text.indexOf(end)];
    const written = `${text.slice(0, from)}\n${table()}\n${text.slice(until)}`;
    if (process.env['KIT_CONNECTOR_WRITE_TABLES'] === '1') await writeFile(readme, written);
    else expect(squeezed(text)).toBe(squeezed(written));
  });
});

/** The formatter aligns the columns. */
function squeezed(text: string): string {
  return text.replaceAll(/[ -]+/gu, ' ');
}
