/** Identifies the client of a request by API key or session cookie, and checks whether the request comes from a page of this service. */
import { randomBytes } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { isIP } from 'node:net';
import type { KeyRing } from './keys.ts';
import { hasRightsOf, type Principal } from '../principal.ts';
import { RequestProblem } from '../api/problem.ts';
import { KeyedTokenBuckets, type TokenBucket } from '../../platform/token-bucket.ts';
import { networkOf, TrustedProxies } from './proxies.ts';
import { texts } from '../texts.ts';
import type { Store } from '../store/sql-store.ts';
import { hashOf } from '../hash.ts';

export const session_s = 12 * 3_600;
const cookie_name = 'kit_session';
const session_bytes = 32;
/**
 * Per address, for IPv6 per network; requests with a valid key are not limited by this. A script that asks each endpoint with a
 * wrong key is answered 401 throughout; guessing one of the 2^192 keys is infeasible at any rate.
 */
const wrong_keys = { perSecond: 5 / 60, burst: 60 } as const;

/** Per key: each session is written to the disk. */
const new_sessions = { perSecond: 10 / 60, burst: 10 } as const;

/** The parts of a request that identify the client. */
export interface Asker {
  readonly headers: Readonly<IncomingHttpHeaders>;
  /** IP address of the peer: of the client, or of the proxy in front; empty where it is not known. */
  readonly address: string;
}

export interface GateParts {
  readonly keys: KeyRing;
  readonly store: Pick<Store, 'addSession' | 'session' | 'endSession'>;
  /** Host names that are served, beside addresses, `localhost` and names in `.local`; lower case. */
  readonly hosts: readonly string[];
  /** Origins whose pages may use the API with a key; left out: none. */
  readonly origins?: readonly string[] | undefined;
  /** Left out: no proxy is trusted. */
  readonly proxies?: TrustedProxies | undefined;
  /** Every request comes over TLS of the service's own. */
  readonly isSecure: boolean;
}

export class Gate {
  readonly #parts: GateParts;
  readonly #wrongKeys = new KeyedTokenBuckets(wrong_keys);
  readonly #newSessions = new KeyedTokenBuckets(new_sessions);
  readonly #proxies: TrustedProxies;

  constructor(parts: GateParts) {
    this.#parts = parts;
    this.#proxies = parts.proxies ?? new TrustedProxies();
  }

