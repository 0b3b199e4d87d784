/** The service on a machine of its own: the real ingest and the real store, whose thread and network are the simulator's. */
import { join } from 'node:path';
import type { Duplex } from 'node:stream';
import { transportOver } from '../../../src/mqtt/socket.ts';
import { messageOf, StorageUnavailable } from '../../../src/platform/errors.ts';
import type { Service } from '../../../src/cloud/service.ts';
import { startStandalone } from '../../../src/cloud/standalone.ts';
import type { RunningService } from '../../../src/cloud/start.ts';
import { server_round_ms } from '../../../src/cloud/history/keeper.ts';
import { openSqlite } from '../../../src/cloud/sql/sqlite.ts';
import { sqlStore, type Store } from '../../../src/cloud/store/sql-store.ts';
import { Disk } from './disk.ts';
import type { Rng } from './rng.ts';
import type { Machine, Proc, World } from './scheduler.ts';
import type { Witness } from '../checks/witness.ts';
import { brokerOptions } from '../../support/brokers/broker-options.ts';

/** Nothing is old enough to be deleted in a story. */
const history_retention = { days: { event: 400, position: 400, feed: 400, kit: 400 }, figures_days: 400 };

export const database_file = 'service.db';
const quick_ms = 0.2;
const slow_ms = 3;
/** Whoever runs it starts it again after this time. */
const restart_ms = 2_000;

export interface ServicePart {
  readonly world: World;
  readonly rng: Rng;
  readonly folder: string;
  readonly protocol: 'auto' | '5' | '3.1.1';
  readonly witness: Witness;
  readonly openSocket: () => Duplex;
  readonly lost: (proc: Proc, silent: boolean) => void;
  readonly trace: (text: string, facts?: object) => void;
  readonly violation: (what: string) => void;
  readonly later: (delay_ms: number, act: () => void) => void;
}

interface ServiceRun {
  readonly proc: Proc;
  running: RunningService | undefined;
  service: Service | undefined;
  stopping: boolean;
}

export const client_id = 'service';
const operator = {
  key_id: 'k',
  label: 'operator',
  user_id: '00000000-0000-4000-8000-000000000001',
  scopes: ['commands'],
  kits: '*',
} as const;

export class ServiceHost {
  readonly machine: Machine = { name: 'cloud', wall_offset_ms: 0 };
  readonly disk: Disk;
  run: ServiceRun | undefined;
  hangs_until_ms = 0;
  /** Its database takes nothing. */
  refuses = false;
  readonly #parts: ServicePart;
  #starts = 0;

  constructor(parts: ServicePart) {
    this.#parts = parts;
    this.disk = new Disk(join(parts.folder, 'service'));
  }

  get file(): string {
    return join(this.disk.folder, database_file);
  }

  start(): void {
    if (this.run) return;
    const { world } = this.#parts;
    this.#starts += 1;
    const proc = world.spawn(`service#${this.#starts}`, this.machine);
    const run: ServiceRun = { proc, running: undefined, service: undefined, stopping: false };
    this.run = run;
    world.after(0, proc, () => void this.#start(run));
  }

  kill(how: 'process' | 'power'): void {
    const { run } = this;
    if (!run) return;
    this.run = undefined;
    run.proc.alive = false;
    this.#parts.lost(run.proc, how === 'power');
    this.disk.kill();
    this.#parts.trace('the service was killed', { how });
  }

  stop(): void {
    const { run } = this;
    const running = run?.running;
    if (!run || !running || run.stopping) return;
    run.stopping = true;
    this.#parts.world.after(0, run.proc, () => {
      running.stop().then(
        () => this.#stopped(run),
        (error: unknown) => this.#parts.violation(`the service's stop failed: ${messageOf(error)}`),
      );
    });
  }

  /** An operator asks for a command. Answers nothing where the service refuses. */
  command(
    kit_id: string,
    asked: Parameters<Service['sendCommand']>[2],
    begun: (task_id: string) => void,
  ): void {
    const { run } = this;
    const service = run?.service;
    if (!run || !service) return;
    this.#parts.world.after(0, run.proc, () => {
      service.sendCommand(operator, kit_id, asked).then(
        ({ id }) => begun(id),
        () => undefined,
      );
    });
  }

  cancel(kit_id: string, task_id: string): void {
    const { run } = this;
    const service = run?.service;
    if (!run || !service) return;
    this.#parts.world.after(0, run.proc, () => {
      service.cancelTask(operator, kit_id, task_id).catch(() => undefined);
    });
  }

  async #start(run: ServiceRun): Promise<void> {
    const { openSocket, protocol, trace } = this.#parts;
    const log = {
      info: (facts: object, text: string) => trace(`service: ${text}`, facts),
      warn: (facts: object, text: string) => trace(`service: ${text}`, facts),
      error: (facts: object, text: string) => trace(`service: ${text}`, facts),
    };
    try {
      run.running = await startStandalone({
        store: this.#port(sqlStore(openSqlite(this.file)), run.proc),
        broker: brokerOptions('mqtt://broker:1883', {
          username: client_id,
          protocol,
          connect_timeout_ms: 15_000,
        }),
        client_id,
        listen: { host: '127.0.0.1', port: 0 },
        hosts: [],
        media_origins: [],
        page: async () => Promise.reject(new Error('no page here')),
        version: '0',
        log,
        history: { retention: history_retention, every_ms: server_round_ms, divides_all: true },
        openTransport: async (_endpoint, stop) => transportOver(openSocket(), stop),
        serve: async (_at, parts) => {
          run.service = parts.service;
          return { url: '', closed: Promise.resolve() };
        },
      });
      trace('the service started', { run: run.proc.name });
    } catch (error) {
      trace('the service did not start', { reason: messageOf(error) });
      if (this.run !== run) return;
      this.kill('process');
      this.#parts.later(restart_ms, () => this.start());
    }
  }

  #stopped(run: ServiceRun): void {
    if (this.run !== run) return;
    this.run = undefined;
    run.proc.alive = false;
    this.disk.kill();
    this.#parts.trace('the service stopped');
    this.#parts.later(restart_ms, () => this.start());
  }

  /** Each question takes its time, as over a thread; a question that was asked may be answered to nobody. */
  #port(store: Store, proc: Proc): Store {
    const { world, rng, witness } = this.#parts;
    const after = async <T>(work: () => Promise<T>): Promise<T> =>
      new Promise((resolve, reject) => {
        const hangs_ms = Math.max(0, this.hangs_until_ms - world.now_ms);
        world.after(hangs_ms + rng.scale(quick_ms, slow_ms), proc, () => {
          if (this.refuses) {
            world.after(quick_ms, proc, () => reject(new StorageUnavailable('the disk fails')));
            return;
          }
          work().then(
            (value) => void world.after(quick_ms, proc, () => resolve(value)),
            (error: unknown) => void world.after(quick_ms, proc, () => reject(asError(error))),
          );
        });
      });
    const commit: Store['commit'] = async (receptions, now_ms) =>
      after(async () => {
        const committed = await store.commit(receptions, now_ms);
        witness.storedAll(receptions);
        return committed;
      });
    return new Proxy(store, {
      get: (target, name) => {
        if (name === 'commit') return commit;
        if (name === 'close') return async () => target.close();
        const method: unknown = Reflect.get(target, name);
        if (typeof method !== 'function') return method;
        return async (...args: unknown[]) =>
          after(async () => Promise.resolve<unknown>(Reflect.apply(method, target, args)));
      },
    });
  }
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(messageOf(error));
}
