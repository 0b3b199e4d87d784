/** What systemd hands to the service at its start, read where it is kept: for when the service does not run, and this is root. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { BrokerOptions } from '../../config/broker.ts';

export const credential_store = '/etc/credstore';
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
