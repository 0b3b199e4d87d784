/** The API keys in memory, so that no request waits for the database to learn who asks; revoked ones are gone within seconds. */
import { messageOf } from '../errors.ts';
import { every } from '../platform/time.ts';
import { identify, type Principal } from './principal.ts';
import type { ServiceLog } from './service-log.ts';
import type { ApiKey, Store } from './store/store.ts';

/** Another process may add and revoke keys in the same database. */
const reload_every_ms = 2_000;
/** So often at most for keys that are not known. */
const look_every_ms = 250;

export class KeyRing {
  readonly #store: Pick<Store, 'keys'>;
  #keys: ReadonlyMap<string, ApiKey> = new Map();
  #isFailing = false;
  #looked_ms = Number.NEGATIVE_INFINITY;

  constructor(store: Pick<Store, 'keys'>) {
    this.#store = store;
  }

  /** Reads the keys now, and again and again until the signal aborts. Rejects with `StorageUnavailable`. */
  async keep(log: ServiceLog, signal: AbortSignal): Promise<void> {
    await this.reload();
    every(reload_every_ms, signal, () => void this.#follow(log, signal));
  }

  async #follow(log: ServiceLog, signal: AbortSignal): Promise<void> {
    try {
      await this.reload();
      this.#isFailing = false;
    } catch (error) {
      if (!this.#isFailing && !signal.aborted) {
        log.warn({ reason: messageOf(error) }, 'the API keys cannot be read: those known so far count');
      }
      this.#isFailing = true;
    }
  }

  async reload(): Promise<void> {
    this.#keys = new Map((await this.#store.keys()).map((key) => [key.key_id, key]));
  }

  /** Whose key this is; one that was made a moment ago is looked for. Rejects with `RequestProblem` `unauthorised`. */
  async identify(text: string | undefined): Promise<Principal> {
    const [, key_id = ''] = text?.split('_') ?? [];
    const now_ms = performance.now();
    if (text !== undefined && !this.#keys.has(key_id) && now_ms - this.#looked_ms > look_every_ms) {
      this.#looked_ms = now_ms;
      await this.reload().catch(() => undefined);
    }
    return identify(text, this.#keys, Date.now());
  }

  /** What the key may do now; undefined when it is revoked or expired. */
  principal(key_id: string): Principal | undefined {
    const key = this.#keys.get(key_id);
    if (!key || (key.expires_ms !== null && key.expires_ms <= Date.now())) return undefined;
    return { key_id, user_id: key.user_id, scopes: key.scopes, kits: key.kits };
  }
}
