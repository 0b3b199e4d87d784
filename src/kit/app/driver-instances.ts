/** The running driver instances. Each can be stopped separately, so that one can change while the others run. */
import { isDeepStrictEqual } from 'node:util';
import type { DriverInstance } from '../config/drivers.ts';
import type { Hub } from '../hub/hub.ts';
import type { Log } from '../../platform/log/log.ts';

/** What a new configuration did to the driver instances, by name. */
export interface DriverChange {
  readonly added: readonly string[];
  readonly removed: readonly string[];
  readonly changed: readonly string[];
  /** Refused by their device or abandoned before, or with a device that refuses them, and tried again although their options are the same. */
  readonly tried_again: readonly string[];
}

interface Running {
  /** With the newest options, which a run that follows an outage uses. */
  instance: DriverInstance;
  readonly end: AbortController;
  done: Promise<void>;
}

export class DriverInstances {
  readonly #hub: Hub;
  readonly #log: Log;
  /** By name of the instance. */
  readonly #running = new Map<string, Running>();
  #stopped = false;

  constructor(hub: Hub, log: Log) {
    this.#hub = hub;
    this.#log = log;
  }

  start(instances: readonly DriverInstance[]): void {
    for (const instance of instances) this.#start(instance);
  }

  /** Starts, stops and replaces instances to match these. Unchanged instances keep running, as do instances whose driver takes the new options. */
  async change(next: readonly DriverInstance[]): Promise<DriverChange> {
    const kept = new Map(next.map((instance) => [instance.name, instance]));
    const names = [...this.#running.keys()];
    const removed = names.filter((name) => !kept.has(name));
    const changed = next.filter((instance) => this.#isAnother(instance));
    const added = next.filter(({ name }) => !this.#running.has(name));
    const given_up = next.filter(({ name }) => this.#hasGivenUp(name));
    const taken = new Map(
      next.flatMap((instance) => {
        const devices = given_up.includes(instance) ? undefined : this.#takeOver(instance);
        return devices === undefined ? [] : [[instance, devices] as const];
      }),
    );
    const tried_again = next.filter(
      (instance) =>
        !changed.includes(instance) &&
        (given_up.includes(instance) || (taken.get(instance) ?? []).length > 0),
    );
    const again = [...new Set([...changed, ...given_up])].filter((instance) => !taken.has(instance));
    await Promise.all([...removed, ...namesOf(again)].map(async (name) => this.#stop(name)));
    for (const name of removed) this.#hub.retire(name);
    this.start([...again, ...added]);
    return {
      added: namesOf(added),
      removed,
      changed: namesOf(changed),
      tried_again: namesOf(tried_again),
    };
  }

  /** Stops all of them; each has its time to do so, and is abandoned after it. */
  async stop(): Promise<void> {
    this.#stopped = true;
    await Promise.all([...this.#running.keys()].map(async (name) => this.#stop(name)));
  }

  #start(instance: DriverInstance): void {
    if (this.#stopped) return;
    const end = new AbortController();
    const { name, driver } = instance;
    const log = this.#log.child({ driver: name });
    const running: Running = { instance, end, done: Promise.resolve() };
    this.#running.set(name, running);
    const run: DriverInstance['run'] = async (host) => running.instance.run(host);
    running.done = this.#hub.runDriver({ name, driver, run, log, signal: end.signal });
  }

  /** Gives its options to a running driver; undefined when that needs a restart, or is no running driver. */
  #takeOver(instance: DriverInstance): readonly string[] | undefined {
    const { name, driver, options, raw } = instance;
    const running = this.#running.get(name);
    if (running?.instance.driver !== driver || driver.devices === undefined) return undefined;
    const before = without(running.instance.options, driver.devices);
    if (!isDeepStrictEqual(before, without(options, driver.devices))) return undefined;
    const devices = this.#hub.changeOptions(name, raw);
    if (devices) running.instance = instance;
    return devices;
  }

  async #stop(name: string): Promise<void> {
    const running = this.#running.get(name);
    running?.end.abort();
    await running?.done;
    this.#running.delete(name);
  }

  #isAnother({ name, driver, options }: DriverInstance): boolean {
    const running = this.#running.get(name);
    if (!running) return false;
    return running.instance.driver !== driver || !isDeepStrictEqual(running.instance.options, options);
  }

  #hasGivenUp(name: string): boolean {
    const state = this.#hub.drivers().find((view) => view.name === name)?.state;
    return this.#running.has(name) && (state === 'rejected' || state === 'hung');
  }
}

/** Options without the list of devices. */
function without(options: unknown, key: string): object {
  return { ...(typeof options === 'object' ? options : {}), [key]: undefined };
}

function namesOf(instances: readonly DriverInstance[]): readonly string[] {
  return instances.map(({ name }) => name);
}
