/** `kit-connector log-level`: shows the log levels, and changes them for a limited time. */
import {
  log_level_s,
  logLevelRequest,
  type LogLevelChange,
  type LogLevelRequest,
  type LogLevels,
} from '../kit/local/api.ts';
import { type DaemonOptions, findDaemon } from './daemon/client.ts';
import { complain, exit, painter, say, printJson, type Shell, table } from './terminal/shell.ts';
import { texts } from './texts.ts';
import { localTime } from '../platform/local-time.ts';

interface LogLevelOptions extends DaemonOptions {
  readonly for: string;
}

/** Without settings it lists. */
export async function logLevel(
  settings: readonly string[],
  options: LogLevelOptions,
  shell: Shell,
): Promise<number> {
  const request = readRequest(settings, options.for);
  if ('fault' in request) {
    complain(shell, request.fault);
    return exit.usage;
  }
  const daemon = await findDaemon(options, shell);
  const levels = settings.length === 0 ? await daemon.logLevels() : await daemon.changeLogLevels(request);
  if (options.json) printJson(shell, levels);
  else say(shell, ...levelLines(levels, shell));
  return exit.ok;
}

const schema = logLevelRequest.shape.changes.element.shape.level;
const reset = 'reset';

function readRequest(
  settings: readonly string[],
  time: string,
): LogLevelRequest | { readonly fault: string } {
  const for_s = readDuration(time);
  if (for_s === undefined) return { fault: texts.invalid_time(time) };
  const changes: LogLevelChange[] = [];
  for (const setting of settings) {
    const change = readSetting(setting);
    if (!change) return { fault: texts.invalid_level(setting, what_to_write) };
    changes.push(change);
  }
  return { changes, for_s };
}
const what_to_write = texts.write_level;

/** `debug`, `mavlink=debug`, `mavlink=reset`, `reset` */
function readSetting(setting: string): LogLevelChange | undefined {
  const at = setting.indexOf('=');
  const [name, word] = at < 0 ? [null, setting] : [setting.slice(0, at), setting.slice(at + 1)];
  const level = word === reset ? null : schema.safeParse(word).data;
  return level === undefined || name === '' ? undefined : { name, level };
}

const unit_s: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3_600 };

/** Seconds of `90s`, `10m`, `2h`. */
function readDuration(text: string): number | undefined {
  const [, figure = '', unit = ''] = /^(\d+(?:\.\d+)?)(s|m|h)$/.exec(text) ?? [];
  const seconds = Number(figure) * (unit_s[unit] ?? Number.NaN);
  return seconds > 0 && seconds <= log_level_s.max ? seconds : undefined;
}

function levelLines({ levels }: LogLevels, shell: Shell): readonly string[] {
  const paint = painter(shell);
  return table(
    levels.map(({ name, level, until }) => [
      name ?? 'default',
      paint('bold', level),
      paint('dim', until === null ? 'as configured' : `until ${localTime(until)}`),
    ]),
    '',
  );
}
