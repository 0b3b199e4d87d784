/** `kit-connector check`: whether the daemon would start with this configuration. No device and no broker is touched. */
import { constants } from 'node:fs';
import { access } from 'node:fs/promises';
import { drivers } from '../../drivers/index.ts';
import { type Config, readConfig } from '../config.ts';
import { ConfigInvalid } from '../errors.ts';
import { nearestThere } from './doctor/disk.ts';
import { type Shell, complain, exit, painter, say } from './shell.ts';

export interface CheckOptions {
  /** Nothing is said of what is right, nor of what should not stay as it is. */
  readonly quiet?: true;
}

export async function check(file: string, shell: Shell, { quiet }: CheckOptions = {}): Promise<number> {
  const config = await readConfig(file, { drivers, credentials_dir: shell.env['CREDENTIALS_DIRECTORY'] });
  await checkWritable(config, file);
  if (quiet) return exit.ok;
  const paint = painter(shell);
  complain(shell, ...config.warnings.map((warning) => `${file}: warning: ${warning}`));
  const count = config.drivers.length;
  const broker = config.broker?.url ?? 'of its own on loopback (none is configured)';
  say(
    shell,
    `${file}: ${paint('good', 'ok')}, ${count} ${count === 1 ? 'driver' : 'drivers'}, broker ${broker}`,
  );
  return exit.ok;
}

async function checkWritable({ state_dir }: Config, file: string): Promise<void> {
  const dir = await nearestThere(state_dir);
  await access(dir, constants.W_OK | constants.X_OK).catch(() => {
    throw new ConfigInvalid([
      `${file} state_dir: ${dir} cannot be written by this user; run the check as the user of the daemon, or choose another directory`,
    ]);
  });
}
