/** `kit-connector run`: the daemon. */
import { drivers } from '../../drivers/index.ts';
import { readConfig } from '../config.ts';
import { createLog } from '../platform/log.ts';
import { runDaemon } from './daemon.ts';
import type { Shell } from './shell.ts';

export async function run(file: string, shell: Shell): Promise<number> {
  const config = await readConfig(file, { drivers, credentials_dir: shell.env['CREDENTIALS_DIRECTORY'] });
  const log = createLog({ ...config.log, out: shell.out, readable: shell.out.isTTY === true });
  for (const warning of config.warnings) log.warn({ file }, warning);
  shell.onHangup(() =>
    log.warn({}, 'the configuration is not read again while running; restart kit-connector'),
  );
  return runDaemon({ config, log, onReady: () => undefined }, shell);
}
