/** The end of what a look at the shared subscription found. */
import { expect, it, vi } from 'vitest';
import { channels, upTopic } from '../../../../src/contract/topics.ts';
import { ShareCheck } from '../../../../src/cloud/broker/share-check.ts';
import { texts } from '../../../../src/cloud/texts.ts';
import { kit_id } from '../../../support/contract-samples.ts';
import { useFakeTime } from '../../../support/fake-time.ts';

useFakeTime();

it('reports that nothing arrives, and its end once something does', async () => {
  const reports: (string | undefined)[] = [];
  const check = new ShareCheck({
    share: 'kits',
    times: { quiet_ms: 60_000, peek_ms: 20_000, settle_ms: 15_000 },
    random: () => 1,
    isReceived: async () => true,
    hasOnlineKits: async () => true,
    report: (fault) => reports.push(fault),
  });
  const ends = new AbortController();
  const session = {
    subscribe: async () => undefined,
    unsubscribe: async () => undefined,
    gives_retained: true,
  };
  const running = check.run(session, ends.signal);
  await vi.advanceTimersByTimeAsync(85_000);
  expect(reports).toEqual([texts.nothing_arrives]);
  const payload = Buffer.from('{}');
  await check.pass({ topic: upTopic(kit_id, channels.telemetry), payload, retained: false });
  await vi.advanceTimersByTimeAsync(60_000);
  expect(reports).toEqual([texts.nothing_arrives, undefined]);
  ends.abort();
  await running;
});
