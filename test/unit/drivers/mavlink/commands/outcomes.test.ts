/**
 * Every command, on both autopilots, in every way that it can end. The outcomes make the table of the driver's README:
 * `KIT_CONNECTOR_WRITE_TABLES=1 npm test -- test/unit/drivers/mavlink/commands/outcomes` writes it.
 */
import { readFile, writeFile } from 'node:fs/promises';
import { afterAll, describe, expect, it } from 'vitest';
import { command_names, type CommandName } from '../../../../../drivers/mavlink/options.ts';
import { assetId } from '../../../../../src/contract/identity.ts';
import type { FakeDrone } from '../../../../fakes/fake-drone.ts';
import { kit_id } from '../../../../support/kit/hub-lab.ts';
import { MissionDrone, missionItem } from '../../../../fakes/mission-drone.ts';
import { drone_key, type MavlinkLab, withDrone } from '../mavlink-lab.ts';
import { withMission } from '../missions/mission-lab.ts';
import { autopilots, payloadOf } from './commands-lab.ts';

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

const stores: ReadonlySet<CommandName> = new Set(['download_mission', 'upload_mission', 'clear_mission']);
const flies_mission: ReadonlySet<CommandName> = new Set(['start_mission', 'pause_mission', 'resume_mission']);
const on_the_ground: ReadonlySet<CommandName> = new Set(['arm', 'disarm', 'takeoff', ...stores]);
const cells = new Map<string, string>();

async function prepare(lab: MavlinkLab, drone: FakeDrone, name: CommandName): Promise<void> {
  if (drone instanceof MissionDrone) {
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

async function outcomeOf(
  lab: MavlinkLab,
  drone: FakeDrone,
  name: CommandName,
  scenario: Scenario,
): Promise<string> {
  await prepare(lab, drone, name);
  const cancelled = new AbortController();
  const cancel = (): void => cancelled.abort(new Error('the task was cancelled'));
  if (drone instanceof MissionDrone && stores.has(name)) transfers[scenario](drone, cancel);
  else scenarios[scenario](drone, cancel);
  try {
    await lab.command(name, payloadOf(name), { signal: cancelled.signal, remaining_ms: 20_000 });
    return 'completed';
  } catch (error) {
    const sentence = error instanceof Error ? error.message : String(error);
    if (sentence.endsWith('; outcome unknown')) return 'unknown';
    if (sentence.includes(': not now')) return 'failed, the text';
    if (name === 'download_mission') return 'failed, nothing changed';
    return / has \d+ items now| still has a /u.test(sentence) ? 'failed, what it holds' : sentence;
  }
}

/** Lines of one command; both autopilots share a line where they do not differ. */
function lines(name: CommandName): readonly string[] {
  const row = (autopilot: string): string =>
    [...scenario_names, 'daemon killed'].map((each) => cells.get(`${name} ${autopilot} ${each}`)).join(' | ');
  const [ardupilot, px4] = [row('ardupilot'), row('px4')];
  if (ardupilot === px4) return [`| \`${name}\` | ${ardupilot} |`];
  return [`| \`${name}\`, ArduPilot | ${ardupilot} |`, `| \`${name}\`, PX4 | ${px4} |`];
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

describe('Every command on both autopilots', () => {
  it.each(scenario_names)('ends as its table says: %s', async (scenario) => {
    await Promise.all(
      command_names.flatMap((name) =>
        autopilots.map(async (autopilot) => {
          const airborne = !on_the_ground.has(name);
          const isAboutMissions = stores.has(name) || flies_mission.has(name);
          const withVehicle: typeof withDrone = isAboutMissions ? withMission : withDrone;
          await withVehicle({ autopilot, airborne }, async (lab, drone) => {
            const outcome = await outcomeOf(lab, drone, name, scenario);
            cells.set(`${name} ${autopilot} ${scenario}`, outcome);
            const found = lab.hub.findCommand(assetId(kit_id, drone_key), name);
            // What may not run again has an unknown outcome after a restart, whatever it is.
            const is_repeatable = 'command' in found && found.command.repeatable;
            cells.set(`${name} ${autopilot} daemon killed`, is_repeatable ? 'again' : 'unknown');
          });
        }),
      ),
    );
    const seen = [...cells].filter(([key]) => key.endsWith(` ${scenario}`));
    expect(seen).toHaveLength(command_names.length * autopilots.length);
    const allowed: Partial<Record<Scenario, string>> = {
      'accepted, done': 'completed',
      'refused with a text': 'failed, the text',
    };
    const isOf = (key: string, names: ReadonlySet<string>): boolean => names.has(key.split(' ', 1)[0] ?? '');
    const moving = seen.filter(([key]) => !isOf(key, stores)).map(([, outcome]) => outcome);
    // Nothing shows the speed that was set, so that its acceptance is all there is.
    const others = moving.filter((outcome) => outcome !== (allowed[scenario] ?? 'unknown'));
    expect(others).toEqual(scenario === 'accepted without effect' ? ['completed', 'completed'] : []);
    // What is stored can be read, and a download changes nothing: what is known of it is said.
    const stored = seen.filter(([key]) => isOf(key, stores)).map(([, outcome]) => outcome);
    const known = ['failed, nothing changed', 'failed, what it holds', 'unknown'];
    const endings = allowed[scenario] === undefined ? known : [allowed[scenario]];
    expect(stored.filter((outcome) => !endings.includes(outcome))).toEqual([]);
  });

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
