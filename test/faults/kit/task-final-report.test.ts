/** The disk refuses while a task's turn comes, and the power goes: with a real buffer, over a restart. */
import { randomUUID } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { taskReport, type TaskReport } from '../../../src/contract/tasks.ts';
import { defineCommand, noInput } from '../../../src/toolkit/driver/command.ts';
import { StorageUnavailable } from '../../../src/platform/errors.ts';
import { openOutbox } from '../../../src/kit/outbox/live/outbox.ts';
import { type StartStore, startStore } from '../../../src/kit/outbox/live/store-client.ts';
import { createTaskRunner, type TaskRunnerOptions } from '../../../src/kit/tasks/runner.ts';
import { roomy_limits } from '../../support/kit/connector.ts';
import { eventually } from '../../support/eventually.ts';
import { steadyClock } from '../../support/disk/outbox-lab.ts';
import { recordingLog } from '../../support/recording-log.ts';
import { makeDirectory } from '../../support/temporary.ts';

const asset_id = randomUUID();
const [first, second] = [randomUUID(), randomUUID()];

/** A run of a connector over the buffer in `dir`. */
async function startRun(dir: string, findCommand: TaskRunnerOptions['findCommand']) {
  const disk = { refuses: false };
  const start: StartStore = async (options) => {
    const { client, opened } = await startStore(options);
    const commit: typeof client.commit = async (work) => {
      if (disk.refuses) throw new StorageUnavailable('the disk is read-only');
      return client.commit(work);
    };
    return { client: { ...client, commit }, opened };
  };
  const [clock, log] = [steadyClock(), recordingLog()];
  const file = join(dir, 'buffer.db');
  const outbox = await openOutbox({ file, limits: roomy_limits, clock, log, startStore: start });
  const reports: TaskReport[] = [];
  outbox.onAccepted = ({ channel, body }) => {
    if (channel === `task/${second}`) reports.push(taskReport.parse(JSON.parse(body)));
  };
  const end = new AbortController();
  const parts = { journal: outbox, outbox, findCommand, clock, log, signal: end.signal };
  const runner = createTaskRunner({ ...parts, observe: () => undefined });
  runner.resume();
  return { disk, outbox, runner, reports, end };
}

it('a task that the kit could not record has one end, and is done at most once', async () => {
  const dir = await makeDirectory();
  const called: string[] = [];
  const ready = Promise.withResolvers<undefined>();
  const command = (name: string, answer: Promise<unknown>) =>
    defineCommand({
      name,
      description: '',
      risk_level: 'low',
      timeout_ms: 60_000,
      input: noInput,
      handle: async () => {
        called.push(name);
        await answer;
        return {};
      },
    });
  const commands = [command('wait', ready.promise), command('goto', Promise.resolve())];
  const findCommand: TaskRunnerOptions['findCommand'] = (_, name) => {
    const found = commands.find((each) => each.name === name);
    return found ? { asset: { name: 'Falcon', online: true }, command: found } : { refusal: 'unknown' };
  };
  const dispatch = (task_id: string, command_name: string) => ({
    raw: { task_id, asset_id, command_name, created_at: new Date().toISOString() },
    meta: { task_id_in_topic: task_id, retained: false, duplicate: false },
  });

  const one = await startRun(dir, findCommand);
  for (const { raw, meta } of [dispatch(first, 'wait'), dispatch(second, 'goto')])
    await one.runner.receive(raw, meta);
  await eventually('the first task runs', () => called.length === 1);
  one.disk.refuses = true;
  ready.resolve(undefined);
  await eventually('the cloud is told', () =>
    one.reports.some(({ progress }) => progress?.message.startsWith('not final')),
  );
  expect(one.reports.map(({ status }) => status)).not.toContain('failed');
  one.end.abort();
  await one.outbox.close();

  const two = await startRun(dir, findCommand);
  await eventually('it is over', () => two.reports.some(({ status }) => status === 'completed'));
  expect(called).toEqual(['wait', 'goto']);
  expect(two.reports.map(({ status }) => status)).toEqual(['running', 'completed']);
  two.end.abort();
  await two.outbox.close();
  await rm(dir, { recursive: true });
});
