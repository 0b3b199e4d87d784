/** The running driver instances. Each can be stopped separately, so that one can change while the others run. */
import { isDeepStrictEqual } from 'node:util';
import type { DriverInstance } from '../config/drivers.ts';
import type { Hub } from '../hub/hub.ts';
import type { Log } from '../platform/log/log.ts';

/** What a new configuration did to the driver instances, by name. */
export interface DriverChange {
  readonly added: readonly string[];
  readonly removed: readonly string[];
  readonly changed: readonly string[];
  /** Refused by their device or abandoned before, and tried again although their options are the same. */
  readonly tried_again: readonly string[];
}

interface Running {
  readonly instance: DriverInstance;
  readonly end: AbortController;
  readonly done: Promise<void>;
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

  /** Starts, stops and replaces instances to match these. Unchanged instances keep running. */
  async change(next: readonly DriverInstance[]): Promise<DriverChange> {
    const kept = new Map(next.map((instance) => [instance.name, instance]));
    const names = [...this.#running.keys()];
    const removed = names.filter((name) => !kept.has(name));
    const changed = next.filter((instance) => this.#isAnother(instance));
    const tried_again = next.filter(
      (instance) => this.#hasGivenUp(instance.name) && !changed.includes(instance),
    );
    const added = next.filter(({ name }) => !this.#running.has(name));
    const again = [...changed, ...tried_again];
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
    const { name, driver, run } = instance;
    const log = this.#log.child({ driver: name });
    const done = this.#hub.runDriver({ name, driver, run, log, signal: end.signal });
    this.#running.set(name, { instance, end, done });
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

function namesOf(instances: readonly DriverInstance[]): readonly string[] {
  return instances.map(({ name }) => name);
}
