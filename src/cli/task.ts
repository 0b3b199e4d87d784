/** `kit-connector task`: lists tasks, or dispatches one on this kit and waits for its result. */
import { z } from 'zod';
import { type JsonObject, jsonObject } from '../contract/json.ts';
import type { TaskView } from '../kit/local/api.ts';
import { printable, printableTexts } from '../platform/foreign-text.ts';
import { sleep } from '../platform/time.ts';
import { type DaemonOptions, findDaemon } from './daemon/client.ts';
import {
  columnsOf,
  type Shell,
  complain,
  exit,
  oneLine,
  painter,
  say,
  printJson,
  table,
} from './terminal/shell.ts';
import { taskOutcome, taskRow } from './status/view.ts';
import { fold } from './terminal/width.ts';
import { texts } from './texts.ts';
import { localTime } from '../platform/local-time.ts';

export async function listTasks(options: DaemonOptions, shell: Shell): Promise<number> {
  const daemon = await findDaemon(options, shell);
  const tasks = await daemon.tasks();
  if (options.json) {
    printJson(shell, tasks);
    return exit.ok;
  }
  const names = new Map(printableTexts((await daemon.status()).assets).map(({ id, name }) => [id, name]));
  const paint = painter(shell);
  say(
    shell,
    ...(tasks.length > 0
      ? table(
          printableTexts(tasks).map((task) => taskRow(task, names, paint)),
          '',
          columnsOf(shell.out),
        )
      : ['no tasks yet']),
  );
  return exit.ok;
}

/** Lists the commands of an asset, each with the fields of its payload. */
export async function listCommands(asset: string, options: DaemonOptions, shell: Shell): Promise<number> {
  const commands = await (await findDaemon(options, shell)).commands(asset);
  if (options.json) printJson(shell, commands);
  else if (commands.length === 0) say(shell, texts.no_commands);
  else {
    const paint = painter(shell);
    const columns = columnsOf(shell.out);
    const lines = printableTexts(commands).flatMap(({ name, description, input_schema, timeout_ms }) => {
      const limit = timeout_ms === undefined ? '' : ` ${texts.limit(timeout_ms)}`;
      const head = `${paint('name', name)}  ${description}${limit}`;
      return [head].concat(table(fieldRows(input_schema), field_indent));
    });
    say(shell, ...lines.flatMap((line) => fold(line, columns, 2 * field_indent.length)), texts.payload_hint);
  }
  return exit.ok;
}

const field_indent = '    ';

/** Name, kind of value and meaning of each field. */
function fieldRows(input_schema: JsonObject): readonly (readonly string[])[] {
  const { properties, required } = payloadSchema.parse(input_schema);
  return Object.entries(properties).map(([name, { description = '', default: usual, ...field }]) => {
    const fallback = usual === undefined ? '' : `, ${texts.default_value(JSON.stringify(usual))}`;
    const optional = required.includes(name) ? '' : `, ${texts.optional}${fallback}`;
    return [name, `${valueText(field)}${optional}`, description];
  });
}

function valueText({ type, enum: values, oneOf, minimum, maximum }: FieldSchema): string {
  const choices = values ?? oneOf?.flatMap((each) => each.const ?? []);
  if (choices) return choices.join(' | ');
  if (minimum === undefined || maximum === undefined) return type ?? texts.any_value;
  return `${type ?? ''} ${texts.from_to(minimum, maximum)}`.trimStart();
}

const scalar = z.union([z.string(), z.number(), z.boolean()]);
const fieldSchema = z.object({
  type: z.string().optional(),
  description: z.string().optional(),
  default: z.unknown().optional(),
  enum: z.array(scalar).optional(),
  oneOf: z.array(z.object({ const: scalar.optional() })).optional(),
  minimum: z.number().optional(),
  maximum: z.number().optional(),
});
type FieldSchema = Omit<z.output<typeof fieldSchema>, 'default' | 'description'>;
const payloadSchema = z.object({
  properties: z.record(z.string(), fieldSchema).default({}),
  required: z.array(z.string()).default([]),
});

export interface TaskOptions extends DaemonOptions {
  /** Seconds. */
  readonly deadline?: number;
}

interface Wanted {
  readonly asset: string;
  readonly command: string;
  /** JSON text. */
  readonly payload: string;
}

const look_every_ms = 200;

/** Exit code 0 when the task completed, 1 when it failed or its end cannot be recorded. Ctrl-C ends the command, not the task. */
export async function runTask(wanted: Wanted, options: TaskOptions, shell: Shell): Promise<number> {
  const payload = readPayload(wanted.payload);
  if (!payload) {
    complain(shell, `the payload is not a JSON object: ${wanted.payload}; write it like '{"speed": 5}'`);
    return exit.usage;
  }
  const daemon = await findDaemon(options, shell);
  const deadline = options.deadline === undefined ? {} : { deadline_s: options.deadline };
  let task = await daemon.dispatch({ asset: wanted.asset, command: wanted.command, payload, ...deadline });
  if (!options.json) say(shell, stateLine(task, shell));
  while (!isOver(task) && !task.note && !shell.signal.aborted) {
    await sleep(look_every_ms, shell.signal);
    const before = task;
    task = await daemon.task(task.id);
    const isNews = task.status !== before.status || task.note !== before.note;
    if (!options.json && isNews) say(shell, stateLine(task, shell));
  }
  if (options.json) printJson(shell, task);
  return task.status === 'completed' ? exit.ok : exit.failed;
}

function isOver({ status }: TaskView): boolean {
  return status === 'completed' || status === 'failed';
}

function stateLine(task: TaskView, shell: Shell): string {
  const paint = painter(shell);
  const colour = task.status === 'failed' ? 'bad' : task.status === 'completed' ? 'good' : 'warn';
  const parts = [paint('dim', localTime(task.updated_at)), task.command_name, paint(colour, task.status)];
  return oneLine([...parts, printable(taskOutcome(task))].join('  ').trimEnd());
}

const jsonText = z.string().transform((text, context) => {
  try {
    return jsonObject.parse(JSON.parse(text));
  } catch {
    context.addIssue('no JSON object');
    return z.NEVER;
  }
});

function readPayload(text: string) {
  return jsonText.safeParse(text).data;
}
