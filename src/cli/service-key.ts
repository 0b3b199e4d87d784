/** `kit-connector service key`: who may ask the service, and what for. A running service follows within seconds. */
import { z } from 'zod';
import { readDatabase } from '../config/standalone.ts';
import { makeKey, scopes } from '../service/principal.ts';
import { openStore } from '../service/store/open-store.ts';
import type { ApiKey, Store } from '../service/store/store.ts';
import { complain, exit, say, sayJson, type Shell, table } from './shell.ts';

export interface KeyOptions {
  readonly config: string;
  readonly database?: string;
  readonly json?: boolean;
}

export interface AddKeyOptions extends KeyOptions {
  readonly kit: readonly string[];
  readonly allKits?: boolean;
  readonly scope: readonly string[];
  readonly days?: number;
}

const day_ms = 86_400_000;

export async function addKey(label: string, options: AddKeyOptions, shell: Shell): Promise<number> {
  const fault = addKeyFault(options);
  if (fault !== undefined) {
    complain(shell, fault);
    return exit.usage;
  }
  const kits = options.allKits === true ? '*' : options.kit;
  const now_ms = Date.now();
  const expires_ms = options.days === undefined ? null : now_ms + options.days * day_ms;
  const wanted = options.scope.length === 0 ? [...scopes] : options.scope;
  const lower = kits === '*' ? kits : kits.map((id) => id.toLowerCase());
  const { text, key } = makeKey({ label, scopes: wanted, kits: lower, expires_ms }, now_ms);
  await withStore(options, async (store) => store.addKey(key));
  if (options.json) sayJson(shell, { key: text, ...shown(key) });
  else {
    complain(shell, 'The key is shown this once and kept nowhere:');
    say(shell, text);
  }
  return exit.ok;
}

/** What is wrong with the command line, and the remedy. */
function addKeyFault({ allKits, kit, scope }: AddKeyOptions): string | undefined {
  if (allKits !== true) {
    if (kit.length === 0) return 'name the kits that the key may see: --kit UUID, or --all-kits';
    if (!z.array(z.uuid()).safeParse(kit).success) return 'a kit is named by its UUID: --kit 0f8c1a52-...';
  }
  const known: readonly string[] = scopes;
  const unknown = scope.find((word) => !known.includes(word));
  return unknown === undefined ? undefined : `"${unknown}" is no scope; there are ${scopes.join(', ')}`;
}

export async function listKeys(options: KeyOptions, shell: Shell): Promise<number> {
  const keys = (await withStore(options, async (store) => store.keys())).map(shown);
  if (options.json) sayJson(shell, keys);
  else if (keys.length === 0) say(shell, 'There is no key.');
  else {
    const rows = keys.map(({ id, label, scopes, kits, expires_at }) => [
      id,
      label,
      scopes.join(' '),
      kits === '*' ? 'all kits' : kits.join(' '),
      expires_at ?? 'for ever',
    ]);
    say(shell, ...table([['id', 'label', 'may', 'kits', 'until'], ...rows]));
  }
  return exit.ok;
}

/** `id`: as `list` shows it, or the key itself. */
export async function revokeKey(id: string, options: KeyOptions, shell: Shell): Promise<number> {
  const key_id = id.startsWith('kc_') ? (id.split('_')[1] ?? '') : id;
  if (await withStore(options, async (store) => store.revokeKey(key_id))) {
    say(shell, `The key ${key_id} is revoked.`);
    return exit.ok;
  }
  complain(shell, `There is no key ${key_id}; "service key list" shows those that there are.`);
  return exit.failed;
}

function shown({ key_id, label, scopes, kits, created_ms, expires_ms }: ApiKey) {
  const created_at = new Date(created_ms).toISOString();
  const expires_at = expires_ms === null ? null : new Date(expires_ms).toISOString();
  return { id: key_id, label, scopes: [...scopes], kits, created_at, expires_at };
}

async function withStore<T>(
  { config, database }: KeyOptions,
  work: (store: Store) => Promise<T>,
): Promise<T> {
  const { store } = await openStore(await readDatabase(config, database));
  try {
    return await work(store);
  } finally {
    await store.close();
  }
}
