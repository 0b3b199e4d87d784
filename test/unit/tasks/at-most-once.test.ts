/** The promise that matters most, against whatever order of deliveries, restarts, cancels, answers and disk failures. */
import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import { useFakeTime } from '../../support/fake-time.ts';
import { type Lab, pass, startLab } from '../../support/task-lab.ts';

useFakeTime();

const commands = ['work', 'goto', 'disarm', 'probe'] as const;
const ids = Array.from({ length: 6 }, (_, n) => `00000000-0000-4000-8000-00000000000${n}`);
const nth = fc.nat(ids.length - 1);

type Step =
  | { readonly kind: 'deliver'; readonly n: number; readonly duplicate: boolean }
  | { readonly kind: 'cancel'; readonly n: number }
  | { readonly kind: 'settle'; readonly pick: number; readonly well: boolean }
  | { readonly kind: 'wait'; readonly ms: number }
  | { readonly kind: 'kill' | 'stop' | 'asset' | 'disk' };

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({ kind: fc.constant('deliver' as const), n: nth, duplicate: fc.boolean() }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('cancel' as const), n: nth }) },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant('settle' as const), pick: fc.nat(50), well: fc.boolean() }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant('wait' as const),
      ms: fc.constantFrom(1, 10, 20, 40, 900, 3_000),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.constantFrom<Step>({ kind: 'kill' }, { kind: 'stop' }, { kind: 'asset' }, { kind: 'disk' }),
  },
);

/** The command of a task follows from its number: a redelivery is the same dispatch. */
const commandOf = (n: number): string => commands[n % commands.length] ?? 'work';

async function take(lab: Lab, { kind, ...how }: Step, created: readonly string[]): Promise<Lab> {
  const { disk, kit } = lab;
  if ('n' in how && 'duplicate' in how) {
    const created_at = created[how.n] ?? '';
    void lab
      .send({ task_id: ids[how.n]!, n: how.n, command: commandOf(how.n), created_at, ...how })
      .taken.catch(() => undefined);
  } else if ('n' in how) {
    lab.runner.cancel(ids[how.n]!);
  } else if ('pick' in how) {
    const invocation = kit.invocations[how.pick % Math.max(1, kit.invocations.length)];
    if (how.well) invocation?.succeed();
    else invocation?.fail(new Error('the device said no'));
  } else if ('ms' in how) {
    await pass(how.ms);
  } else if (kind === 'asset') {
    kit.drone.announced = !kit.drone.announced;
    lab.runner.assetsChanged();
  } else if (kind === 'disk') {
    disk.failing = disk.failing === undefined ? 'no space left' : undefined;
  } else {
    const stopped = kind === 'stop' ? lab.runner.stop(500) : undefined;
    await pass(kind === 'stop' ? 600 : 0);
    await stopped;
    lab.kill();
    const next = startLab({ disk, kit });
    next.runner.resume();
    return next;
  }
  return lab;
}

/** Restarts the connector with a disk that is well, and lets everything come to its end. */
async function settleAll(lab: Lab): Promise<void> {
  lab.kill();
  lab.disk.failing = undefined;
  const last = startLab({ disk: lab.disk, kit: lab.kit });
  last.runner.resume();
  await pass(60_000);
  for (const invocation of lab.kit.invocations) invocation.succeed();
  await pass(60_000);
  last.kill();
}

it('a task runs at most once unless its command is repeatable, and ends exactly one way', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 10, maxLength: 60 }), async (steps) => {
      let lab = startLab();
      const created = ids.map(() => new Date(Date.now()).toISOString());
      let disk_failed = false;
      for (const each of steps) {
        lab = await take(lab, each, created);
        disk_failed ||= lab.disk.failing !== undefined;
      }
      await settleAll(lab);
      for (const [n, id] of ids.entries()) {
        const runs = lab.kit.invocations.filter((invocation) => invocation.n === n).length;
        const reports = lab.disk.reports(id);
        if (commandOf(n) !== 'probe') expect(runs, `runs of ${commandOf(n)}`).toBeLessThanOrEqual(1);
        const entry = lab.disk.entry(id);
        if (entry) expect(['completed', 'failed']).toContain(entry.state);
        if (!steps.some((each) => each.kind === 'deliver' && each.n === n)) expect(reports).toEqual([]);
        // An end that the disk did not take is forgotten with the memory: the next run knows the task as still open.
        if (disk_failed) continue;
        const end = reports.findIndex(({ status }) => status !== 'running');
        for (const later of reports.slice(end)) expect(later).toEqual(reports[end]);
        if (runs > 0) expect(end).toBeGreaterThan(0);
      }
    }),
    { numRuns: 150 },
  );
});
