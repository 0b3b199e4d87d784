/**
 * Every command of every autopilot over links that lose frames, delay them, or are gone for some seconds: while a link lives none is
 * lost, none is executed twice or after its task has ended, and none is reported as done that was not.
 */
import { describe, expect, it } from 'vitest';
import type { CommandName } from '../../../../../drivers/mavlink/options.ts';
import { sleep } from '../../../../../src/platform/time.ts';
import type { MissionDrone } from '../../../../fakes/mission-drone.ts';
import { seededRandom } from '../../../../support/random.ts';
import { withLab } from '../mavlink-lab.ts';
import {
  type Flown,
  flown,
  payloadFor,
  prepare,
  type Row,
  rowsOf,
  startVehicle,
  stores,
  untilKnown,
} from './outcomes-lab.ts';

const long_ms: Partial<Record<CommandName, number>> = { takeoff: 60_000, start_mission: 60_000 };
const never = new AbortController().signal;

/** It takes long to show a slow pace, which all commands meet in one place. */
const slow = 'bring a heartbeat every 4 s';
const at_slow_pace: ReadonlySet<string> = new Set(['arm', 'return_home', 'goto_waypoint']);

/** What the links to a vehicle do from the dispatch of the command on; returns the time until then. */
const links: Readonly<Record<string, (drone: MissionDrone, seed: number) => number | undefined>> = {
  'lose every fifth frame in each direction': (drone, seed) => {
    const random = seededRandom(seed);
    drone.loses = () => random.below(5) === 0;
    return undefined;
  },
  'take 1.5 s in each direction': (drone) => {
    drone.lag_ms = 1_500;
    return undefined;
  },
  'are gone for the first 4 s': (drone) => {
    // An ArduPlane is asked for its parameters before it takes off, and these requests end earlier.
    const until_ms =
      performance.now() + (drone.flight.isAirborne || drone.options.type !== 1 ? 4_000 : 3_000);
    drone.loses = () => performance.now() < until_ms;
    return undefined;
  },
  // PX4-Autopilot#21006 has 5 to 10 s between heartbeats, and a slow radio may be shared.
  [slow]: (drone) => {
    drone.beat_every_ms = 4_000;
    return 13_000;
  },
};

/** What the command has changed. */
function stateOf({ flight, parameters: { stored } }: MissionDrone): string {
  const { mode, armed, target, circle, speed_mps, home, heading_deg } = flight;
  const fence = stored.get('FENCE_ENABLE')?.value;
  return JSON.stringify([mode, armed, target, circle, speed_mps, home, heading_deg, fence]);
}

/** Returns what went wrong. */
async function fly(
  vehicle: Flown,
  row: Row,
  disturb: (drone: MissionDrone) => number | undefined,
): Promise<readonly string[]> {
  const wrong: string[] = [];
  await withLab(async (lab) => {
    const drone = await startVehicle(vehicle, row, { port: lab.port });
    try {
      const sees = async (feed: string, fits?: Parameters<typeof lab.sees>[1]): Promise<unknown> =>
        lab.sees(feed, fits);
      await untilKnown(vehicle, sees);
      await prepare(drone, row, sees);
      let changes = 0;
      drone.react = (_command, execute) => {
        const before = stateOf(drone);
        const answer = execute();
        if (stateOf(drone) !== before) changes += 1;
        return answer;
      };
      await sleep(disturb(drone) ?? 0, never);
      const remaining_ms = long_ms[row.name] ?? 10_000;
      await lab.command(row.name, payloadFor(row), { remaining_ms }).then(
        () => changes === 0 && wrong.push('false'),
        (error: unknown) => wrong.push(`lost: ${String(error)}`),
      );
      if (changes > 1) wrong.push('repeated');
      // What the driver sent may still be on its way; it sends nothing more.
      await sleep(drone.lag_ms + 100, never);
      const sent = drone.commands.length;
      await sleep(1_500, never);
      if (drone.commands.length > sent) wrong.push('late');
    } finally {
      drone.stop();
    }
  });
  return wrong;
}

const commands = flown.flatMap((vehicle) =>
  rowsOf(vehicle.commands)
    .filter(({ name }) => !vehicle.lacks.includes(name) && !stores.has(name) && name !== 'get_params')
    .map((row) => ({ vehicle, row, label: `${row.name} of ${vehicle.label}` })),
);

describe.concurrent.each(commands)('$label', ({ vehicle, row }) => {
  const isBrief = !at_slow_pace.has(row.name) || !['ArduCopter', 'PX4'].includes(vehicle.label);
  it.each(Object.keys(links).filter((name) => name !== slow || !isBrief))(
    'is done once, and nothing is sent later, over links that %s',
    async (name) => {
      const runs = await Promise.all(
        Array.from({ length: Number(process.env['RUNS'] ?? 1) }, async (_, run) =>
          fly(vehicle, row, (drone) =>
            links[name]?.(drone, 1_000 * run + commands.findIndex((each) => each.row === row)),
          ),
        ),
      );
      expect(runs.flat()).toEqual([]);
    },
  );
});
