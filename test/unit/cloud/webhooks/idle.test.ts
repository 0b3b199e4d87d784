/** What webhooks cost a kit on which nothing happens. */
import { expect, it, vi } from 'vitest';
import { AddressPolicy } from '../../../../src/cloud/webhooks/address-policy.ts';
import { Deliverer } from '../../../../src/cloud/webhooks/deliverer.ts';
import { useFakeTime } from '../../../support/fake-time.ts';
import { recordingLog } from '../../../support/recording-log.ts';

useFakeTime();

it('asks the database nothing while no message waits, and at once when it is woken', async () => {
  const ends = new AbortController();
  let looks = 0;
  const never = async (): Promise<never> => Promise.reject(new Error('nothing is due'));
  const deliverer = new Deliverer({
    store: {
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
  await vi.advanceTimersByTimeAsync(20_000);
  expect(looks).toBe(1);
  deliverer.wake();
  await vi.advanceTimersByTimeAsync(0);
  expect(looks).toBe(2);
  ends.abort();
  await running;
});
