/** `kit-connector status`: the daemon's report, once or again every second. */
import { messageOf } from '../errors.ts';
import { DaemonUnavailable } from '../local/client.ts';
import { sleep } from '../platform/time.ts';
import { type DaemonOptions, findDaemon } from './daemon-client.ts';
import { type Shell, exit, painter, say, sayJson } from './shell.ts';
import { statusLines } from './status-view.ts';

const watch_every_ms = 1_000;
const clear_screen = '\u001B[H\u001B[2J';

export interface StatusOptions extends DaemonOptions {
  readonly watch?: true;
}

/** Exit code 0 while the daemon answers, also when it reports itself degraded. */
export async function status(options: StatusOptions, shell: Shell): Promise<number> {
  const daemon = await findDaemon(options, shell);
  const lines = async (): Promise<readonly string[]> => statusLines(await daemon.status(), painter(shell));
  if (options.json) {
    sayJson(shell, await daemon.status());
    return exit.ok;
  }
  if (!options.watch) {
    say(shell, ...(await lines()));
    return exit.ok;
  }
  while (!shell.signal.aborted) {
    const shown = await lines().catch((error: unknown) => {
      if (error instanceof DaemonUnavailable) return [messageOf(error)];
      throw error;
    });
    if (shell.signal.aborted) break;
    if (shell.out.isTTY) shell.out.write(clear_screen);
    say(shell, ...shown, '');
    await sleep(watch_every_ms, shell.signal);
  }
  return exit.ok;
}
