/** Logins of a simulated vendor camera: leases, their greatest number, and the lock after wrong passwords. */
import { randomBytes } from 'node:crypto';
import { errorReply, type SimReply, okReply } from './channel.ts';

export class SimSessions {
  readonly username = 'admin';
  password = 'secret-Pass1';
  sessions_max = 4;
  lease_s = 3_600;
  /** Wrong passwords until the account is locked: "more then 3 times" (home-assistant/core#181837). */
  failures_max = 4;
  logins = 0;
  logouts = 0;
  failures = 0;
  /** Answered instead of a session. */
  refuseWith: { readonly code: number; readonly detail: string } | undefined;
  readonly #leases = new Map<string, number>();

  get open(): number {
    return [...this.#leases.values()].filter((until_ms) => until_ms > Date.now()).length;
  }

  knows(token: string | null): boolean {
    return token !== null && (this.#leases.get(token) ?? 0) > Date.now();
  }

  /** As after a restart, or when all users are disconnected. */
  forgetAll(): void {
    this.#leases.clear();
  }

  login(user: { readonly userName?: unknown; readonly password?: unknown } | undefined): SimReply {
    this.logins += 1;
    if (this.refuseWith) return errorReply('Login', this.refuseWith.code, this.refuseWith.detail);
    if (this.failures >= this.failures_max) return errorReply('Login', -506, 'Login has been locked');
    if (user?.userName !== this.username || user.password !== this.password) {
      this.failures += 1;
      return errorReply('Login', -7, 'login failed');
    }
    if (this.open >= this.sessions_max) return errorReply('Login', -5, 'max session');
    const name = randomBytes(8).toString('hex');
    this.#leases.set(name, Date.now() + this.lease_s * 1_000);
    return okReply('Login', { Token: { leaseTime: this.lease_s, name } });
  }

  logout(token: string | null): SimReply {
    if (!this.knows(token)) return errorReply('Logout', -6, 'please login first');
    this.#leases.delete(token ?? '');
    this.logouts += 1;
    return okReply('Logout', { rspCode: 200 });
  }
}
