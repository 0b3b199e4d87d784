/** `kit-connector asset forget`: removes an asset permanently from the kit. */
import { type DaemonOptions, findDaemon } from './daemon/client.ts';
import { exit, say, sayJson, type Shell } from './terminal/shell.ts';

export async function forgetAsset(asset: string, options: DaemonOptions, shell: Shell): Promise<number> {
  const daemon = await findDaemon(options, shell);
  const forgotten = await daemon.forgetAsset(asset);
  if (options.json) sayJson(shell, forgotten);
  else
    say(
      shell,
      `${forgotten.name} (${forgotten.key}) removed; it reappears if its driver connects to it again`,
    );
  return exit.ok;
}
