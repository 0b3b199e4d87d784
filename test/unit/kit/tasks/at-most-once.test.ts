/** The promise that matters most, against whatever order of deliveries, restarts, cancels, answers and disk failures. */
import { isDeepStrictEqual } from 'node:util';
import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import type { TaskReport } from '../../../../src/contract/tasks.ts';
import { not_sent } from '../../../../src/platform/errors.ts';
import { useFakeTime } from '../../../support/fake-time.ts';
import { type HandlerCall, type Lab, pass, startLab } from '../../../support/kit/task-lab.ts';

useFakeTime();

const commands = ['work', 'goto', 'disarm', 'probe'] as const;
const ids = Array.from({ length: 6 }, (_, n) => `00000000-0000-4000-8000-00000000000${n}`);
const nth = fc.nat(ids.length - 1);

type Step =
  | { readonly kind: 'deliver'; readonly n: number; readonly duplicate: boolean }
  | { readonly kind: 'cancel'; readonly n: number }
  | { readonly kind: 'settle'; readonly pick: number; readonly well: boolean }
  | { readonly kind: 'wait'; readonly ms: number }
  | { readonly kind: 'kill' | 'stop' | 'asset' | 'disk' | 'keep' | 'blind' };

const steps = (others: readonly Step[]): fc.Arbitrary<Step[]> => {
  const step = fc.oneof<fc.WeightedArbitrary<Step>[]>(
    { weight: 5, arbitrary: fc.record({ kind: fc.constant('deliver'), n: nth, duplicate: fc.boolean() }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('cancel'), n: nth }) },
    {
      weight: 2,
      arbitrary: fc.record({ kind: fc.constant('settle'), pick: fc.nat(50), well: fc.boolean() }),
    },
    {
      weight: 3,
      arbitrary: fc.record({ kind: fc.constant('wait'), ms: fc.constantFrom(1, 10, 20, 40, 900, 3_000) }),
    },
    { weight: 2, arbitrary: fc.constantFrom(...others) },
  );
  return fc.array(step, { minLength: 10, maxLength: 60 });
};
const restarts: readonly Step[] = [{ kind: 'kill' }, { kind: 'stop' }, { kind: 'asset' }];

/** The command of a task follows from its number: a redelivery is the same dispatch. */
const commandOf = (n: number): string => commands[n % commands.length] ?? 'work';

async function take(lab: Lab, step: Step, created: readonly string[]): Promise<Lab> {
  const { disk, kit } = lab;
  switch (step.kind) {
    case 'deliver':
      deliver(lab, step, created);
      break;
    case 'cancel':
      lab.runner.cancel(ids[step.n]!);
      break;
    case 'settle':
      settle(kit.invocations[step.pick % Math.max(1, kit.invocations.length)], step.well);
      break;
    case 'wait':
      await pass(step.ms);
      break;
    case 'asset':
      kit.drone.announced = !kit.drone.announced;
      lab.runner.assetsChanged();
      break;
    case 'disk':
      disk.failing = disk.failing === undefined ? 'no space left' : undefined;
      break;
    case 'keep':
      disk.keeps_refused = !disk.keeps_refused;
      break;
    case 'blind':
      disk.blind = !disk.blind;
      break;
    case 'stop':
      await Promise.all([lab.runner.stop(500), pass(600)]);
      return restart(lab);
    case 'kill':
      return restart(lab);
  }
  return lab;
}

function deliver(lab: Lab, { n, duplicate }: Step & { kind: 'deliver' }, created: readonly string[]): void {
  const dispatch = { task_id: ids[n]!, n, command: commandOf(n), created_at: created[n]!, duplicate };
  lab.send(dispatch).taken.catch(() => undefined);
}

function settle(invocation: HandlerCall | undefined, well: boolean): void {
  if (well) invocation?.succeed();
  else invocation?.fail(new Error('the device said no'));
}

function restart(lab: Lab): Lab {
  lab.kill();
  const next = startLab({ disk: lab.disk, kit: lab.kit });
  next.runner.resume();
  return next;
}

/** Restarts the connector with a disk that is well, and lets everything come to its end. */
async function settleAll(lab: Lab): Promise<void> {
  lab.disk.failing = undefined;
  const last = restart(lab);
  await pass(60_000);
  for (const invocation of lab.kit.invocations) invocation.succeed();
  await pass(60_000);
  last.kill();
}

function runsOf({ kit }: Lab, n: number): number {
  return kit.invocations.filter((invocation) => invocation.n === n).length;
}

function repeated(lab: Lab, n: number): boolean {
  return runsOf(lab, n) > 1 && commandOf(n) !== 'probe';
}

/** What is wrong with the course of a task; undefined when nothing is. */
function fault(lab: Lab, n: number): string | undefined {
  if (repeated(lab, n)) return 'ran twice';
  const state = lab.disk.entry(ids[n]!)?.state;
  if (state === 'pending' || state === 'running') return `is ${state} for ever`;
  const reports = lab.disk.reports(ids[n]!);
  const [end, ...others] = reports.filter(({ status }) => status !== 'running');
  if (!end) return state === undefined ? undefined : 'is over and was never reported so';
  if (others.some((report) => !isDeepStrictEqual(report, end))) return 'ended in two ways';
  return runsOf(lab, n) > 0 ? faultOfRun(reports, end) : undefined;
}

function faultOfRun(reports: readonly TaskReport[], end: TaskReport): string | undefined {
  if (reports[0]?.status !== 'running') return 'ran and was not reported as running first';
  const untouched = JSON.stringify(end.result).includes(not_sent);
  return untouched ? 'ran although it was reported as not sent' : undefined;
}

async function play(story: readonly Step[]): Promise<Lab> {
  const created = ids.map(() => new Date().toISOString());
  let lab = startLab();
  for (const step of story) lab = await take(lab, step, created);
  await settleAll(lab);
  return lab;
}

it('a task runs at most once unless its command is repeatable, and ends exactly one way', async () => {
  await fc.assert(
    fc.asyncProperty(steps(restarts), async (story) => {
      const lab = await play(story);
      for (const n of ids.keys()) expect(fault(lab, n), `task ${n}, ${commandOf(n)}`).toBeUndefined();
    }),
    { numRuns: 150 },
  );
});

it('both hold also when the journal refuses, keeps what it refused, or cannot be read, at any step and over any restart', async () => {
  const disk: readonly Step[] = [{ kind: 'disk' }, { kind: 'disk' }, { kind: 'keep' }, { kind: 'blind' }];
  await fc.assert(
    fc.asyncProperty(steps([...restarts, ...disk]), async (story) => {
      const lab = await play(story);
      for (const n of ids.keys()) expect(fault(lab, n), `task ${n}, ${commandOf(n)}`).toBeUndefined();
    }),
    { numRuns: 400 },
  );
});
