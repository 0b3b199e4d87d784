/**
 * Every command, on every autopilot, in every way that it can end. The outcomes make the table of the driver's README:
 * `KIT_CONNECTOR_WRITE_TABLES=1 npm test -- test/unit/drivers/mavlink/commands/outcomes` writes it.
 */
import { readFile, writeFile } from 'node:fs/promises';
import { afterAll, describe, expect, it } from 'vitest';
import type { CommandName } from '../../../../../drivers/mavlink/options.ts';
import { assetId } from '../../../../../src/contract/identity.ts';
import type { FakeDrone } from '../../../../fakes/fake-drone.ts';
import type { MissionDrone } from '../../../../fakes/mission-drone.ts';
import { kit_id } from '../../../../support/kit/hub-lab.ts';
import { drone_key, type MavlinkLab, withLab } from '../mavlink-lab.ts';
import {
  begin,
  end,
  type Flown,
  flown,
  killed,
  payloadFor,
  prepare,
  readme_file,
  type Row,
  rowsOf,
  startVehicle,
  stores,
  untilKnown,
} from './outcomes-lab.ts';
import { texts as command_texts } from '../../../../../drivers/mavlink/commands/texts.ts';
import { texts as task_texts } from '../../../../../src/kit/tasks/texts.ts';

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
      const isReadBack = drone.missions.hasReceived && name.startsWith('MISSION_REQUEST');
      // UNSUPPORTED: DENIED means that another station transfers.
      drone.missions.refuses = isReadBack ? undefined : { type: 3 };
      if (!isReadBack && name !== 'MISSION_ACK') drone.sendText('not now', 4);
      return false;
    };
  },
  'accepted without effect': (drone) => {
    drone.missions.forgetful = true;
    drone.missions.intercept = ({ name }) => name === 'MISSION_REQUEST_INT' && !drone.missions.hasReceived;
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

/** These end with the time that the task has. A transfer tries again within it, and then says what the vehicle holds. */
const ends_with_time: ReadonlySet<Scenario> = new Set(['accepted without effect', 'no answer', 'link lost']);
const command_ms = 8_000;
const transfer_ms = 20_000;

/** Refusals of a process that has not read its sockets for seconds. */
const starved = [command_texts.position_missing, command_texts.heartbeat_missing];
const none = '–';
const cells = new Map<string, string>();
/** Outcomes of commands that a vehicle lacks. */
const lacked: string[] = [];

/** Runs `fn` with a vehicle that meets the preconditions of all commands. */
async function withVehicle(
  vehicle: Flown,
  row: Row,
  fn: (lab: MavlinkLab, drone: MissionDrone) => Promise<void>,
): Promise<void> {
  await withLab(async (lab) => {
    const drone = await startVehicle(vehicle, row, { port: lab.port });
    try {
      await untilKnown(vehicle, async (feed, fits) => lab.sees(feed, fits));
      await fn(lab, drone);
    } finally {
      drone.stop();
    }
  });
}

function arrange(drone: MissionDrone, { name }: Row, scenario: Scenario, cancel: () => void): void {
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
  row: Row,
  scenario: Scenario,
): Promise<string> {
  const { name } = row;
  if (name === 'get_params' && !(scenario in readings)) return none;
  await prepare(drone, row, async (feed, fits) => lab.sees(feed, fits));
  const cancelled = new AbortController();
  const cancel = (): void => cancelled.abort(new Error(task_texts.cancelled));
  arrange(drone, row, scenario, cancel);
  const remaining_ms = isTransfer(row) || !ends_with_time.has(scenario) ? transfer_ms : command_ms;
  for (;;) {
    try {
      await lab.command(name, payloadFor(row), { signal: cancelled.signal, remaining_ms });
      return 'completed';
    } catch (error) {
      const sentence = error instanceof Error ? error.message : String(error);
      // The process had no processor for a while. Nothing was sent, so that the vehicle still does what the scenario says.
      if (!starved.some((text) => sentence.includes(text))) return endingOf(sentence, name, scenario);
      const known = new Set(lab.outbox.drafts);
      await lab.outbox.until((draft) => draft.channel === lab.feed('gps') && !known.has(draft));
    }
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

/** Lines of one row: vehicles share a line where they do not differ, and one that lacks the command has none. */
function lines(row: Row): readonly string[] {
  const columns = [...scenario_names, killed];
  const having = flown.filter((vehicle) => cells.has(keyOf(row, vehicle, columns[0] ?? '')));
  const outcomes = (vehicle: Flown): string =>
    columns.map((each) => cells.get(keyOf(row, vehicle, each))).join(' | ');
  const groups = [...Map.groupBy(having, outcomes)];
  return groups.map(([text, vehicles]) => {
    const isWhole = groups.length === 1 && flown.every((each) => vehicles.includes(each) || each.commands);
    const who = isWhole ? '' : `, ${vehicles.map(({ label }) => label).join(', ')}`;
    return `| ${row.label}${who} | ${text} |`;
  });
}

function keyOf({ label }: Row, vehicle: Flown, column: string): string {
  return `${label} ${vehicle.label} ${column}`;
}

function table(): string {
  const head = ['command', ...scenario_names, killed];
  return [
    `| ${head.join(' | ')} |`,
    `|${head.map(() => '---').join('|')}|`,
    ...rowsOf().flatMap(lines),
    '',
  ].join('\n');
}

function isTransfer({ name }: Row): boolean {
  return stores.has(name) || name === 'get_params';
}

async function fly(vehicle: Flown, row: Row, scenario: Scenario): Promise<void> {
  const { name } = row;
  const isLacked = vehicle.lacks.includes(name);
  if (isLacked && scenario !== 'accepted, done') return;
  await withVehicle(vehicle, row, async (lab, drone) => {
    const outcome = await outcomeOf(lab, drone, row, scenario);
    if (isLacked) {
      lacked.push(outcome);
      return;
    }
    cells.set(keyOf(row, vehicle, scenario), outcome);
    const found = lab.hub.findCommand(assetId(kit_id, drone_key), name);
    // What may not run again has an unknown outcome after a restart. `daemon-killed.test.ts` kills the process.
    const is_repeatable = 'command' in found && found.command.repeatable;
    cells.set(keyOf(row, vehicle, killed), is_repeatable ? 'again' : 'unknown');
  });
}

/** Each command has its own vehicle. So many kinds at a time: 800 vehicles in one process would starve each other. */
async function flyAll(scenario: Scenario, kinds: number, fits: (row: Row) => boolean): Promise<void> {
  for (let i = 0; i < flown.length; i += kinds) {
    const vehicles = flown.slice(i, i + kinds);
    await Promise.all(
      vehicles.flatMap((each) =>
        rowsOf(each.commands)
          .filter(fits)
          .map(async (row) => fly(each, row, scenario)),
      ),
    );
  }
}

describe('Every command on every autopilot', () => {
  // Side by side: they wait for deadlines of vehicles nearly all the time.
  it.concurrent.each(scenario_names)(
    'ends as its table says: %s',
    async (scenario) => {
      await Promise.all([flyAll(scenario, 1, (row) => !isTransfer(row)), flyAll(scenario, 2, isTransfer)]);
      const seen = [...cells].filter(([key]) => key.endsWith(` ${scenario}`));
      const commands = flown.flatMap(({ commands: some, lacks }) =>
        rowsOf(some).filter(({ name }) => !lacks.includes(name)),
      );
      expect(seen).toHaveLength(commands.length);
      expect(lacked.filter((outcome) => outcome !== none)).toEqual([]);
      const allowed: Partial<Record<Scenario, string>> = {
        'accepted, done': 'completed',
        'refused with a text': 'failed, the text',
      };
      const isMoving = (key: string): boolean => {
        const name = key.split('`', 2)[1] ?? '';
        return name !== 'get_params' && ![...stores].some((each) => each === name);
      };
      // Nothing shows the speed that was set, so that its acceptance is all there is.
      const isSpeed = (key: string): boolean =>
        key.startsWith('`set_speed` ') && scenario === 'accepted without effect';
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
    400_000,
  );

  afterAll(async () => {
    const text = await readFile(readme_file, 'utf8');
    const [from, until] = [text.indexOf(begin) + begin.length, text.indexOf(end)];
    const written = `${text.slice(0, from)}\n${table()}\n${text.slice(until)}`;
    if (process.env['KIT_CONNECTOR_WRITE_TABLES'] === '1') await writeFile(readme_file, written);
    else expect(squeezed(text)).toBe(squeezed(written));
  });
});

/** The formatter aligns the columns. */
function squeezed(text: string): string {
  return text.replaceAll(/[ -]+/gu, ' ');
}
