/** Runs the driver in a real hub with drones on the loopback, for the tests of this folder. */
import { mavlink } from '../../../../drivers/mavlink/mavlink.ts';
import { assetId } from '../../../../src/contract/identity.ts';
import { channels } from '../../../../src/contract/topics.ts';
import type { JsonObject } from '../../../../src/contract/json.ts';
import { own_stalls } from '../../../../src/platform/stalls.ts';
import { FakeDrone } from '../../../fakes/fake-drone.ts';
import { eventually } from '../../../support/eventually.ts';
import { hubLab, kit_id } from '../../../support/kit/hub-lab.ts';
import { freePort } from '../../../support/ports.ts';

type DroneOptions = Partial<ConstructorParameters<typeof FakeDrone>[0]>;
interface TaskOptions {
  readonly remaining_ms?: number;
  readonly signal?: AbortSignal;
  readonly key?: string;
  readonly progress?: (sentence: string, pct?: number) => void;
  /** Age of the task; undefined: unknown to the task runner. */
  readonly age_ms?: number | undefined;
  /** A restart of the connector interrupted an earlier run. */
  readonly repeated?: boolean;
}

export const drone_key = 'mavlink:00000000c0ffee01';

/** Starts the driver with one UDP link. Everything ends with `stop`. */
export async function mavlinkLab(
  /** `link`: more options of its link. */
  { link = {}, ...options }: Readonly<Record<string, unknown>> & { readonly link?: object } = {},
  /** Retained announcements of an earlier run. */
  announced: Parameters<typeof hubLab>[0] = {},
) {
  const port = await freePort();
  // As the daemon does: on a machine without a free processor drones are not silent.
  const watching = new AbortController();
  own_stalls.watch(watching.signal);
  const lab = hubLab({ configured: ['drones'], rates: { default: 1_000_000 }, ...announced });
  const links = [{ kind: 'udp_listen', host: '127.0.0.1', port, name: 'field', ...link }];
  void lab.run(mavlink, 'drones', { options: { links, ...options } });
  const drones: FakeDrone[] = [];
  const feed = (name: string, key = drone_key): string => channels.feed(assetId(kit_id, key), name);
  return {
    ...lab,
    port,
    /** Adds a drone and starts it. */
    async fly(about: DroneOptions = {}): Promise<FakeDrone> {
      const drone = new FakeDrone({ port, ...about });
      drones.push(drone);
      await drone.start();
      return drone;
    },
    feed,
    /** Resolves with a matching message of a feed, received already or next. */
    async sees(
      name: string,
      fits: (data: JsonObject) => boolean = () => true,
      key = drone_key,
    ): Promise<JsonObject> {
      const draft = await lab.outbox.until(
        (each) => each.channel === feed(name, key) && each.data !== null && fits(each.data),
      );
      return draft.data as JsonObject;
    },
    /** Resolves when the hub shows the asset as `status`. */
    async until(status: 'online' | 'offline', key = drone_key): Promise<void> {
      await eventually(`${key} is ${status}`, () =>
        lab.hub.assets().some((asset) => asset.key === key && asset.status === status),
      );
    },
    /** Runs a command like the task runner. */
    async command(
      name: string,
      payload: JsonObject = {},
      {
        remaining_ms = 10_000,
        signal = new AbortController().signal,
        key = drone_key,
        progress = () => undefined,
        age_ms,
        repeated = false,
      }: TaskOptions = {},
    ): Promise<JsonObject> {
      const found = lab.hub.findCommand(assetId(kit_id, key), name);
      if ('refusal' in found) throw new Error(found.refusal);
      const due_ms = performance.now() + remaining_ms;
      return found.command.read(payload).run({
        signal,
        progress,
        repeated,
        age_ms: () => age_ms ?? null,
        remaining_ms: () => Math.max(0, due_ms - performance.now()),
      });
    },
    stop: async () => {
      watching.abort();
      await lab.stop();
      for (const drone of drones) drone.stop();
    },
  };
}

export type MavlinkLab = Awaited<ReturnType<typeof mavlinkLab>>;

type Options = Readonly<Record<string, unknown>>;
type Scene<Of extends readonly unknown[]> = (...of: Of) => Promise<void>;
/** What is run, behind the options of the driver where there are some. */
export type Run<Of extends readonly unknown[]> =
  | readonly [run: Scene<Of>]
  | readonly [Options, run: Scene<Of>];

export function optionsAnd<Of extends readonly unknown[]>(run: Run<Of>): readonly [Options, Scene<Of>] {
  return run.length === 1 ? [{}, run[0]] : run;
}

/** Runs with a lab and ends it. */
export async function withLab(...given: Run<[lab: MavlinkLab]>): Promise<void> {
  const [options, run] = optionsAnd(given);
  const lab = await mavlinkLab(options);
  try {
    await run(lab);
  } finally {
    await lab.stop();
  }
}

/** Runs with a drone that meets the preconditions of all commands. */
export async function withDrone(
  about: DroneOptions,
  ...given: Run<[lab: MavlinkLab, drone: FakeDrone]>
): Promise<void> {
  const [options, run] = optionsAnd(given);
  await withLab(options, async (lab) => {
    const drone = await lab.fly(about);
    await lab.sees('gps', ({ alt_m, relative_alt_m }) => alt_m !== null && relative_alt_m !== null);
    await lab.sees('sys_status', ({ ekf_ok, pre_arm_check }) => ekf_ok !== null && pre_arm_check !== null);
    await run(lab, drone);
  });
}
