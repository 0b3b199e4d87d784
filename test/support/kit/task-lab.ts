/** A kit for tasks: a disk that outlives a killed runner, assets with commands whose handlers the test holds in its hand. */
import { randomUUID } from 'node:crypto';
import { vi } from 'vitest';
import { z } from 'zod';
import { taskReport, type TaskReport } from '../../../src/contract/tasks.ts';
import { type Command, type CommandContext, defineCommand } from '../../../src/toolkit/driver/command.ts';
import type { JsonObject } from '../../../src/contract/json.ts';
import { StorageUnavailable } from '../../../src/platform/errors.ts';
import type { Appender, Draft, Journal } from '../../../src/kit/outbox/api.ts';
import type { JournalEntry } from '../../../src/kit/outbox/protocol.ts';
import type { Clock } from '../../../src/platform/clock.ts';
import type { TaskActivity } from '../../../src/kit/tasks/activity.ts';
import {
  createTaskRunner,
  type DispatchMeta,
  type TaskRunnerOptions,
} from '../../../src/kit/tasks/runner.ts';
import { recordingLog } from '../recording-log.ts';

/** As the outbox's group commit. */
export const commit_ms = 20;

/** What survives a kill, and what the cloud has heard. */
export class TaskDisk {
  readonly entries = new Map<string, JournalEntry>();
  readonly drafts: Draft[] = [];
  /** Why the disk takes nothing; undefined while it is well. */
  failing: string | undefined;
  /** While it fails: it keeps what it refuses, as when the final fsync of a commit fails. */
  keeps_refused = false;
  /** While it fails: nothing can be read from it either. */
  blind = false;

  entry(task_id: string): JournalEntry | undefined {
    return this.entries.get(task_id);
  }

  reports(task_id: string): readonly TaskReport[] {
    return this.drafts
      .filter(({ channel }) => channel === `task/${task_id}`)
      .map(({ data }) => taskReport.parse(data));
  }
}

/**
 * One run's door to the disk, faithful to `Journal` and `Appender`: a message is heard once it is on disk, in one commit
 * with its entry, or from memory when the disk refuses; the end of a task only from disk. A kill before the commit loses
 * both.
 */
function openDisk(disk: TaskDisk): Journal & Appender & { kill(): void } {
  const left_open = [...disk.entries.values()].filter(
    ({ state }) => state === 'pending' || state === 'running',
  );
  const timers = new Set<NodeJS.Timeout>();
  let killed = false;
  const commit = async <T>(draft: Draft | undefined, write: () => { readonly value: T }): Promise<T> =>
    new Promise<T>((resolve, reject) => {
      if (killed) return;
      const timer = setTimeout(() => {
        timers.delete(timer);
        if (draft) disk.drafts.push(draft);
        const result = disk.failing === undefined || disk.keeps_refused ? write() : undefined;
        if (disk.failing !== undefined) reject(new StorageUnavailable(disk.failing));
        else if (result !== undefined) resolve(result.value);
      }, commit_ms);
      timers.add(timer);
    });
  let seq = 0;
  return {
    left_open,
    append(draft) {
      commit(draft, () => ({ value: undefined })).catch(() => undefined);
      seq += 1;
      return { epoch: 1, seq };
    },
    admit: async (entry) =>
      commit(undefined, () => {
        const known = disk.entries.get(entry.task_id);
        if (!known) disk.entries.set(entry.task_id, entry);
        return { value: known };
      }),
    record: async (entry, report) =>
      commit(report, () => {
        disk.entries.set(entry.task_id, entry);
        return { value: undefined };
      }),
    conclude(entry, report) {
      const tried = Promise.withResolvers<void>();
      const stored = Promise.withResolvers<void>();
      const attempt = (): void => {
        if (killed) return;
        const timer = setTimeout(() => {
          timers.delete(timer);
          if (disk.failing === undefined || disk.keeps_refused) {
            disk.entries.set(entry.task_id, entry);
            disk.drafts.push(report);
          }
          if (disk.failing === undefined) {
            tried.resolve();
            stored.resolve();
            return;
          }
          tried.reject(new StorageUnavailable(disk.failing));
          attempt();
        }, commit_ms);
        timers.add(timer);
      };
      attempt();
      return { tried: tried.promise, stored: stored.promise };
    },
    async find(task_id) {
      if (disk.failing !== undefined && disk.blind) throw new StorageUnavailable(disk.failing);
      return disk.entries.get(task_id);
    },
    list: async (limit) => [...disk.entries.values()].toReversed().slice(0, limit),
    kill() {
      killed = true;
      for (const timer of timers) clearTimeout(timer);
    },
  };
}

