/** What webhooks cost a kit on which nothing happens. */
import { expect, it } from 'vitest';
import { AddressPolicy } from '../../../../src/cloud/webhooks/address-policy.ts';
import { Deliverer } from '../../../../src/cloud/webhooks/deliverer.ts';
import { eventually, letPass } from '../../../support/eventually.ts';
import { recordingLog } from '../../../support/recording-log.ts';

it('asks the database nothing while no message waits, and at once when it is woken', async () => {
  const ends = new AbortController();
  let looks = 0;
  const never = async (): Promise<never> => Promise.reject(new Error('nothing is due'));
  const deliverer = new Deliverer({
    store: {
      noteSilences: async () => false,
      dueWebhooks: async () => {
        looks += 1;
        return [];
      },
      nextDue: async () => undefined,
      claimMessages: never,
      settleMessages: never,
    },
    log: recordingLog(),
    policy: new AddressPolicy({ allow: [], allow_http: false }),
    timeout_ms: 1_000,
    disable_after_ms: 1_000,
    now: Date.now,
    random: () => 0,
  });
  const running = deliverer.run(ends.signal);
  await letPass(2_500);
  expect(looks).toBe(1);
  deliverer.wake();
  await eventually('it looks again', () => looks === 2);
  ends.abort();
  await running;
});
