/** `kit-connector status`: prints the report of the daemon, once or every second. */
import { messageOf } from '../platform/errors.ts';
import { printableJson, printableTexts } from '../platform/foreign-text.ts';
import { DaemonUnavailable, type LocalClient } from '../kit/local/client.ts';
import { sleep } from '../platform/time.ts';
import { type DaemonOptions, findDaemon } from './daemon/client.ts';
import { columnsOf, type Shell, duration, exit, oneLine, painter, say, printJson } from './terminal/shell.ts';
import { texts } from './texts.ts';
import { statusLines } from './status/view.ts';
import { cut } from './terminal/width.ts';

const watch_every_ms = 1_000;

interface StatusOptions extends DaemonOptions {
  readonly watch?: true;
}

/** Exit code 0 while the daemon answers, also when it reports itself degraded. */
export async function status(options: StatusOptions, shell: Shell): Promise<number> {
  const daemon = await findDaemon(options, shell);
  if (options.watch) return watch(daemon, options, shell);
  const report = await daemon.status();
  if (options.json) printJson(shell, report);
  else say(shell, ...statusLines(printableTexts(report), painter(shell), columnsOf(shell.out)));
  return exit.ok;
}

/** Runs until Ctrl-C, also while the daemon is stopped or restarts. */
async function watch(daemon: LocalClient, { json }: StatusOptions, shell: Shell): Promise<number> {
  const isScreen = shell.out.isTTY === true && !json;
  const view = viewOf(daemon, shell);
  if (isScreen) shell.out.write(clear_screen + hide_cursor);
  try {
    while (!shell.signal.aborted) {
      const shown = json ? [printableJson(JSON.stringify(await daemon.status()))] : await view();
      if (shell.signal.aborted) break;
      // The size is read each time, so that a resized window is drawn correctly after a second.
      if (isScreen) shell.out.write(drawn(shown.map(oneLine), shell.out));
      else say(shell, ...shown, ...(json ? [] : ['']));
      await sleep(watch_every_ms, shell.signal);
    }
  } finally {
    if (isScreen) shell.out.write(`\n${show_cursor}`);
  }
  return exit.ok;
}

/** Returns the current lines. When the daemon is not reachable, the age of the last report and its lines. */
function viewOf(daemon: LocalClient, shell: Shell): () => Promise<readonly string[]> {
  const paint = painter(shell);
  let last: readonly string[] = [];
  let reported_ms: number | undefined;
  return async () => {
    try {
      last = statusLines(printableTexts(await daemon.status()), paint, columnsOf(shell.out));
      reported_ms = performance.now();
      return last;
    } catch (error) {
      if (!(error instanceof DaemonUnavailable)) throw error;
      const lost = paint('bad', messageOf(error));
      if (reported_ms === undefined) return [lost];
      const ago = duration((performance.now() - reported_ms) / 1_000);
      return [lost, paint('warn', texts.last_report(ago)), '', ...last];
    }
  };
}

interface Size {
  readonly columns?: number;
  readonly rows?: number;
}

const home = '\u001B[H';
const clear_line = '\u001B[K';
const clear_below = '\u001B[J';
export const hide_cursor = '\u001B[?25l';
export const show_cursor = '\u001B[?25h';
export const clear_screen = '\u001B[2J';

/** Returns one text for a single write, which does not flicker. */
export function drawn(lines: readonly string[], { columns, rows = Infinity }: Size): string {
  const shown =
    lines.length <= rows ? lines : [...lines.slice(0, rows - 1), `... ${lines.length - rows + 1} more lines`];
  return home + shown.map((line) => cut(line, columns) + clear_line).join('\n') + clear_below;
}
