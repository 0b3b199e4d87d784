/** The API key of a service that nobody has run a command on: from a file, such as a secret of a container. */
import type { StandaloneConfig } from '../../kit/config/standalone.ts';
import { ConfigInvalid } from '../../platform/errors.ts';
import type { Log } from '../../platform/log/log.ts';
import { keyOfText } from '../../cloud/principal.ts';
import { scopes } from '../../cloud/scopes.ts';
import type { Store } from '../../cloud/store/sql-store.ts';
import type { ApiKey } from '../../cloud/stored/stored.ts';
import { texts } from '../texts.ts';

/** Undefined where the configuration names none. Throws `ConfigInvalid` when the file holds no key, or one that can be guessed. */
export function firstKeyOf(
  config_file: string,
  { first_key }: Pick<StandaloneConfig, 'first_key'>,
): ApiKey | undefined {
  if (!first_key) return undefined;
  const rights = { label: 'first key', scopes: [...scopes], kits: '*', expires_ms: null } as const;
  const key = keyOfText(first_key.text, rights, Date.now());
  if (!key) throw new ConfigInvalid([texts.weak_first_key(config_file, first_key.file)]);
  return key;
}

/** Adds the key to a database that has none: so a key that was revoked does not come back while there is another. */
export async function addFirstKey(
  store: Pick<Store, 'keys' | 'addKey'>,
  key: ApiKey | undefined,
  log: Pick<Log, 'info' | 'warn'>,
): Promise<void> {
  const known = await store.keys();
  if (known.length === 0 && key) {
    await store.addKey(key);
    log.info({ key: key.key_id }, texts.first_key_added);
  } else if (known.length === 0) log.warn({}, texts.no_key_exists);
  else if (key && !known.some(({ key_id }) => key_id === key.key_id))
    log.warn({ key: key.key_id }, texts.first_key_unused);
}
