/** Starts a measured engine in a process of its own and tells it what to do. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { sleep, within } from '../../../src/platform/time.ts';
import type { EngineChoice } from '../engines/engine.ts';
import type { Target } from '../engines/mqttjs.ts';

export interface SubjectSpec {
  readonly choice: EngineChoice;
  readonly target: Target;
}

interface LoadKind {
  /** Taken in turn. */
  readonly durabilities: readonly ('lazy' | 'sync')[];
  /** `stamped`: filled up to the same weight, with the time it was made; `flight`: as a drone's driver says it. */
  readonly data: 'stamped' | 'flight';
}
export type Load = LoadKind &
  (
    | { readonly kind: 'closed'; readonly messages: number; readonly ahead_max: number }
    | { readonly kind: 'paced'; readonly per_second: number; readonly seconds: number }
  );

export interface SubjectReport {
  readonly sent: number;
  readonly acknowledged: number;
  /** Delay of the main thread's event loop since the load began. */
  readonly loop_p99_ms: number;
}

export type Order = { readonly kind: 'load'; readonly load: Load } | { readonly kind: 'report' | 'close' };
export type Told =
  | { readonly kind: 'opened'; readonly took_ms: number }
  | { readonly kind: 'loaded'; readonly sent: number }
  | { readonly kind: 'report'; readonly report: SubjectReport }
  | { readonly kind: 'lost'; readonly at_us: number }
  | { readonly kind: 'closed' };
type ToldAs<K extends Told['kind']> = Extract<Told, { kind: K }>;

export interface Subject {
  readonly pid: number;
  /** From the start of opening until it was connected. */
  readonly took_ms: number;
  /** Resolves with how many messages were handed over so far once the load is over. */
  load(load: Load): Promise<number>;
  report(): Promise<SubjectReport>;
  /** Waits until the broker has all that was handed over, but not longer than `ms`. */
  acknowledgedAll(ms: number): Promise<SubjectReport>;
  /** When it noticed that the connection is gone, microseconds of the monotonic clock. */
  lost(ms: number): Promise<number | undefined>;
  close(): Promise<void>;
}

/** As the package starts the daemon, for every engine alike; `BENCH_NODE_FLAGS` tries others. */
export const node_flags: readonly string[] = process.env['BENCH_NODE_FLAGS']?.split(' ') ?? [
  '--max-semi-space-size=1',
];

const open_ms = 60_000;
const load_max_ms = 600_000;
const answer_ms = 30_000;
const ask_every_ms = 50;

export async function startSubject(
  spec: SubjectSpec,
  how: { readonly prefix?: readonly string[]; readonly env?: NodeJS.ProcessEnv } = {},
): Promise<Subject> {
  const entry = new URL('../processes/subject-process.ts', import.meta.url).pathname;
  const [command, ...args] = [
    ...(how.prefix ?? []),
    process.execPath,
    ...node_flags,
    entry,
    JSON.stringify(spec),
  ];
  const child = spawn(command, args, {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    env: { ...process.env, ...how.env },
  });
  const exited = once(child, 'exit');
  const told = async <K extends Told['kind']>(kind: K, ms: number): Promise<ToldAs<K> | undefined> => {
    const found = Promise.withResolvers<ToldAs<K> | undefined>();
    const take = (each: Told): void => {
      if (isKind(each, kind)) found.resolve(each);
    };
    const gone = (): void => found.resolve(undefined);
    child.on('message', take).once('exit', gone);
    const answer = await within(ms, found.promise);
    child.off('message', take).off('exit', gone);
    return answer;
  };
  const expectTold = async <K extends Told['kind']>(kind: K, ms: number): Promise<ToldAs<K>> => {
    const answer = await told(kind, ms);
    if (answer) return answer;
    const ended = child.exitCode !== null || child.signalCode !== null;
    const when = ended ? 'before it ended' : `within ${ms} ms`;
    throw new Error(`the ${spec.choice.kind} engine did not say "${kind}" ${when}`);
  };
  const ask = async <K extends Told['kind']>(order: Order, kind: K, ms: number): Promise<ToldAs<K>> => {
    const answer = expectTold(kind, ms);
    child.send(order);
    return answer;
  };
  const report = async (): Promise<SubjectReport> =>
    (await ask({ kind: 'report' }, 'report', answer_ms)).report;
  const lost = told('lost', load_max_ms);
  const { took_ms } = await expectTold('opened', open_ms);
  return {
    pid: child.pid ?? 0,
    took_ms,
    load: async (load) => (await ask({ kind: 'load', load }, 'loaded', load_max_ms)).sent,
    report,
    async acknowledgedAll(ms) {
      const deadline_ms = performance.now() + ms;
      for (;;) {
        const now = await report();
        if (now.acknowledged >= now.sent || performance.now() > deadline_ms) return now;
        await sleep(ask_every_ms, new AbortController().signal);
      }
    },
    lost: async (ms) => (await within(ms, lost))?.at_us,
    async close() {
      const closed = told('closed', answer_ms);
      if (child.connected) child.send({ kind: 'close' } satisfies Order);
      await closed;
      if (child.exitCode === null && child.signalCode === null) {
        if (!(await within(answer_ms, exited))) child.kill('SIGKILL');
      }
    },
  };
}

function isKind<K extends Told['kind']>(told: Told, kind: K): told is ToldAs<K> {
  return told.kind === kind;
}
