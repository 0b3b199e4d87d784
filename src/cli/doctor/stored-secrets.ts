/** What systemd hands to the service at its start, read where it is kept: for when the service does not run, and this is root. */
import { constants, existsSync } from 'node:fs';
import { access, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { BrokerOptions } from '../../config/broker.ts';

export const credential_store = '/etc/credstore';
/** The service of the package gets its secrets from systemd; this user may read them there or not. */
export type Store = 'none' | 'readable' | 'closed';

export async function credentialStore(store = credential_store): Promise<Store> {
  if (!existsSync(store)) return 'none';
  return access(store, constants.R_OK | constants.X_OK).then(
    () => 'readable',
    () => 'closed',
  );
}

const prefix = 'kit-connector.';
const names = { password: 'mqtt-password', ca: 'mqtt-ca', cert: 'mqtt-cert', key: 'mqtt-key' } as const;

/** The options with what they lack and the store has; what cannot be read is left out. */
export async function withStoredSecrets(
  broker: BrokerOptions,
  store = credential_store,
): Promise<BrokerOptions> {
  const read = async (name: keyof typeof names): Promise<string | undefined> =>
    broker[name] ?? (await readFile(join(store, prefix + names[name]), 'utf8').catch(() => undefined));
  const [password, ca, cert, key] = await Promise.all([
    read('password'),
    read('ca'),
    read('cert'),
    read('key'),
  ]);
  return { ...broker, password: password?.replace(/\r?\n$/u, ''), ca, cert, key };
}
