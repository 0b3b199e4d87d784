/** `kit-connector asset forget`: removes an asset permanently from the kit. */
import { type DaemonOptions, findDaemon } from './daemon/client.ts';
import { exit, say, printJson, type Shell } from './terminal/shell.ts';
import { texts } from './texts.ts';

export async function forgetAsset(asset: string, options: DaemonOptions, shell: Shell): Promise<number> {
  const daemon = await findDaemon(options, shell);
  const forgotten = await daemon.forgetAsset(asset);
  if (options.json) printJson(shell, forgotten);
  else say(shell, texts.asset_removed(forgotten.name, forgotten.key));
  return exit.ok;
}
