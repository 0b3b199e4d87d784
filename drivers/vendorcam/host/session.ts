/** The session with a host: renews its lease in time, keeps it over a restart of the daemon, and logs out at the end. */
import { z } from 'zod';
import { DeviceRejected, DeviceUnreachable } from '../../../src/platform/errors.ts';
import { credentialsHash, type LoginGuard } from '../../../src/toolkit/device/login-guard.ts';
import { afterAcceptance, failureOf } from './rsp-codes.ts';
import type { Limits } from '../limits.ts';
import { type Command, faultIn, type Outcome, valueOf } from './replies.ts';
import { texts } from '../texts.ts';

/** It is part of each address: not every text can be. */
const tokenName = z.string().regex(/^[\x21-\x7e]{1,200}$/u);

const token = z.looseObject({
  Token: z.looseObject({ name: tokenName, leaseTime: z.number().positive().optional() }),
});

export const savedSession = z.strictObject({
  token: z.string().min(1),
  /** Unix time in milliseconds. */
  expires_ms: z.number(),
});
export type SavedSession = z.output<typeof savedSession>;

export interface SessionParts {
  readonly username: string;
  /** Read again for each login. */
  readonly password: () => Promise<string>;
  /** Sends one command in one request, under this token. */
  readonly send: (command: Command, token: string | undefined) => Promise<Outcome | undefined>;
  readonly limits: Limits;
  readonly guard: LoginGuard;
  readonly saved: SavedSession | undefined;
  /** Resolves also when the disk write fails, which the caller logs. */
  readonly save: (session: SavedSession | undefined) => Promise<void>;
}

interface Lease {
  readonly token: string;
  /** Monotonic: a jump of the gateway's clock ends no lease. */
  readonly renew_mono_ms: number;
}

export class Session {
  readonly #parts: SessionParts;
  #lease: Lease | undefined;
  #opening: Promise<string> | undefined;
  /** Number of sessions that the device lost, as after a restart. */
  losses = 0;

  constructor(parts: SessionParts) {
    this.#parts = parts;
    const session = parts.saved;
    if (!session) return;
    const left_ms = Math.min(session.expires_ms - Date.now(), parts.limits.lease_default_ms);
    if (left_ms > 0) this.#lease = leaseOf(session.token, left_ms, parts.limits);
  }

  /** Returns the token; logs in when there is none or when it expires soon. Many callers may wait for one login. */
  async token(): Promise<string> {
    const lease = this.#lease;
    if (lease && performance.now() < lease.renew_mono_ms) return lease.token;
    this.#opening ??= this.#login().finally(() => {
      this.#opening = undefined;
    });
    return this.#opening;
  }

  /** Discards a token that the device lost. A newer one stays. */
  forget(token: string): void {
    if (this.#lease?.token !== token) return;
    this.#lease = undefined;
    this.losses += 1;
  }

  /** Logs out. Skipped without a token, since such a logout breaks later sessions. */
  async logout(): Promise<void> {
    const lease = this.#lease;
    if (!lease) return;
    this.#lease = undefined;
    const answer = await this.#parts.send({ cmd: 'Logout', param: {} }, lease.token).catch(() => undefined);
    // Kept when the logout failed: the next start uses this session instead of opening another.
    if (answer) await this.#parts.save(undefined);
  }

  /** At the end of the driver: a login in progress must not leave a session behind either. */
  async end(): Promise<void> {
    await this.#opening?.catch(() => undefined);
    await this.logout();
  }

  async #login(): Promise<string> {
    const { username, limits, guard } = this.#parts;
    const password = await this.#parts.password();
    const credentials = credentialsHash(username, password);
    guard.admit(credentials);
    await this.logout();
    const param = { User: { Version: '0', userName: username, password } };
    const outcome = await this.#parts.send({ cmd: 'Login', param }, undefined);
    const fault = faultIn(outcome);
    if (fault) {
      const failure = failureOf(guard.wasAccepted(credentials) ? afterAcceptance(fault) : fault, limits);
      throw failure instanceof DeviceRejected ? await guard.refuse(credentials, failure.message) : failure;
    }
    const read = valueOf(outcome, token)?.Token;
    if (!read) throw new DeviceUnreachable(texts.login_no_session);
    const lease_ms = read.leaseTime === undefined ? limits.lease_default_ms : read.leaseTime * 1_000;
    this.#lease = leaseOf(read.name, lease_ms, limits);
    await this.#parts.save({ token: read.name, expires_ms: Date.now() + lease_ms });
    await guard.accept(credentials);
    return read.name;
  }
}

/** A short lease is renewed at its half. */
function leaseOf(token: string, lease_ms: number, { renew_before_ms }: Limits): Lease {
  return { token, renew_mono_ms: performance.now() + lease_ms - Math.min(renew_before_ms, lease_ms / 2) };
}
