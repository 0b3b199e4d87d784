/** What happens to feed messages between a driver and the outbox. */
import { expect, it, vi } from 'vitest';
import { assetId } from '../../../../src/contract/identity.ts';
import { channels } from '../../../../src/contract/topics.ts';
import { drone, fix } from '../../../fakes/scripted-driver.ts';
import { kit_id } from '../../../support/kit/hub-lab.ts';
import { testHub } from '../../../support/kit/test-hub.ts';
import { useFakeTime } from '../../../support/fake-time.ts';

useFakeTime();

const id = assetId(kit_id, 'drone-1');
const gps = channels.feed(id, 'gps');

it('keeps its own copy of a message that the driver changes later', async () => {
  const lab = testHub({ rates: { default: 1 } });
  const sink = (await lab.hostOf()).announce(drone());
  const message = fix(1);
  sink.publish('gps', message);
  message.lat = 2;
  sink.publish('gps', message);
  message.lat = 3;
  await vi.advanceTimersByTimeAsync(2_000);
  expect(lab.outbox.on(gps)).toMatchObject([{ lat: 1 }, { lat: 2 }]);
});

it('does not grow under a flood: of 100,000 messages in a loop only those of the rate reach the outbox', async () => {
  const lab = testHub({ rates: { default: 5 } });
  const flood = 100_000;
  const sink = (await lab.hostOf()).announce(drone());
  for (let index = 0; index < flood; index += 1) sink.publish('gps', fix(index / flood));
  expect(vi.getTimerCount()).toBeLessThanOrEqual(4);
  await vi.advanceTimersByTimeAsync(5_000);
  expect(lab.outbox.on(gps)).toMatchObject([{ lat: 0 }, { lat: (flood - 1) / flood }]);
  expect(lab.hub.assets()[0]?.feeds['gps']).toMatchObject({ messages: 2, coalesced: flood - 2 });
});
