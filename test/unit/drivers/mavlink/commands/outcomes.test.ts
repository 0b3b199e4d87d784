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
import { drone_key, type MavlinkLab, withDrone } from '../mavlink-lab.ts';
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

/** A download sends no command: its endings are tested beside it. */
const acting = command_names.filter((name) => name !== 'download_mission');
const on_the_ground: ReadonlySet<CommandName> = new Set(['arm', 'disarm', 'takeoff']);
const cells = new Map<string, string>();

async function prepare(lab: MavlinkLab, drone: FakeDrone, name: CommandName): Promise<void> {
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
  scenarios[scenario](drone, () => cancelled.abort(new Error('the task was cancelled')));
  try {
    await lab.command(name, payloadOf(name), { signal: cancelled.signal, remaining_ms: 20_000 });
    return 'completed';
  } catch (error) {
    const sentence = error instanceof Error ? error.message : String(error);
    if (sentence.endsWith('; outcome unknown')) return 'unknown';
    return sentence.endsWith(': not now') ? 'failed, the text' : sentence;
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
    ...acting.flatMap(lines),
    '',
  ].join('\n');
}

describe('Every command on both autopilots', () => {
  it.each(scenario_names)('ends as its table says: %s', async (scenario) => {
    await Promise.all(
      acting.flatMap((name) =>
        autopilots.map(async (autopilot) => {
          const airborne = !on_the_ground.has(name);
          await withDrone({ autopilot, airborne }, async (lab, drone) => {
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
    const seen = [...cells].filter(([key]) => key.endsWith(` ${scenario}`)).map(([, outcome]) => outcome);
    expect(seen).toHaveLength(acting.length * autopilots.length);
    const allowed: Partial<Record<Scenario, string>> = {
      'accepted, done': 'completed',
      'refused with a text': 'failed, the text',
    };
    // Nothing shows the speed that was set, so that its acceptance is all there is.
    const others = seen.filter((outcome) => outcome !== (allowed[scenario] ?? 'unknown'));
    expect(others).toEqual(scenario === 'accepted without effect' ? ['completed', 'completed'] : []);
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