  /** Rejects with `RequestProblem`: `unauthorised`, or `too-many-requests` for an address that guesses keys. */
  async byKey(text: string | undefined, asker: Asker): Promise<Principal> {
    try {
      return await this.#parts.keys.identify(text);
    } catch (error) {
      const network = networkOf(this.clientOf(asker));
      const wait_s = text === undefined ? 0 : secondsToWait(this.#wrongKeys.of(network));
      if (wait_s === 0) throw error;
      throw new RequestProblem('too-many-requests', texts.too_many_keys(wait_s), {
        retry_after_s: wait_s,
      });
    }
  }

  /** By key where there is one, else by the session. Throws `RequestProblem`. */
  async identify(asker: Asker): Promise<Principal> {
    this.#proxies.observe(asker.headers, asker.address);
    return (await this.bySession(asker)) ?? this.byKey(keyIn(asker.headers), asker);
  }

  /** By the cookie; undefined where there is a key or no session. */
  async bySession({ headers }: Pick<Asker, 'headers'>): Promise<Principal | undefined> {
    const secret = cookieIn(headers);
    if (secret === undefined || keyIn(headers) !== undefined) return undefined;
    const key_id = await this.#parts.store.session(hashOf(secret), Date.now());
    return key_id === undefined ? undefined : this.#parts.keys.principal(key_id);
  }

  /** Returns whether key and session are still valid, and the key has all the rights that it had. */
  async isStillKnown(principal: Principal, asker: Asker): Promise<boolean> {
    const now = this.#parts.keys.principal(principal.key_id);
    if (!now || !hasRightsOf(now, principal)) return false;
    if (cookieIn(asker.headers) === undefined || keyIn(asker.headers) !== undefined) return true;
    return (await this.bySession(asker)) !== undefined;
  }

  /**
   * Starts a session for the holder of the key and ends the one in the cookie; returns the new cookie. Throws as `byKey`.
   * The secret is always new, never one from the request (session fixation).
   */
  async openSession(api_key: string, asker: Asker): Promise<string> {
    const { headers } = asker;
    const { key_id } = await this.byKey(api_key, asker);
    const wait_s = secondsToWait(this.#newSessions.of(key_id));
    if (wait_s > 0) {
      const detail = `too many sessions started with this key; retry in ${wait_s} s`;
      throw new RequestProblem('too-many-requests', detail, { retry_after_s: wait_s });
    }
    await this.#parts.store.endSession(hashOf(cookieIn(headers) ?? ''));
    const secret = randomBytes(session_bytes).toString('base64url');
    await this.#parts.store.addSession(hashOf(secret), key_id, Date.now() + session_s * 1_000);
    return `${cookie_name}=${secret}; Max-Age=${session_s}; ${attributes(headers, this.#parts.isSecure)}`;
  }

  /** Ends the session; returns the cookie that replaces the old one. */
  async closeSession({ headers }: Pick<Asker, 'headers'>): Promise<string> {
    const secret = cookieIn(headers);
    if (secret !== undefined) await this.#parts.store.endSession(hashOf(secret));
    return `${cookie_name}=; Max-Age=0; ${attributes(headers, this.#parts.isSecure)}`;
  }

  /** Whether this is the address of a proxy that the configuration trusts. */
  isTrusted(address: string): boolean {
    return this.#proxies.isTrusted(address);
  }

  /** The address of the client, for limits: behind a trusted proxy the address in the proxy's header. */
  clientOf({ headers, address }: Asker): string {
    return this.#proxies.clientOf(headers, address);
  }

  /** Origins whose pages may use the API with a key, never with a cookie. */
  get origins(): readonly string[] {
    return this.#parts.origins ?? [];
  }

  /** Scheme, host and port by which this client reaches the service. */
  originFor({ headers }: Pick<Asker, 'headers'>): string {
    const scheme = isOverTls(headers, this.#parts.isSecure) ? 'https' : 'http';
    return `${scheme}://${headers.host}`;
  }

  /**
   * Returns whether the request comes from a page of this service or from no page at all. Cookies ignore ports: without
   * this check a page of another server on the same gateway would be accepted with them.
   */
  isOwnPage({ headers }: Pick<Asker, 'headers'>): boolean {
    const site = headers['sec-fetch-site'];
    const isOwnSite = site === undefined || site === 'same-origin' || site === 'none';
    return isOwnSite && (headers.origin === undefined || hostOf(headers.origin) === headers.host);
  }

  /**
   * Whether this host name is served. A page of another site can make its own name point here (DNS rebinding), but it
   * cannot make an address of it.
   */
  serves(host: string | undefined): boolean {
    const url = `http://${host ?? ''}`;
    // A host header is a name and a port, and nothing around them that a parser would leave out.
    if (!URL.canParse(url) || /[/?#@\\\s]/u.test(host ?? '')) return false;
    const name = new URL(url).hostname.replace(/^\[|\]$|\.$/gu, '').toLowerCase();
    return (
      isIP(name) !== 0 || name === 'localhost' || name.endsWith('.local') || this.#parts.hosts.includes(name)
    );
  }
}

/** Takes a token. Returns 0, or the seconds until there is one. */
export function secondsToWait(bucket: TokenBucket): number {
  const now_ms = performance.now();
  return bucket.take(now_ms) ? 0 : Math.ceil(bucket.wait_ms(now_ms) / 1_000);
}

/** Returns whether the session cookie is the only credential. */
export function hasCookieOnly(headers: Readonly<IncomingHttpHeaders>): boolean {
  return keyIn(headers) === undefined && cookieIn(headers) !== undefined;
}

function keyIn(headers: Readonly<IncomingHttpHeaders>): string | undefined {
  const text = headers['x-api-key'];
  return Array.isArray(text) ? text.join() : text;
}

function cookieIn({ cookie }: Readonly<IncomingHttpHeaders>): string | undefined {
  for (const pair of cookie?.split(';') ?? []) {
    const [name, value] = pair.trim().split('=');
    if (name === cookie_name && value) return value;
  }
  return undefined;
}

/**
 * Over TLS, be it that of a proxy in front, the cookie is for TLS only. Where several proxies name their scheme, the first one
 * is what the browser used.
 */
function attributes(headers: Readonly<IncomingHttpHeaders>, isSecure: boolean): string {
  const secure = isOverTls(headers, isSecure) ? '; Secure' : '';
  return `Path=/; HttpOnly; SameSite=Strict${secure}`;
}

function isOverTls(headers: Readonly<IncomingHttpHeaders>, isSecure: boolean): boolean {
  const [scheme] = [headers['x-forwarded-proto'] ?? []].flat().join().split(',');
  return isSecure || scheme?.trim().toLowerCase() === 'https';
}

function hostOf(origin: string): string | undefined {
  // An app in a web view may name any host.
  return /^https?:/u.test(origin) && URL.canParse(origin) ? new URL(origin).host : undefined;
}
