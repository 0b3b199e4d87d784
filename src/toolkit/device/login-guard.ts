/**
 * Limits the logins to one device, over restarts, so that no account is locked: a daemon that restarts in a loop and
 * commands that arrive meanwhile must not try refused credentials again. Remembers which credentials were accepted: their
 * refusal may be temporary, while the device boots or is locked because of another client.
 */
import { createHash } from 'node:crypto';
import { z } from 'zod';
import { DeviceRejected } from '../../platform/errors.ts';
import type { RetryLimits } from './retry.ts';
import type { MemoryOf } from './device-memory.ts';

/** Properties of the memory of a device; a damaged one counts as missing. */
export const loginRecord = {
  /** Hash of the credentials that the device accepted last. */
  accepted: z.string().optional().catch(undefined),
  refused: z
    .object({
      /** Hash of user name and password, so that changed ones are tried at once. */
      credentials: z.string(),
      reason: z.string(),
      /** Unix time in milliseconds. */
      at_ms: z.number(),
      /** In a row. */
      times: z.int().min(1).catch(1),
    })
    .optional()
    .catch(undefined),
} as const;
const record = z.object(loginRecord);
export type LoginRecord = z.output<typeof record>;

export interface LoginGuardParts {
  readonly memory: MemoryOf<LoginRecord>;
  readonly limits: Pick<RetryLimits, 'may_pass_ms' | 'refused_ms'>;
  /** Unix time in milliseconds. */
  readonly now_ms?: () => number;
}

/** The device refused the login. */
export class LoginRefused extends DeviceRejected {}

/** Below the shortest pause before the retry, so that the retry itself is admitted. */
const share_of_pause = 0.4;

export class LoginGuard {
  readonly #parts: LoginGuardParts;
  readonly #now_ms: () => number;

  constructor(parts: LoginGuardParts) {
    this.#parts = parts;
    this.#now_ms = parts.now_ms ?? (() => Date.now());
  }

  /** Throws LoginRefused, with the reason of then, while these credentials must not be tried again. */
  admit(credentials: string): void {
    const { memory, limits } = this.#parts;
    const { refused } = memory.facts;
    if (refused?.credentials !== credentials) return;
    const pause_ms = limits.may_pass_ms[refused.times - 1];
    const isShort = this.wasAccepted(credentials) && pause_ms !== undefined;
    const quiet_ms = isShort ? Math.min(pause_ms * share_of_pause, limits.refused_ms) : limits.refused_ms;
    const age_ms = this.#now_ms() - refused.at_ms;
    if (age_ms >= 0 && age_ms < quiet_ms) throw this.#refusal(credentials, refused.reason);
  }

  /** Whether the device accepted these credentials last. */
  wasAccepted(credentials: string): boolean {
    return this.#parts.memory.facts.accepted === credentials;
  }

  /** Whether the refusal of these credentials may still be temporary. */
  mayPass(credentials: string): boolean {
    const { memory, limits } = this.#parts;
    const { refused } = memory.facts;
    const times = refused?.credentials === credentials ? refused.times : 0;
    return this.wasAccepted(credentials) && times < limits.may_pass_ms.length;
  }

  async accept(credentials: string): Promise<void> {
    const { memory } = this.#parts;
    if (this.wasAccepted(credentials) && memory.facts.refused === undefined) return;
    await memory.change({ accepted: credentials, refused: undefined });
  }

  /** Records the refusal; resolves with the error to throw. */
  async refuse(credentials: string, reason: string): Promise<LoginRefused> {
    const { refused } = this.#parts.memory.facts;
    const times = refused?.credentials === credentials ? refused.times + 1 : 1;
    await this.#parts.memory.change({
      refused: { credentials, reason, at_ms: this.#now_ms(), times },
    });
    return this.#refusal(credentials, reason);
  }

  #refusal(credentials: string, reason: string): LoginRefused {
    return new LoginRefused(reason, { may_pass: this.wasAccepted(credentials) });
  }
}

/** Identifies credentials without storing them. */
export function credentialsHash(username: string, password: string): string {
  return createHash('sha256').update(`${username}\n${password}`).digest('hex').slice(0, 16);
}