/** One call of a handler. */
export interface HandlerCall {
  readonly asset_id: string;
  readonly command: string;
  /** What the dispatch said, to tell the tasks apart. */
  readonly n: number;
  readonly context: CommandContext;
  succeed(result?: JsonObject): void;
  fail(error: unknown): void;
}

export interface FakeAsset {
  readonly id: string;
  readonly name: string;
  online: boolean;
  announced: boolean;
}

interface Dispatch {
  readonly task_id?: string;
  readonly asset?: FakeAsset;
  readonly command?: string;
  readonly n?: number;
  readonly payload?: unknown;
  readonly created_at?: string;
  readonly deadline?: string;
  readonly retained?: boolean;
  readonly duplicate?: boolean;
  readonly requested_by?: string;
  readonly requested_by_name?: string;
  readonly author?: DispatchMeta['author'];
}

type Input = z.ZodObject<{ n: z.ZodOptional<z.ZodInt>; speed: z.ZodOptional<z.ZodNumber> }, z.core.$strict>;
type CommandSpec = Parameters<typeof defineCommand<Input>>[0];

type Options = Partial<Pick<TaskRunnerOptions, 'limits' | 'findCommand'>> & {
  readonly disk?: TaskDisk;
  readonly kit?: Kit;
};

/** The devices: they do not notice that the connector is killed. */
export class Kit {
  readonly drone: FakeAsset = { id: randomUUID(), name: 'Falcon 1', online: true, announced: true };
  readonly camera: FakeAsset = { id: randomUUID(), name: 'Gate camera', online: true, announced: true };
  readonly invocations: HandlerCall[] = [];
  /** How often a payload was validated. */
  validations = 0;
  /** The largest speed that the commands accept; `announceAgain` brings it in. */
  speed_max = 1;
  /** Added to the time of day; the monotonic clock does not know of it. */
  jump_ms = 0;
  synced = true;
  readonly clock: Clock = {
    boot_id: 'boot',
    stamp: () => ({ time_ms: Date.now() + this.jump_ms, mono_ms: performance.now(), synced: this.synced }),
  };

  /** By asset: one announcement keeps its commands. */
  readonly #commands = new Map<string, readonly Command[]>();

  /** The newest invocation. */
  get last(): HandlerCall {
    const last = this.invocations.at(-1);
    if (!last) throw new Error('no handler was called');
    return last;
  }

  find(asset_id: string, name: string): ReturnType<TaskRunnerOptions['findCommand']> {
    const asset = [this.drone, this.camera].find(({ id }) => id === asset_id);
    if (!asset?.announced) return { refusal: 'no asset of this kit has this id' };
    const commands = this.#commands.get(asset_id) ?? this.#commandsOf(asset);
    this.#commands.set(asset_id, commands);
    const command = commands.find((each) => each.name === name);
    return command ? { asset, command } : { refusal: `${asset.name} has no command "${name}"` };
  }

  /** The drivers announce their assets again, with other commands of the same names. */
  announceAgain(): void {
    this.#commands.clear();
  }

