/** `kit-connector status`: the daemon's report, once or again every second. */
import { messageOf } from '../errors.ts';
import { DaemonUnavailable, type LocalClient } from '../local/client.ts';
import { sleep } from '../platform/time.ts';
import { type DaemonOptions, findDaemon } from './daemon-client.ts';
import { clear_screen, drawn, hide_cursor, show_cursor } from './screen.ts';
import { type Shell, duration, exit, painter, say, sayJson } from './shell.ts';
import { statusLines } from './status-view.ts';

const watch_every_ms = 1_000;

export interface StatusOptions extends DaemonOptions {
  readonly watch?: true;
}

/** Exit code 0 while the daemon answers, also when it reports itself degraded. */
export async function status(options: StatusOptions, shell: Shell): Promise<number> {
  const daemon = await findDaemon(options, shell);
  if (options.watch) return watch(daemon, options, shell);
  const report = await daemon.status();
  if (options.json) sayJson(shell, report);
  else say(shell, ...statusLines(report, painter(shell)));
  return exit.ok;
}

/** Until Ctrl-C, also while the daemon is away: it may be restarted meanwhile. */
async function watch(daemon: LocalClient, { json }: StatusOptions, shell: Shell): Promise<number> {
  const isScreen = shell.out.isTTY === true && !json;
  const view = viewOf(daemon, shell);
  if (isScreen) shell.out.write(clear_screen + hide_cursor);
  try {
    while (!shell.signal.aborted) {
      const shown = json ? [JSON.stringify(await daemon.status())] : await view();
      if (shell.signal.aborted) break;
      // The size is asked for each time, so that a window that was resized is right a second later.
      if (isScreen) shell.out.write(drawn(shown, shell.out));
      else say(shell, ...shown, ...(json ? [] : ['']));
      await sleep(watch_every_ms, shell.signal);
    }
  } finally {
    if (isScreen) shell.out.write(`\n${show_cursor}`);
  }
  return exit.ok;
}

/** The lines of now. When the daemon is lost, for how long it has been, above what it said last. */
function viewOf(daemon: LocalClient, shell: Shell): () => Promise<readonly string[]> {
  const paint = painter(shell);
  let last: readonly string[] = [];
  let heard_ms: number | undefined;
  return async () => {
    try {
      last = statusLines(await daemon.status(), paint);
      heard_ms = performance.now();
      return last;
    } catch (error) {
      if (!(error instanceof DaemonUnavailable)) throw error;
      const lost = paint('bad', messageOf(error));
      if (heard_ms === undefined) return [lost];
      const ago = duration((performance.now() - heard_ms) / 1_000);
      return [lost, paint('warn', `what it said ${ago} ago:`), '', ...last];
    }
  };
}
