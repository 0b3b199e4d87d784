/**
 * What a key with the scope `keys` may do with other keys: with those alone that have no right that it lacks. It neither sees nor rotates
 * one that has more, since the new secret would give it these rights (microclaw#90), and makes none that outlives it (Octopus Deploy,
 * REST API). Every method throws `RequestProblem` when it rejects a request.
 */
import type { z } from 'zod';
import {
  type changeKey,
  type createdKey,
  type createKey,
  type KeyResource,
  rotated_valid_ms,
} from '../api/key-resources.ts';
import { RequestProblem } from '../api/problem.ts';
import { hasRightsOf, type KeyRights, makeKey, makeSecret, type Principal } from '../principal.ts';
import type { ServiceLog } from '../service-log.ts';
import type { Store } from '../store/sql-store.ts';
import type { ApiKey } from '../stored/stored.ts';
import { texts } from '../texts.ts';
import type { KeyRing } from './keys.ts';

/** That one key sees: all are in memory. */
const keys_max = 1_000;

export class KeyOperations {
  readonly #store: Pick<Store, 'keys' | 'addKey' | 'changeKey' | 'rotateKey' | 'revokeKey'>;
  readonly #ring: KeyRing;
  readonly #log: ServiceLog;

  constructor(parts: { readonly store: Store; readonly keys: KeyRing; readonly log: ServiceLog }) {
    this.#store = parts.store;
    this.#ring = parts.keys;
    this.#log = parts.log;
  }

