/** Every command, on every autopilot, in every way that it can end, as the table of the driver's README says. */
import { describe, expect, it } from 'vitest';
import type { CommandName } from '../../../../../drivers/mavlink/options.ts';
import { assetId } from '../../../../../src/contract/identity.ts';
import type { FakeDrone } from '../../../../fakes/fake-drone.ts';
import type { MissionDrone } from '../../../../fakes/mission-drone.ts';
import { kit_id } from '../../../../support/kit/hub-lab.ts';
import { drone_key, type MavlinkLab, withLab } from '../mavlink-lab.ts';
import {
  type Flown,
  flown,
  killed,
  payloadFor,
  prepare,
  type Row,
  rowsOf,
  startVehicle,
  stores,
  untilKnown,
  writtenCell,
} from './outcomes-lab.ts';
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
/**
 * One vehicle goes through these: only the last changes its state. After those without an answer, an answer to the next could be to an
 * earlier command.
 */
const of_one_vehicle: readonly Scenario[] = [
  'refused with a text',
  'accepted without effect',
  'cancelled',
  'no answer',
  'link lost',
  'vehicle restarts',
];

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
const none = '–';

function arrange(drone: MissionDrone, { name }: Row, scenario: Scenario, cancel: () => void): void {
  const { missions } = drone;
  drone.react = drone.onParameters = missions.intercept = missions.refuses = undefined;
  drone.withheld.clear();
  missions.forgetful = false;
  missions.received.length = 0;
  const react: ((drone: MissionDrone, cancel: () => void) => void) | undefined = stores.has(name)
    ? transfers[scenario]
    : name === 'get_params'
      ? (readings as Partial<typeof transfers>)[scenario]
      : scenarios[scenario];
  react?.(drone, cancel);
}

interface Scene {
  readonly lab: MavlinkLab;
  readonly drone: MissionDrone;
  readonly vehicle: Flown;
  readonly row: Row;
}

async function outcomeOf({ lab, drone, vehicle, row }: Scene, scenario: Scenario): Promise<string> {
  const { name } = row;
  if (name === 'get_params' && !(scenario in readings)) return none;
  if (drone.silent) {
    drone.silent = false;
    lab.outbox.clear();
    await untilKnown(vehicle, async (feed, fits) => lab.sees(feed, fits));
  }
  await prepare(drone, row, async (feed, fits) => lab.sees(feed, fits));
  const cancelled = new AbortController();
  arrange(drone, row, scenario, () => cancelled.abort(new Error(task_texts.cancelled)));
  const isTransfer = stores.has(name) || name === 'get_params';
  const remaining_ms = isTransfer || !ends_with_time.has(scenario) ? transfer_ms : command_ms;
  try {
    await lab.command(name, payloadFor(row), { signal: cancelled.signal, remaining_ms });
    return 'completed';
  } catch (error) {
    return endingOf(error instanceof Error ? error.message : String(error), name);
  }
}

function endingOf(sentence: string, name: CommandName): string {
  if (sentence.endsWith('; outcome unknown')) return 'unknown';
  if (sentence.includes(': not now')) return 'failed, the text';
  if (sentence.endsWith('; command not sent') || sentence.includes('has no command'))
    return `not sent: ${sentence}`;
  if (name === 'download_mission' || name === 'get_params') return 'failed, nothing changed';
  return / has \d+ items now| still has a /u.test(sentence) ? 'failed, what it holds' : sentence;
}

/** Returns how the command ended in each of these, with a vehicle of its own that meets the preconditions of all commands. */
async function fly(vehicle: Flown, row: Row, some: readonly Scenario[]): Promise<Map<string, string>> {
  const found = new Map<string, string>();
  await withLab(async (lab) => {
    const drone = await startVehicle(vehicle, row, { port: lab.port });
    try {
      await untilKnown(vehicle, async (feed, fits) => lab.sees(feed, fits));
      for (const scenario of some)
        found.set(scenario, await outcomeOf({ lab, drone, vehicle, row }, scenario));
      const offered = lab.hub.findCommand(assetId(kit_id, drone_key), row.name);
      // What may not run again has an unknown outcome after a restart. `daemon-killed.test.ts` kills the process.
      if (some.length > 1 && 'command' in offered)
        found.set(killed, offered.command.repeatable ? 'again' : 'unknown');
    } finally {
      drone.stop();
    }
  });
  return found;
}

describe('Every command on every autopilot', () => {
  it.each(flown)('ends as the table of the driver says: $label', { tags: 'long' }, async (vehicle) => {
    const isLacked = ({ name }: Row): boolean => vehicle.lacks.includes(name);
    const rows = rowsOf(vehicle.commands);
    const lacked = await Promise.all(
      rows.filter(isLacked).map(async (row) => fly(vehicle, row, ['accepted, done'])),
    );
    const sent = lacked
      .flatMap((found) => [...found.values()])
      .filter((each) => !each.startsWith('not sent: '));
    expect(sent).toEqual([]);
    await Promise.all(
      rows
        .filter((row) => !isLacked(row))
        .map(async (row) => {
          const found = new Map([
            ...(await fly(vehicle, row, of_one_vehicle)),
            ...(await fly(vehicle, row, ['accepted, done'])),
          ]);
          const written = new Map<string, string | undefined>();
          for (const column of found.keys())
            written.set(column, await writtenCell(row, vehicle.label, column));
          expect([row.label, ...found]).toEqual([row.label, ...written]);
        }),
    );
  });
});
