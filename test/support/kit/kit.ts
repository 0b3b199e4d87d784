/** A whole kit for tests: a directory, a configuration, daemons that run with it, a cloud that listens, and the command line. */
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { controlSocket } from '../../../src/kit/config/config.ts';
import { assetId } from '../../../src/contract/identity.ts';
import type { StatusReport } from '../../../src/kit/local/api.ts';
import { localClient } from '../../../src/kit/local/client.ts';
import { type Child, type Ended, startChild } from '../child.ts';
import { bundledPrograms } from './bundled.ts';
import { type Cloud, startCloud } from './cloud.ts';
import { fakeMachine, type FakeMachine } from '../gateway/fake-machine.ts';
import { withDirectory } from '../temporary.ts';

/** The command as the sources have it, with the demo. */
export const command_file = fileURLToPath(new URL('../../../src/kit-connector.mjs', import.meta.url));

export interface Kit {
  readonly dir: string;
  readonly kit_id: string;
  readonly config_file: string;
  readonly socket: string;
  /** What the drivers of the gateway and its links take for their machine. */
  readonly machine: FakeMachine;
  /** Writes the configuration; what it does not name is as the kit needs it. */
  configure(settings: object): Promise<void>;
  /** Starts a daemon and waits until it runs. */
  start(): Promise<Child>;
  /** Starts one without waiting. */
  launch(): Child;
  listen(url: string): Promise<Cloud>;
  /** Runs the command line against this kit to its end. */
  run(...words: readonly string[]): Promise<Ended>;
  /** What the daemon answers on its socket: as `status --json` prints it, without a process for each question. */
  status(): Promise<StatusReport>;
  /** `asset_id` of a drone of the rehearsal driver. */
  drone(key?: string): string;
  /** What the drones of the rehearsal driver have done, a line each. */
  effects(): readonly string[];
  /** A driver section: the gateway on the fake machine. */
  readonly gateway: object;
  /** A driver section: the links of the fake machine. */
  readonly links: object;
  /** A driver section: drones that tests command. Only with `rehearsed`. */
  rehearse(options?: object): object;
}

/**
 * `rehearsed`: the daemon has the rehearsal driver beside its own ones; else it is the shipped command. `prefix`: put before the
 * command line of the daemon.
 */
export async function withKit(
  { rehearsed, prefix = [] }: { readonly rehearsed: boolean; readonly prefix?: readonly string[] },
  play: (kit: Kit) => Promise<void>,
): Promise<void> {
  const { command, daemon } = await bundledPrograms();
  const launching = rehearsed ? [daemon] : [command, 'run', '--config'];
  const machine = await fakeMachine();
  await machine.setInterface({ name: 'wan0' });
  await machine.setRoutes([{ device: 'wan0' }]);
  try {
    await withDirectory(async (dir) => {
      const children: Child[] = [];
      const clouds: Cloud[] = [];
      try {
        await play(kitIn(dir, { machine, children, clouds, command, launching, prefix }));
      } finally {
        for (const child of children) await child.end('SIGKILL');
        for (const cloud of clouds) await cloud.leave();
      }
    });
  } finally {
    await machine.remove();
  }
}

interface Parts {
  readonly machine: FakeMachine;
  readonly children: Child[];
  readonly clouds: Cloud[];
  /** The command line. */
  readonly command: string;
  /** What starts a daemon with the configuration file that follows. */
  readonly launching: readonly string[];
  readonly prefix: readonly string[];
}

function kitIn(dir: string, { machine, children, clouds, command, launching, prefix }: Parts): Kit {
  const kit_id = randomUUID();
  const config_file = join(dir, 'config.yaml');
  const effects_file = join(dir, 'effects');
  const own = (child: Child): Child => {
    children.push(child);
    return child;
  };
  const launch = (): Child => own(startChild([...launching, config_file], { prefix }));
  const run = async (...words: readonly string[]): Promise<Ended> =>
    own(startChild([command, ...words, '--config', config_file])).ended;
  return {
    dir,
    kit_id,
    config_file,
    socket: controlSocket(join(dir, 'run')),
    machine,
    gateway: {
      driver: 'gateway',
      options: { interval_s: 1, name: 'gw', model: 'test', roots: machine.roots },
    },
    links: {
      driver: 'links',
      options: { interval_s: 1, roots: { proc: machine.roots.proc, sys: machine.roots.sys } },
    },
    rehearse: (options = {}) => ({ driver: 'rehearsal', options: { effects: effects_file, ...options } }),
    // JSON is YAML.
    configure: async (settings) => {
      const dirs = { state_dir: join(dir, 'state'), runtime_dir: join(dir, 'run') };
      await writeFile(effects_file, '', { flag: 'a' });
      await writeFile(config_file, JSON.stringify({ kit_id, clock: 'trusted', ...dirs, ...settings }));
    },
    launch,
    async start() {
      const child = launch();
      await child.printed(/kit-connector started/);
      return child;
    },
    async listen(url) {
      const cloud = await startCloud(url, kit_id);
      clouds.push(cloud);
      return cloud;
    },
    run,
    status: async () => localClient(controlSocket(join(dir, 'run')), new AbortController().signal).status(),
    drone: (key = 'falcon') => assetId(kit_id, key),
    effects: () => readFileSync(effects_file, 'utf8').split('\n').filter(Boolean),
  };
}
