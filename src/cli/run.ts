/** `kit-connector run`: the daemon. */
import { drivers } from '../../drivers/index.ts';
import { type Config, readConfig, readStatePlace } from '../kit/config/config.ts';
import { createLog } from '../platform/log/log.ts';
import { hangupsOf } from './daemon/reload.ts';
import { runDaemon } from './daemon/daemon.ts';
import { logOutput, nameProcess, refuseUnverifiedTls } from './daemon/process.ts';
import { settleIdentity } from './kit-identity.ts';
import type { Shell } from './terminal/shell.ts';

const nowhere = { write: () => true };
/** In lists of processes, and in the journal. */
const identifier = 'kit-connector';

export async function run({ config: file }: { readonly config: string }, shell: Shell): Promise<number> {
  refuseUnverifiedTls(shell.env);
  const hangups = hangupsOf(shell);
  await nameProcess(identifier);
  const credentials_dir = shell.env['CREDENTIALS_DIRECTORY'];
  const readAgain = async (): Promise<Config> => readConfig(file, { drivers, credentials_dir });
  await settleIdentity({ file, ...(await readStatePlace(file)) });
  const config = await readAgain();
  const log = createLog({
    ...config.log,
    ...(await logOutput({ identifier, kit_id: config.kit_id }, shell)),
  });
  const writeBundle = async (output: string, signal: AbortSignal): Promise<void> => {
    // Loaded only now: what the doctor needs, the daemon does not.
    const { supportBundle } = await import('./support-bundle.ts');
    await supportBundle({ config: file, output }, { ...shell, out: nowhere, err: nowhere, signal });
  };
  for (const warning of config.warnings) log.warn({ file }, warning);
  try {
    return await runDaemon(
      {
        config,
        log,
        writeBundle,
        onReady: () => undefined,
        reloads: { ...hangups, readAgain },
      },
      shell,
    );
  } finally {
    log.close();
  }
}
