/**
 * A connector that has tasks and a buffer and nothing else, in a process that can be killed. The handler of its one
 * command writes a line to a file, which stands for what the machine did, and never answers.
 */
import { appendFileSync } from 'node:fs';
import { defineCommand, noInput } from '../../../src/toolkit/driver/command.ts';
import { messageOf } from '../../../src/platform/errors.ts';
import { openOutbox } from '../../../src/kit/outbox/live/outbox.ts';
import { vouched, systemClock } from '../../../src/platform/clock.ts';
import { createTaskRunner } from '../../../src/kit/tasks/runner.ts';
import { recordingLog } from '../recording-log.ts';

export interface TaskProcessSettings {
  readonly file: string;
  readonly effects: string;
  readonly repeatable: boolean;
}

export type TaskQuestion =
  | { readonly kind: 'dispatch'; readonly task_id: string; readonly body: string }
  | { readonly kind: 'find'; readonly task_id: string };

/** `called`: the handler was; `taken`: the dispatch may be acknowledged. */
export type TaskAnswer =
  | { readonly kind: 'ready' | 'called' | 'taken' }
  | { readonly kind: 'found'; readonly state: string | undefined; readonly result: unknown };

const settings = JSON.parse(process.argv[2] ?? '{}') as TaskProcessSettings;
const tell = (answer: TaskAnswer): void => void process.send?.(answer);

const clock = systemClock({ evidence: vouched });
const log = recordingLog();
const outbox = await openOutbox({
  file: settings.file,
  limits: {
    bytes_max: 2 ** 26,
    rows_max: 10_000,
    free_bytes_min: 0,
    age_max_ms: 86_400_000,
    journal_rows_max: 100,
  },
  clock,
  log,
});
const command = defineCommand({
  name: 'goto',
  description: '',
  risk_level: 'medium',
  repeatable: settings.repeatable,
  input: noInput,
  handle: async () => {
    appendFileSync(settings.effects, 'moved\n');
    tell({ kind: 'called' });
    return new Promise(() => undefined);
  },
});
const runner = createTaskRunner({
  journal: outbox,
  outbox,
  findCommand: () => ({ asset: { name: 'Falcon 1', online: true }, command }),
  clock: { boot_id: clock.boot_id, stamp: () => ({ ...clock.stamp(), synced: true }) },
  log,
  observe: () => undefined,
  signal: new AbortController().signal,
});
runner.resume();

process.on('message', (question: TaskQuestion) => {
  answer(question).catch((error: unknown) => {
    process.stderr.write(`${messageOf(error)}\n`);
    process.exit(1);
  });
});

async function answer(question: TaskQuestion): Promise<void> {
  const { task_id } = question;
  if (question.kind === 'dispatch') {
    await runner.receive(question.body, { task_id_in_topic: task_id, retained: false, duplicate: false });
    tell({ kind: 'taken' });
  } else {
    const task = await runner.find(task_id);
    tell({ kind: 'found', state: task?.status, result: task?.result });
  }
}

process.on('disconnect', () => process.exit());
tell({ kind: 'ready' });
