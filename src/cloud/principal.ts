/** The principal of a request: an API key and its rights. */
import { randomBytes, randomUUID, timingSafeEqual } from 'node:crypto';
import { RequestProblem } from './api/problem.ts';
import type { Scope } from './scopes.ts';
import type { ApiKey } from './stored/stored.ts';
import { texts } from './texts.ts';
import { hashOf } from './hash.ts';

const secret_bytes = 24;
const id_bytes = 6;
const key_form = /^kc_([0-9a-f]{12})_([A-Za-z0-9_-]{32})$/u;

/** A valid key. */
export interface Principal {
  readonly key_id: string;
  /** Recorded as `requested_by` on the actions of the key. */
  readonly user_id: string;
  /** For people. */
  readonly label: string;
  readonly scopes: readonly string[];
  readonly kits: readonly string[] | '*';
}

type Rights = Pick<Principal, 'scopes' | 'kits'>;

/** The rights of a new key; `kits` `*` means all present and future kits. */
export type KeyRights = Pick<ApiKey, 'label' | 'scopes' | 'kits' | 'expires_ms'>;

/** Makes a key. The text is shown once and kept nowhere: only its hash is stored. */
export function makeKey(rights: KeyRights, now_ms: number): { readonly text: string; readonly key: ApiKey } {
  const key_id = randomBytes(id_bytes).toString('hex');
  const { text, hash } = makeSecret(key_id);
  return { text, key: keyWith({ key_id, hash }, rights, now_ms) };
}

export function makeSecret(key_id: string): { readonly text: string; readonly hash: string } {
  const secret = randomBytes(secret_bytes).toString('base64url');
  return { text: `kc_${key_id}_${secret}`, hash: hashOf(secret) };
}

/** Below this many different characters the secret of a key was written by a hand; a random one has more. */
const different_min = 8;

/** A key that was made elsewhere; undefined when the text is none, or can be guessed. */
export function keyOfText(text: string, rights: KeyRights, now_ms: number): ApiKey | undefined {
  const [, key_id = '', secret = ''] = key_form.exec(text) ?? [];
  if (new Set(secret).size < different_min) return undefined;
  return keyWith({ key_id, hash: hashOf(secret) }, rights, now_ms);
}

function keyWith(known: Pick<ApiKey, 'key_id' | 'hash'>, rights: KeyRights, created_ms: number): ApiKey {
  const unused = { used_ms: null, old_hash: null, old_until_ms: null };
  return { ...rights, ...known, user_id: randomUUID(), created_ms, ...unused };
}

/**
 * Returns the holder of the key. The secret has 192 random bits, so a fast hash is enough; it is compared in constant time.
 * Throws `RequestProblem` `unauthorised`, with the same sentence for every cause.
 */
export function identify(
  text: string | undefined,
  keys: ReadonlyMap<string, ApiKey>,
  now_ms: number,
): Principal {
  const [, key_id = '', secret = ''] = key_form.exec(text ?? '') ?? [];
  const key = keys.get(key_id);
  const isRight = isSecretOf(key, secret, now_ms);
  if (!key || !isRight || (key.expires_ms !== null && key.expires_ms <= now_ms)) {
    throw new RequestProblem('unauthorised', texts.no_valid_key);
  }
  return { key_id, user_id: key.user_id, label: key.label, scopes: key.scopes, kits: key.kits };
}

/** Whether it is the secret of the key, or the one before while that is valid; without a key the same is computed. */
function isSecretOf(key: ApiKey | undefined, secret: string, now_ms: number): boolean {
  const given = Buffer.from(hashOf(secret), 'hex');
  const isHash = (hash = hashOf('')): boolean => timingSafeEqual(given, Buffer.from(hash, 'hex'));
  const isOld = isHash(key?.old_hash ?? undefined) && (key?.old_until_ms ?? 0) > now_ms;
  return isHash(key?.hash) || isOld;
}

/** Throws `RequestProblem` `forbidden`. */
export function demandScope(principal: Principal, scope: Scope): void {
  if (!principal.scopes.includes(scope)) {
    throw new RequestProblem('forbidden', texts.no_scope(scope));
  }
}

export function maySee(principal: Pick<Principal, 'kits'>, kit_id: string): boolean {
  return principal.kits === '*' || principal.kits.includes(kit_id);
}

/** Whether the first has every right of the second. */
export function hasRightsOf({ scopes: held, kits }: Rights, other: Rights): boolean {
  if (!other.scopes.every((scope) => held.includes(scope))) return false;
  if (kits === '*' || other.kits === '*') return kits === '*';
  const seen = new Set(kits);
  return other.kits.every((kit_id) => seen.has(kit_id));
}
