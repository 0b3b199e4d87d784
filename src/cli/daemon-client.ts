/** Finds the daemon that a subcommand speaks to. */
import { config_file_default, controlSocket, readControlSocket } from '../config.ts';
import { runtime_dir_default } from '../config/schema.ts';
import { ConfigInvalid } from '../errors.ts';
import { type LocalClient, localClient } from '../local/client.ts';
import type { Shell } from './shell.ts';

export interface DaemonOptions {
  readonly socket?: string;
  readonly config: string;
  readonly json?: true;
}

/** The client of the socket that is named, or that the configuration names. */
export async function findDaemon({ socket, config }: DaemonOptions, shell: Shell): Promise<LocalClient> {
  return localClient(socket ?? (await configuredSocket(config)), shell.signal);
}

/** Those who may use the socket need not be allowed to read the default file: then its default directory counts. */
async function configuredSocket(file: string): Promise<string> {
  try {
    return await readControlSocket(file);
  } catch (error) {
    if (file !== config_file_default || !(error instanceof ConfigInvalid)) throw error;
    return controlSocket(runtime_dir_default);
  }
}
