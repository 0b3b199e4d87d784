/** `kit-connector buffer`: shows the backlog and manages the quarantine of messages that the broker rejected. */
import { printableTexts } from '../platform/foreign-text.ts';
import { localTime } from '../platform/local-time.ts';
import { type DaemonOptions, findDaemon } from './daemon/client.ts';
import {
  columnsOf,
  type Shell,
  complain,
  exit,
  painter,
  say,
  printJson,
  size,
  table,
} from './terminal/shell.ts';
import { texts } from './texts.ts';

export async function buffer(options: DaemonOptions, shell: Shell): Promise<number> {
  const report = await (await findDaemon(options, shell)).buffer();
  if (options.json) {
    printJson(shell, report);
    return exit.ok;
  }
  const paint = painter(shell);
  const rows = report.lanes.map(({ lane, rows, bytes, memory_rows, oldest }) => [
    lane,
    String(rows),
    size(bytes),
    String(memory_rows),
    oldest === null ? '' : localTime(oldest),
  ]);
  say(shell, ...table([['lane', 'messages', 'size', 'in memory', 'oldest'], ...rows], ''));
  say(shell, texts.file_size(size(report.file_bytes), size(report.disk_free_bytes)));
  if (report.quarantined > 0) {
    say(shell, paint('warn', texts.in_quarantine(report.quarantined)));
  }
  return exit.ok;
}

export async function listQuarantine(options: DaemonOptions, shell: Shell): Promise<number> {
  const daemon = await findDaemon(options, shell);
  const rows = await daemon.quarantine();
  if (options.json) {
    printJson(shell, rows);
    return exit.ok;
  }
  if (rows.length === 0) {
    say(shell, texts.quarantine_empty);
    return exit.ok;
  }
  const cells = printableTexts(rows).map(({ id, time, channel, code, reason, body_bytes }) => [
    String(id),
    localTime(time),
    channel,
    size(body_bytes),
    `${code} ${reason}`,
  ]);
  say(shell, ...table([['id', 'time', 'channel', 'size', 'reason'], ...cells], '', columnsOf(shell.out)));
  const more = (await daemon.buffer()).quarantined - rows.length;
  if (more > 0) say(shell, texts.and_more(more));
  return exit.ok;
}

/** Prints one message with its body. */
export async function showQuarantined(id: number, options: DaemonOptions, shell: Shell): Promise<number> {
  printJson(shell, await (await findDaemon(options, shell)).quarantined(id));
  return exit.ok;
}

export async function retryQuarantine(
  ids: readonly number[],
  options: DaemonOptions,
  shell: Shell,
): Promise<number> {
  const daemon = await findDaemon(options, shell);
  const rows = await daemon.retryQuarantined(ids.length > 0 ? ids : undefined);
  say(shell, texts.rows_returned(rows));
  return foundAll(ids, rows, shell);
}

/** Fails for ids that are not in quarantine, so that a mistyped id does not look like a success. */
function foundAll(ids: readonly number[], rows: number, shell: Shell): number {
  const missing = new Set(ids).size - rows;
  if (missing <= 0) return exit.ok;
  const what = rows === 0 ? texts.no_such_id : texts.ids_missing(missing);
  complain(shell, texts.list_ids(what));
  return exit.failed;
}

interface DiscardOptions extends DaemonOptions {
  readonly all?: true;
}

/** Requires ids or `--all`, since a discarded message cannot be restored. */
export async function discardQuarantine(
  ids: readonly number[],
  options: DiscardOptions,
  shell: Shell,
): Promise<number> {
  if (ids.length === 0 && !options.all) {
    complain(shell, texts.no_ids);
    return exit.usage;
  }
  const daemon = await findDaemon(options, shell);
  const rows = await daemon.discardQuarantined(options.all ? undefined : ids);
  say(shell, `${rows} discarded`);
  return options.all ? exit.ok : foundAll(ids, rows, shell);
}