  #commandsOf(asset: FakeAsset): readonly Command[] {
    const { speed_max } = this;
    const input: Input = z
      .strictObject({
        n: z.int().optional(),
        speed: z.number().min(0).max(speed_max).optional().describe('knots'),
      })
      .refine(() => {
        this.validations += 1;
        return true;
      });
    const command = (about: { name: string } & Partial<Omit<CommandSpec, 'input' | 'handle'>>): Command =>
      defineCommand({
        description: '',
        risk_level: 'low',
        input,
        ...about,
        handle: async ({ n }, context) =>
          new Promise((resolve, reject) => {
            this.invocations.push({
              asset_id: asset.id,
              command: about.name,
              n: n ?? 0,
              context,
              succeed: (result = {}) => resolve(result),
              fail: reject,
            });
          }),
      });
    return [
      command({ name: 'work' }),
      command({
        name: 'goto',
        risk_level: 'medium',
        timeoutOf_ms: ({ speed }) => (speed === undefined ? undefined : 60_000),
      }),
      command({ name: 'disarm', risk_level: 'high', safety: true }),
      command({ name: 'land', risk_level: 'high', safety: true }),
      command({ name: 'probe', repeatable: true }),
      command({ name: 'record', own_line: true }),
      command({ name: 'set_speed', safety: ({ speed }) => speed === 0 }),
    ];
  }
}

/** Starts a runner over the disk. `kill` ends it as a power cut does: nothing it does afterwards reaches the disk. */
export function startLab(options: Options = {}) {
  const disk = options.disk ?? new TaskDisk();
  const kit = options.kit ?? new Kit();
  const log = recordingLog();
  const door = openDisk(disk);
  const end = new AbortController();
  const activities: TaskActivity[] = [];
  const runner = createTaskRunner({
    journal: door,
    outbox: door,
    findCommand: options.findCommand ?? ((asset_id, name) => kit.find(asset_id, name)),
    clock: kit.clock,
    log,
    observe: (activity) => void activities.push(activity),
    signal: end.signal,
    ...(options.limits ? { limits: options.limits } : {}),
  });

  /** Hands the dispatch to the runner and does not wait for it. */
  const send = (dispatch: Dispatch = {}): { readonly id: string; readonly taken: Promise<void> } => {
    const {
      asset = kit.drone,
      command = 'work',
      task_id: id = randomUUID(),
      retained = false,
      duplicate = false,
    } = dispatch;
    const body = {
      task_id: id,
      asset_id: asset.id,
      command_name: command,
      payload: dispatch.payload ?? { n: dispatch.n ?? 0 },
      created_at: dispatch.created_at ?? iso(kit.clock.stamp().time_ms),
      ...(dispatch.deadline ? { deadline: dispatch.deadline } : {}),
      requested_by: dispatch.requested_by,
      requested_by_name: dispatch.requested_by_name,
    };
    const meta = { task_id_in_topic: id, retained, duplicate, author: dispatch.author };
    return { id, taken: runner.receive(JSON.stringify(body), meta) };
  };

  return {
    disk,
    kit,
    log,
    /** What its observer was given. */
    activities,
    runner,
    end,
    send,
    /** Sends, and lets the disk take the dispatch and its start. */
    async give(dispatch: Dispatch = {}): Promise<string> {
      const { id, taken } = send(dispatch);
      await pass(2 * commit_ms);
      await taken;
      return id;
    },
    /** What the newest handler comes to, and the disk takes it. */
    async succeed(result?: JsonObject): Promise<void> {
      kit.last.succeed(result);
      await pass(commit_ms);
    },
    async fail(error: unknown): Promise<void> {
      kit.last.fail(error);
      await pass(commit_ms);
    },
    last: (task_id: string): TaskReport | undefined => disk.reports(task_id).at(-1),
    error: (task_id: string) => disk.reports(task_id).at(-1)?.result['error'],
    kill(): void {
      door.kill();
      end.abort();
    },
  };
}

export type Lab = ReturnType<typeof startLab>;

/** Lets fake time pass. */
export async function pass(ms: number): Promise<void> {
  await vi.advanceTimersByTimeAsync(ms);
}

export function iso(time_ms: number): string {
  return new Date(time_ms).toISOString();
}
