/** The guard of logins: refused credentials are not tried again too soon, over restarts too, and new ones at once. */
import { describe, expect, it } from 'vitest';
import { retry_limits } from '../../../../src/toolkit/device/retry.ts';
import { credentialsHash, LoginGuard, type LoginRecord } from '../../../../src/toolkit/device/login-guard.ts';

const minute_ms = 60_000;
const limits = { may_pass_ms: retry_limits.may_pass_ms, refused_ms: 10 * minute_ms };
const password = credentialsHash('kit', 'secret');

/** The same memory for every guard, as over restarts. */
function kept() {
  const clock = { now_ms: 1_000_000 };
  const memory = {
    facts: {} as LoginRecord,
    async change(change: Partial<LoginRecord>) {
      this.facts = { ...this.facts, ...change };
    },
  };
  const guard = (): LoginGuard => new LoginGuard({ memory, limits, now_ms: () => clock.now_ms });
  return { clock, memory, guard };
}

describe('LoginGuard', () => {
  it('admits no refused credentials for ten minutes, also after a restart', async () => {
    const { clock, guard } = kept();
    await guard().refuse(password, 'login failed');
    expect(() => guard().admit(password)).toThrow('login failed');
    expect(() => guard().admit(credentialsHash('kit', 'corrected'))).not.toThrow();
    clock.now_ms += 10 * minute_ms;
    expect(() => guard().admit(password)).not.toThrow();
  });

  it('marks the refusal of credentials that were accepted before as passing, and admits each retry of the session', async () => {
    const { clock, guard } = kept();
    await guard().accept(password);
    for (const pause_ms of retry_limits.may_pass_ms) {
      expect(guard().mayPass(password)).toBe(true);
      expect(await guard().refuse(password, 'locked')).toMatchObject({ may_pass: true });
      expect(() => guard().admit(password)).toThrow('locked');
      // Up to half of a pause is taken off at random.
      clock.now_ms += pause_ms / 2;
      expect(() => guard().admit(password)).not.toThrow();
    }
    expect(guard().mayPass(password)).toBe(false);
  });

  it('forgets refusals once the credentials are accepted', async () => {
    const { guard, memory } = kept();
    await guard().refuse(password, 'login failed');
    await guard().accept(password);
    expect(() => guard().admit(password)).not.toThrow();
    expect(JSON.stringify(memory.facts)).not.toContain('secret');
  });
});
