/** `kit-connector buffer`: what waits for delivery, and what the broker refuses. */
import { type DaemonOptions, findDaemon } from './daemon-client.ts';
import { type Shell, complain, exit, painter, say, sayJson, size, table } from './shell.ts';

export async function buffer(options: DaemonOptions, shell: Shell): Promise<number> {
  const report = await (await findDaemon(options, shell)).buffer();
  if (options.json) {
    sayJson(shell, report);
    return exit.ok;
  }
  const paint = painter(shell);
  const rows = report.lanes.map(({ lane, rows, bytes, memory_rows, oldest }) => [
    lane,
    String(rows),
    size(bytes),
    String(memory_rows),
    oldest ?? '',
  ]);
  say(shell, ...table([['lane', 'messages', 'size', 'in memory', 'oldest'], ...rows], ''));
  say(shell, `file ${size(report.file_bytes)}, ${size(report.disk_free_bytes)} free on its disk`);
  if (report.quarantined > 0) {
    say(shell, paint('warn', `${report.quarantined} in quarantine: kit-connector buffer quarantine list`));
  }
  return exit.ok;
}

export async function listQuarantine(options: DaemonOptions, shell: Shell): Promise<number> {
  const rows = await (await findDaemon(options, shell)).quarantine();
  if (options.json) {
    sayJson(shell, rows);
    return exit.ok;
  }
  if (rows.length === 0) {
    say(shell, 'nothing is in quarantine');
    return exit.ok;
  }
  const cells = rows.map(({ id, time, channel, code, reason, body }) => [
    String(id),
    time,
    channel,
    `${code} ${reason}`,
    size(body.length),
  ]);
  say(shell, ...table([['id', 'time', 'channel', 'refused because', 'size'], ...cells], ''));
  return exit.ok;
}

export async function retryQuarantine(
  ids: readonly number[],
  options: DaemonOptions,
  shell: Shell,
): Promise<number> {
  const daemon = await findDaemon(options, shell);
  const rows = await daemon.retryQuarantined(ids.length > 0 ? ids : undefined);
  say(shell, `${rows} put back into the buffer`);
  return foundAll(ids, rows, shell);
}

/** Somebody who names an id and misspells it must not believe that it was done. */
function foundAll(ids: readonly number[], rows: number, shell: Shell): number {
  const missing = new Set(ids).size - rows;
  if (missing <= 0) return exit.ok;
  const what = rows === 0 ? 'no such id is in quarantine' : `${missing} of these ids are not in quarantine`;
  complain(shell, `${what}; "kit-connector buffer quarantine list" shows what is`);
  return exit.failed;
}

export interface DiscardOptions extends DaemonOptions {
  readonly all?: true;
}

/** What is discarded is gone: it wants ids, or `--all`. */
export async function discardQuarantine(
  ids: readonly number[],
  options: DiscardOptions,
  shell: Shell,
): Promise<number> {
  if (ids.length === 0 && !options.all) {
    complain(shell, 'name the ids to discard, or --all; "kit-connector buffer quarantine list" shows them');
    return exit.usage;
  }
  const daemon = await findDaemon(options, shell);
  const rows = await daemon.discardQuarantined(options.all ? undefined : ids);
  say(shell, `${rows} discarded`);
  return options.all ? exit.ok : foundAll(ids, rows, shell);
}