  async list(principal: Principal): Promise<KeyResource[]> {
    return (await this.#visible(principal)).map((each) => resourceOf(each, principal));
  }

  async get(principal: Principal, key_id: string): Promise<KeyResource> {
    return resourceOf(await this.#key(principal, key_id), principal);
  }

  async create(
    principal: Principal,
    { label, scopes, kits: wanted, expires_at }: z.output<typeof createKey>,
  ): Promise<z.output<typeof createdKey>> {
    const visible = await this.#visible(principal);
    if (visible.length >= keys_max) throw new RequestProblem('conflict', texts.keys_max(keys_max));
    const kits = wanted ?? principal.kits;
    const end_ms = endOf(principal, visible);
    const expires_ms = expires_at === undefined ? end_ms : Date.parse(expires_at);
    const rights = { label, scopes: [...new Set(scopes)], kits, expires_ms };
    const now_ms = Date.now();
    demandGiveable(principal, rights, { end_ms, now_ms });
    const { text, key } = makeKey(rights, now_ms);
    await this.#store.addKey(key);
    await this.#done(principal, key, texts.log_key_created);
    return { ...resourceOf(key, principal), key: text };
  }

  /** Changes what a key may do and what it is called; its secret stays with its clients (growthbook/growthbook#6303). */
  async change(
    principal: Principal,
    key_id: string,
    { expires_at, ...change }: z.output<typeof changeKey>,
  ): Promise<KeyResource> {
    const before = await this.#key(principal, key_id);
    const { label = before.label, scopes = before.scopes, kits = before.kits } = change;
    const hasRights = (change.scopes ?? change.kits ?? expires_at) !== undefined;
    // It could take the way back from itself.
    if (hasRights && key_id === principal.key_id) throw new RequestProblem('conflict', texts.own_rights);
    const end_ms = endOf(principal, await this.#visible(principal));
    const asked_ms = typeof expires_at === 'string' ? Date.parse(expires_at) : end_ms;
    const expires_ms = expires_at === undefined ? before.expires_ms : asked_ms;
    const rights = { label, scopes: [...new Set(scopes)], kits, expires_ms };
    const now_ms = Date.now();
    // An end that stays may have passed.
    demandGiveable(principal, rights, { end_ms, now_ms: expires_at === undefined ? 0 : now_ms });
    const key = { ...before, ...rights };
    await this.#store.changeKey(key);
    await this.#done(principal, key, texts.log_key_changed);
    return resourceOf(key, principal);
  }

  /** Gives the key a new secret; the one before stays valid for a day beside it. */
  async rotate(principal: Principal, key_id: string): Promise<z.output<typeof createdKey>> {
    const before = await this.#key(principal, key_id);
    const now_ms = Date.now();
    // Its new secret would not be valid either (n8n#32342).
    if (before.expires_ms !== null && before.expires_ms <= now_ms)
      throw new RequestProblem('conflict', texts.key_over);
    const { text, hash } = makeSecret(key_id);
    const key = { ...before, hash, old_hash: before.hash, old_until_ms: now_ms + rotated_valid_ms };
    await this.#store.rotateKey(key);
    await this.#done(principal, key, texts.log_key_rotated);
    return { ...resourceOf(key, principal), key: text };
  }

  /** Ends the key with its sessions. One key remains: that of the request. */
  async revoke(principal: Principal, key_id: string): Promise<void> {
    const key = await this.#key(principal, key_id);
    if (key_id === principal.key_id) throw new RequestProblem('conflict', texts.own_key);
    await this.#store.revokeKey(key_id);
    await this.#done(principal, key, texts.log_key_revoked);
  }

  async #visible(principal: Principal): Promise<readonly ApiKey[]> {
    return (await this.#store.keys()).filter((key) => hasRightsOf(principal, key));
  }

  async #key(principal: Principal, key_id: string): Promise<ApiKey> {
    const found = (await this.#visible(principal)).find((key) => key.key_id === key_id);
    if (!found) throw new RequestProblem('not-found', texts.no_key(key_id));
    return found;
  }

  /** Takes effect here at once, in other processes within seconds. */
  async #done(principal: Principal, { key_id, label, scopes, kits }: ApiKey, what: string): Promise<void> {
    await this.#ring.reload();
    const by = { by_key_id: principal.key_id, requested_by_name: principal.label };
    this.#log.info({ key_id, label, scopes, kits, ...by }, what);
  }
}

/** When the key of the request ends; null: never. */
function endOf({ key_id }: Principal, keys: readonly ApiKey[]): number | null {
  return keys.find((key) => key.key_id === key_id)?.expires_ms ?? null;
}

/** Throws unless the key of the request may give these rights away. */
function demandGiveable(
  principal: Principal,
  { scopes, kits, expires_ms }: KeyRights,
  { end_ms, now_ms }: { readonly end_ms: number | null; readonly now_ms: number },
): void {
  const lacking = scopes.find((scope) => !principal.scopes.includes(scope));
  if (lacking !== undefined) throw new RequestProblem('forbidden', texts.no_scope(lacking));
  const isEndOk = expires_ms === null || (expires_ms > now_ms && expires_ms <= (end_ms ?? expires_ms));
  const errors = [
    ...(hasRightsOf(principal, { scopes, kits }) ? [] : [{ pointer: '#/kits', detail: texts.kits_of_key }]),
    ...(isEndOk ? [] : [{ pointer: '#/expires_at', detail: texts.key_end(end_ms) }]),
  ];
  if (errors.length > 0) throw new RequestProblem('invalid-payload', texts.key_rejected, { errors });
}

function resourceOf(
  { key_id: id, label, scopes, kits, created_ms, expires_ms, used_ms, old_until_ms }: ApiKey,
  principal: Principal,
): KeyResource {
  const iso = (ms: number): string => new Date(ms).toISOString();
  return {
    id,
    label,
    scopes: [...scopes],
    kits: kits === '*' ? kits : [...kits],
    created_at: iso(created_ms),
    ...(expires_ms !== null && { expires_at: iso(expires_ms) }),
    ...(used_ms !== null && { used_at: iso(used_ms) }),
    ...(old_until_ms !== null && old_until_ms > Date.now() && { old_secret_expires_at: iso(old_until_ms) }),
    is_own: id === principal.key_id,
  };
}
