/** `kit-connector tail`: follows what is published, a line each. */
import { findAsset } from '../local/find-asset.ts';
import { type DaemonOptions, findDaemon } from './daemon-client.ts';
import { type Shell, complain, exit, painter, say } from './shell.ts';
import { tailText } from './tail-view.ts';

export interface TailOptions extends DaemonOptions {
  readonly asset?: string;
  readonly feed?: string;
}

export async function tail(options: TailOptions, shell: Shell): Promise<number> {
  const daemon = await findDaemon(options, shell);
  const paint = painter(shell);
  if (options.asset !== undefined) {
    const found = findAsset((await daemon.status()).assets, options.asset);
    // One that was not switched on yet may still come.
    if ('fault' in found) complain(shell, `${found.fault}; waiting for one (Ctrl-C ends)`);
  }
  for await (const line of daemon.tail({ asset: options.asset, feed: options.feed })) {
    say(shell, options.json ? JSON.stringify(line) : tailText(line, paint, shell.out.columns));
  }
  if (shell.signal.aborted) return exit.ok;
  complain(shell, 'kit-connector has stopped');
  return exit.unavailable;
}
