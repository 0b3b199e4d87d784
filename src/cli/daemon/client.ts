/** Finds the daemon that a subcommand connects to. */
import { config_file_default, controlSocket, readControlSocket } from '../../kit/config/config.ts';
import { runtime_dir_default } from '../../kit/config/schema.ts';
import { ConfigInvalid } from '../../platform/errors.ts';
import { type LocalClient, localClient } from '../../kit/local/client.ts';
import type { Shell } from '../terminal/shell.ts';

export interface DaemonOptions {
  readonly socket?: string;
  readonly config: string;
  readonly json?: true;
}

/** The client of the socket that is named, or that the configuration names. */
export async function findDaemon({ socket, config }: DaemonOptions, shell: Shell): Promise<LocalClient> {
  return localClient(socket ?? (await configuredSocket(config)), shell.signal);
}

/** A user who may open the socket need not be able to read the default file: then the default directory is used. */
async function configuredSocket(file: string): Promise<string> {
  try {
    return await readControlSocket(file);
  } catch (error) {
    if (file !== config_file_default || !(error instanceof ConfigInvalid)) throw error;
    return controlSocket(runtime_dir_default);
  }
}
