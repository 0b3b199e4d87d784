/** Caches the API keys in memory, so that no request waits for the database; revoked keys expire within seconds. */
import { messageOf } from '../../platform/errors.ts';
import { everyInTurn } from '../../platform/time.ts';
import { identify, type Principal } from '../principal.ts';
import type { ServiceLog } from '../service-log.ts';
import type { ApiKey } from '../stored/stored.ts';
import { texts } from '../texts.ts';
import type { Store } from '../store/sql-store.ts';

/** Another process may add and revoke keys in the same database. */
const reload_every_ms = 2_000;
/** The uses of keys are stored at this interval. */
const uses_every_ms = 60_000;
/** Minimum interval between reloads for unknown keys. */
const unknown_reload_ms = 250;

export class KeyRing {
  readonly #store: Pick<Store, 'keys' | 'noteUses'>;
  #keys: ReadonlyMap<string, ApiKey> = new Map();
  /** Uses since the last write, by key. */
  readonly #uses = new Map<string, number>();
  #isFailing = false;
  #read_ms = Number.NEGATIVE_INFINITY;
  #reloaded_ms = Number.NEGATIVE_INFINITY;
  /** The last reload for an unknown key. */
  #reloaded: Promise<void> | undefined;

  constructor(store: Pick<Store, 'keys' | 'noteUses'>) {
    this.#store = store;
  }

  /** Loads the keys now and then periodically until the signal aborts. Rejects with `StorageUnavailable`. */
  async keep(log: ServiceLog, signal: AbortSignal): Promise<void> {
    await this.reload();
    everyInTurn(reload_every_ms, signal, async () => this.#follow(log, signal));
    everyInTurn(uses_every_ms, signal, async () => this.writeUses());
  }

  async #follow(log: ServiceLog, signal: AbortSignal): Promise<void> {
    try {
      await this.reload();
      this.#isFailing = false;
    } catch (error) {
      if (!this.#isFailing && !signal.aborted) {
        log.warn({ reason: messageOf(error) }, texts.log_keys_failed);
      }
      this.#isFailing = true;
    }
  }

  /** Stores the uses; also called when the service stops. A failed write is lost: the next use is stored again. */
  async writeUses(): Promise<void> {
    const uses = [...this.#uses];
    this.#uses.clear();
    if (uses.length > 0) await this.#store.noteUses(uses).catch(() => undefined);
  }

  async reload(): Promise<void> {
    this.#keys = new Map((await this.#store.keys()).map((key) => [key.key_id, key]));
    this.#read_ms = performance.now();
  }

  /** Returns whether the database has answered within that time: it is asked every two seconds. */
  hasReadWithin(ms: number): boolean {
    return performance.now() - this.#read_ms <= ms;
  }

  /** Returns the holder of the key; an unknown key causes a reload. Rejects with `RequestProblem` `unauthorised`. */
  async identify(text: string | undefined): Promise<Principal> {
    const [, key_id = ''] = text?.split('_') ?? [];
    if (text !== undefined && !this.#keys.has(key_id)) await this.#reloadForUnknown();
    const principal = identify(text, this.#keys, Date.now());
    this.#uses.set(principal.key_id, Date.now());
    return principal;
  }

  /** Clients begin with several requests at the same time: with a new key, all of them wait for the reload of the first one. */
  async #reloadForUnknown(): Promise<void> {
    const now_ms = performance.now();
    if (now_ms - this.#reloaded_ms > unknown_reload_ms) {
      this.#reloaded_ms = now_ms;
      this.#reloaded = this.reload().catch(() => undefined);
    }
    await this.#reloaded;
  }

  /** Returns the rights of the key; undefined when it is revoked or expired. */
  principal(key_id: string): Principal | undefined {
    const key = this.#keys.get(key_id);
    if (!key || (key.expires_ms !== null && key.expires_ms <= Date.now())) return undefined;
    this.#uses.set(key_id, Date.now());
    return { key_id, user_id: key.user_id, label: key.label, scopes: key.scopes, kits: key.kits };
  }
}
