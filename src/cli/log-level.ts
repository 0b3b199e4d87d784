/** `kit-connector log-level`: shows how much is logged, and changes it for a time. */
import { InvalidArgumentError } from 'commander';
import { log_level_s, logLevelRequest, type LogLevelChange, type LogLevels } from '../local/api.ts';
import { type DaemonOptions, findDaemon } from './daemon-client.ts';
import { clockTime, exit, painter, say, sayJson, type Shell, table } from './shell.ts';

export interface LogLevelOptions extends DaemonOptions {
  readonly for: string;
}

/** Without settings it lists. */
export async function logLevel(
  settings: readonly string[],
  options: LogLevelOptions,
  shell: Shell,
): Promise<number> {
  const changes = settings.map((setting) => readSetting(setting));
  const for_s = readDuration(options.for);
  const daemon = await findDaemon(options, shell);
  const levels =
    changes.length === 0 ? await daemon.logLevels() : await daemon.changeLogLevels({ changes, for_s });
  if (options.json) sayJson(shell, levels);
  else say(shell, ...levelLines(levels, shell));
  return exit.ok;
}

const schema = logLevelRequest.shape.changes.element.shape.level;
const reset = 'reset';

/** `debug`, `mavlink=debug`, `mavlink=reset`, `reset` */
function readSetting(setting: string): LogLevelChange {
  const at = setting.indexOf('=');
  const [name, word] = at < 0 ? [null, setting] : [setting.slice(0, at), setting.slice(at + 1)];
  const level = word === reset ? null : schema.safeParse(word).data;
  if (level === undefined || name === '') {
    throw new InvalidArgumentError(
      `"${setting}" is no setting; write a level (debug, info, warn, error, fatal, or reset), or NAME=LEVEL`,
    );
  }
  return { name, level };
}

const unit_s: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3_600 };

/** Seconds of `90s`, `10m`, `2h`. */
function readDuration(text: string): number {
  const [, figure = '', unit = ''] = /^(\d+(?:\.\d+)?)(s|m|h)$/.exec(text) ?? [];
  const seconds = Number(figure) * (unit_s[unit] ?? Number.NaN);
  if (seconds > 0 && seconds <= log_level_s.max) return seconds;
  throw new InvalidArgumentError(`"${text}" is no time up to 24h; write 90s, 10m or 2h`);
}

function levelLines({ levels }: LogLevels, shell: Shell): readonly string[] {
  const paint = painter(shell);
  return table(
    levels.map(({ name, level, until }) => [
      name ?? 'default',
      paint('bold', level),
      paint('dim', until === null ? 'as configured' : `until ${clockTime(until)}`),
    ]),
    '',
  );
}
