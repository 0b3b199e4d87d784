/** `kit-connector service key`: manages the API keys of the service. A running service applies changes within seconds. */
import { z } from 'zod';
import { makeKey } from '../../cloud/principal.ts';
import { scopes } from '../../cloud/scopes.ts';
import type { ApiKey } from '../../cloud/stored/stored.ts';
import { complain, exit, say, printJson, type Shell, table } from '../terminal/shell.ts';
import { texts } from '../texts.ts';
import { withStore } from './database.ts';
import type { DatabaseOptions } from './database-options.ts';
import { localTime } from '../../platform/local-time.ts';
import { day_ms } from '../../platform/time.ts';

interface AddKeyOptions extends DatabaseOptions {
  readonly kit: readonly string[];
  readonly allKits?: boolean;
  readonly scope: readonly string[];
  readonly days?: number;
  /** Milliseconds since 1970. */
  readonly expires?: number;
}

export async function addKey(label: string, options: AddKeyOptions, shell: Shell): Promise<number> {
  const fault = addKeyFault(options);
  if (fault !== undefined) {
    complain(shell, fault);
    return exit.usage;
  }
  const kits = options.allKits === true ? '*' : options.kit;
  const now_ms = Date.now();
  const { days, expires } = options;
  const expires_ms = expires ?? (days === undefined ? null : now_ms + days * day_ms);
  // A key that may make others is asked for by name.
  const wanted = options.scope.length === 0 ? scopes.filter((scope) => scope !== 'keys') : options.scope;
  const lower = kits === '*' ? kits : kits.map((id) => id.toLowerCase());
  const { text, key } = makeKey({ label, scopes: wanted, kits: lower, expires_ms }, now_ms);
  await withStore(options, async (store) => store.addKey(key));
  if (options.json) printJson(shell, { key: text, ...shown(key) });
  else {
    complain(shell, texts.key_shown_once);
    say(shell, text);
  }
  return exit.ok;
}

/** The fault of the command line, with its remedy. */
function addKeyFault(options: AddKeyOptions): string | undefined {
  if (options.allKits !== true && options.kit.length === 0) return texts.no_kits;
  return rightsFault(options);
}

function rightsFault({ kit, scope }: Pick<AddKeyOptions, 'kit' | 'scope'>): string | undefined {
  if (!z.array(z.uuid()).safeParse(kit).success) return texts.invalid_uuid;
  const known: readonly string[] = scopes;
  const unknown = scope.find((word) => !known.includes(word));
  return unknown === undefined ? undefined : texts.invalid_scope(unknown, scopes.join(', '));
}

export async function listKeys(options: DatabaseOptions, shell: Shell): Promise<number> {
  const keys = (await withStore(options, async (store) => store.keys())).map(shown);
  if (options.json) printJson(shell, keys);
  else if (keys.length === 0) say(shell, texts.no_api_keys);
  else {
    const rows = keys.map(({ id, label, scopes, kits, expires_at, used_at }) => [
      id,
      label,
      scopes.join(' '),
      kits === '*' ? 'all kits' : kits.join(' '),
      expires_at === null ? 'no limit' : localTime(expires_at),
      used_at === null ? 'never' : localTime(used_at),
    ]);
    say(shell, ...table([['id', 'label', 'scopes', 'kits', 'expires', 'last used'], ...rows]));
  }
  return exit.ok;
}

interface ChangeKeyOptions extends AddKeyOptions {
  readonly label?: string;
  readonly addKit: readonly string[];
}

/** Changes what is named; the secret stays. */
export async function changeKey(id: string, options: ChangeKeyOptions, shell: Shell): Promise<number> {
  const key_id = idIn(id);
  const fault = rightsFault({ kit: [...options.kit, ...options.addKit], scope: options.scope });
  if (fault !== undefined) {
    complain(shell, fault);
    return exit.usage;
  }
  const changed = await withStore(options, async (store) => {
    const before = (await store.keys()).find((key) => key.key_id === key_id);
    const key = before && { ...before, ...changeOf(before, options) };
    if (key) await store.changeKey(key);
    return key;
  });
  if (!changed) complain(shell, texts.key_not_found(key_id));
  else if (options.json) printJson(shell, shown(changed));
  else say(shell, texts.key_changed(key_id));
  return changed ? exit.ok : exit.failed;
}

function changeOf(before: ApiKey, { label, kit, addKit, allKits, scope, days, expires }: ChangeKeyOptions) {
  const named = kit.length > 0 ? kit : before.kits;
  const all = allKits === true || named === '*' ? ('*' as const) : [...new Set([...named, ...addKit])];
  return {
    label: label ?? before.label,
    scopes: scope.length > 0 ? scope : before.scopes,
    kits: all === '*' ? all : all.map((each) => each.toLowerCase()),
    expires_ms: expires ?? (days === undefined ? before.expires_ms : Date.now() + days * day_ms),
  };
}

/** Of a key as `list` shows it, or of the key itself. */
function idIn(text: string): string {
  return text.startsWith('kc_') ? (text.split('_')[1] ?? '') : text;
}

export async function revokeKey(id: string, options: DatabaseOptions, shell: Shell): Promise<number> {
  const key_id = idIn(id);
  if (await withStore(options, async (store) => store.revokeKey(key_id))) {
    say(shell, texts.key_revoked(key_id));
    return exit.ok;
  }
  complain(shell, texts.key_not_found(key_id));
  return exit.failed;
}

function shown({ key_id, label, scopes, kits, created_ms, expires_ms, used_ms }: ApiKey) {
  const created_at = new Date(created_ms).toISOString();
  const expires_at = expires_ms === null ? null : new Date(expires_ms).toISOString();
  const used_at = used_ms === null ? null : new Date(used_ms).toISOString();
  return { id: key_id, label, scopes: [...scopes], kits, created_at, expires_at, used_at };
}
