/** Logins of a simulated radio: rpcd's sessions, which each use extends, and their rights. */
import { randomBytes } from 'node:crypto';
import { z } from 'zod';
import type { Args, SimResult } from './wire.ts';

const rights = z.record(z.string(), z.array(z.string())).catch({});
const readable = z.looseObject({ ubus: rights.optional(), file: rights.optional() });

export class SimSessions {
  user: { readonly name: string; readonly password: string };
  timeout_s = 300;
  /** The oldest session ends when a login would exceed this number. */
  sessions_max: number | undefined;
  /** Reported at the login and enforced; by default the rights of a whole kit. */
  acls: object = full_acls;
  logins = 0;
  /** How far the radio's clock is before ours. */
  ahead_ms = 0;
  readonly #expires_ms = new Map<string, number>();

  constructor(user: { readonly name: string; readonly password: string }) {
    this.user = user;
  }

  get size(): number {
    return this.#expires_ms.size;
  }

  forgetAll(): void {
    this.#expires_ms.clear();
  }

  login({ username, password }: Args): SimResult {
    this.logins += 1;
    if (typeof username !== 'string' || typeof password !== 'string') return [2];
    if (username !== this.user.name || password !== this.user.password) return [6];
    const sid = randomBytes(16).toString('hex');
    this.#prolong(sid);
    const [oldest] = this.#expires_ms.keys();
    if (oldest !== undefined && this.size > (this.sessions_max ?? Infinity)) this.#expires_ms.delete(oldest);
    const timeout = this.timeout_s;
    return [0, { ubus_rpc_session: sid, timeout, expires: timeout, acls: this.acls, data: { username } }];
  }

  /** Whether the session is valid and has the right. Each use renews it. */
  mayCall(sid: string, object: string, method: string): boolean {
    const expires_ms = this.#expires_ms.get(sid);
    if (expires_ms === undefined || expires_ms < this.#now_ms()) return false;
    this.#prolong(sid);
    return readable.safeParse(this.acls).data?.ubus?.[object]?.includes(method) ?? false;
  }

  mayFile(path: string, right: string): boolean {
    return readable.safeParse(this.acls).data?.file?.[path]?.includes(right) ?? false;
  }

  #now_ms(): number {
    return performance.now() + this.ahead_ms;
  }

  #prolong(sid: string): void {
    this.#expires_ms.set(sid, this.#now_ms() + this.timeout_s * 1_000);
  }
}

export const full_acls = {
  'access-group': { 'kit-connector': ['read', 'write'] },
  ubus: {
    iwinfo: ['info', 'devices', 'assoclist', 'survey', 'freqlist', 'txpowerlist', 'scan'],
    system: ['board', 'info', 'reboot'],
    file: ['read', 'write'],
    uci: ['get', 'set', 'delete', 'revert', 'apply', 'confirm', 'rollback'],
    'message-system': ['chswitch'],
  },
  file: {
    '/proc/stat': ['read'],
    '/sys/class/net/wlan0/address': ['read'],
    '/sys/class/leds/green:status/trigger': ['read', 'write'],
    '/tmp/linkstate_current.json': ['read'],
    '/tmp/run/pancake.txt': ['read'],
    '/var/run/gps/latitude': ['read'],
    '/var/run/gps/longitude': ['read'],
  },
  uci: { wireless: ['read', 'write'] },
};
