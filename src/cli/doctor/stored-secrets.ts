/** Reads the credentials of the service from the store of systemd, for checks by root while the service is stopped. */
import { constants, existsSync } from 'node:fs';
import { access } from 'node:fs/promises';
import { join } from 'node:path';
import type { BrokerConfig } from '../../kit/config/broker.ts';
import { readTextUpTo, small_bytes_max } from '../../platform/bounded-file.ts';
import { service_name } from './service-user.ts';

export const credential_store = '/etc/credstore';
/** Whether this user can read the credential store from which systemd passes secrets to the packaged service. */
export type Store = 'none' | 'readable' | 'closed';

export async function credentialStore(store = credential_store): Promise<Store> {
  if (!existsSync(store)) return 'none';
  return access(store, constants.R_OK | constants.X_OK).then(
    () => 'readable',
    () => 'closed',
  );
}

const names = {
  password: 'mqtt-password',
  proxy_password: 'mqtt-proxy-password',
  ca: 'mqtt-ca',
  cert: 'mqtt-cert',
  key: 'mqtt-key',
} as const;

/** The options, with missing secrets from the store; files that cannot be read are omitted. */
export async function withStoredSecrets(
  broker: BrokerConfig,
  store = credential_store,
  unit = service_name,
): Promise<BrokerConfig> {
  const { proxy } = broker;
  const known = { ...broker, proxy_password: proxy?.password };
  const read = async (name: keyof typeof names): Promise<string | undefined> =>
    known[name] ??
    (await readTextUpTo(join(store, `${unit}.${names[name]}`), small_bytes_max).catch(() => undefined));
  const line = async (name: 'password' | 'proxy_password'): Promise<string | undefined> =>
    (await read(name))?.replace(/\r?\n$/u, '');
  const [password, proxy_password, ca, cert, key] = await Promise.all([
    line('password'),
    line('proxy_password'),
    read('ca'),
    read('cert'),
    read('key'),
  ]);
  return { ...broker, password, ca, cert, key, proxy: proxy && { ...proxy, password: proxy_password } };
}
