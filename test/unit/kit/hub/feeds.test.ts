/** What happens to feed messages between a driver and the outbox. */
import { expect, it, vi } from 'vitest';
import { vendorcamFeeds } from '../../../../src/contract/feeds.ts';
import { assetId } from '../../../../src/contract/identity.ts';
import { channels } from '../../../../src/contract/topics.ts';
import { InvariantBroken } from '../../../../src/platform/errors.ts';
import { defineDriver } from '../../../../src/toolkit/driver/driver.ts';
import { z } from 'zod';
import { aborted } from '../../../../src/platform/time.ts';
import { drone, fix, scriptedDriver } from '../../../fakes/scripted-driver.ts';
import { recordingOutbox } from '../../../support/recording-outbox.ts';
import { hubLab, kit_id } from '../../../support/kit/hub-lab.ts';
import { useFakeTime } from '../../../support/fake-time.ts';
import { texts } from '../../../../src/kit/hub/texts.ts';

useFakeTime();

const id = assetId(kit_id, 'drone-1');
const gps = channels.feed(id, 'gps');
const settle = async (): Promise<unknown> => vi.advanceTimersByTimeAsync(0);

it('drops a message that breaks its schema, logs it once with the key, and publishes the others', async () => {
  const lab = hubLab();
  const driver = scriptedDriver(async (host) => {
    const sink = host.announce(drone());
    for (let index = 0; index < 10; index += 1) sink.publish('gps', { ...fix(), lat: 200 });
    sink.publish('gps', fix());
    await aborted(host.signal);
  });
  void lab.run(driver);
  await settle();
  expect(lab.outbox.on(gps)).toHaveLength(1);
  expect(lab.hub.assets()[0]?.feeds['gps']).toMatchObject({ messages: 1, invalid: 10 });
  expect(lab.log.at('error')).toEqual([texts.feed_invalid]);
  expect(String(lab.log.lines[0]?.facts['reason'])).toContain('lat');
  await lab.stop();
});

it('drops a message that JSON cannot carry', async () => {
  const lab = hubLab();
  const driver = scriptedDriver(async (host) => {
    const sink = host.announce(drone());
    sink.publish('gps', { ...fix(), serial: 12n });
    sink.publish('attitude', { roll: 0, pitch: 0, yaw: 0 });
    await aborted(host.signal);
  });
  void lab.run(driver);
  await settle();
  expect(lab.outbox.on(gps)).toEqual([]);
  expect(lab.hub.assets()[0]?.feeds).toMatchObject({ gps: { invalid: 1 }, attitude: { messages: 1 } });
  await lab.stop();
});

it('does not treat an error of the outbox as an invalid message', async () => {
  const outbox = recordingOutbox();
  const append: typeof outbox.append = (draft) => {
    if (draft.lane === 'feed') throw new InvariantBroken('the epoch has no numbers left');
    return outbox.append(draft);
  };
  const lab = hubLab({ outbox: { append } });
  const driver = scriptedDriver(async (host) => {
    host.announce(drone()).publish('gps', fix());
    await aborted(host.signal);
  });
  void lab.run(driver);
  await settle();
  expect(lab.broken).toEqual([new InvariantBroken('the epoch has no numbers left')]);
  expect(lab.log.at('error')).toEqual([]);
  expect(lab.hub.assets()[0]?.feeds['gps']).toMatchObject({ messages: 0, invalid: 0 });
  await lab.stop();
});

it('drops a feed that the driver does not declare', async () => {
  const lab = hubLab();
  const driver = scriptedDriver(async (host) => {
    const sink = host.announce(drone());
    // @ts-expect-error -- a misspelt feed is a compile error; this is what happens when it is forced
    sink.publish('gsp', fix());
    // @ts-expect-error -- the same with a name that every object has
    sink.publish('constructor', fix());
    await aborted(host.signal);
  });
  void lab.run(driver);
  await settle();
  expect(lab.log.at('error')).toHaveLength(1);
  expect(lab.log.lines[0]?.facts).toEqual({ feed: 'gsp' });
  await lab.stop();
});

it('holds a feed to its rate, with the newest message and the time when it was observed', async () => {
  const lab = hubLab({ rates: { default: 100, gps: 1 } });
  const driver = scriptedDriver(async (host) => {
    const sink = host.announce(drone());
    for (let index = 0; index < 10; index += 1) sink.publish('gps', fix(40 + index));
    sink.publish('attitude', { roll: 1, pitch: 2, yaw: 3 });
    await aborted(host.signal);
  });
  const start_ms = Date.now();
  void lab.run(driver);
  await vi.advanceTimersByTimeAsync(3_000);
  expect(lab.outbox.on(gps)).toMatchObject([{ lat: 40 }, { lat: 49 }]);
  expect(
    lab.outbox.drafts.filter((draft) => draft.channel === gps).map((draft) => draft.stamp?.time_ms),
  ).toEqual([start_ms, start_ms]);
  expect(lab.hub.assets()[0]?.feeds).toMatchObject({
    gps: { messages: 2, coalesced: 8, age_s: 3 },
    attitude: { messages: 1, coalesced: 0 },
  });
  await lab.stop();
});

it('follows new rates at once', async () => {
  const lab = hubLab({ rates: { default: 0.1 } });
  const driver = scriptedDriver(async (host) => {
    const sink = host.announce(drone());
    sink.publish('gps', fix(1));
    sink.publish('gps', fix(2));
    await aborted(host.signal);
  });
  void lab.run(driver);
  await settle();
  lab.hub.setRates({ default: 10 });
  await vi.advanceTimersByTimeAsync(100);
  expect(lab.outbox.on(gps)).toHaveLength(2);
  await lab.stop();
});

it('never limits or merges alarms', async () => {
  const lab = hubLab({ rates: { default: 0 } });
  const driver = defineDriver({
    name: 'camera',
    feeds: vendorcamFeeds,
    options: z.strictObject({}),
    run: async (_options, host) => {
      const sink = host.announce({ asset_key: 'cam', name: 'Cam', type: 'camera', protocol: 'vendorcam' });
      const timestamp = '2026-11-21T10:00:00.000Z';
      for (let index = 0; index < 50; index += 1)
        sink.publish('motion', { detected: index % 2 === 0, timestamp });
      await aborted(host.signal);
    },
  });
  void lab.run(driver);
  await settle();
  const motion = channels.event(assetId(kit_id, 'cam'), 'motion');
  const drafts = lab.outbox.drafts.filter((draft) => draft.channel === motion);
  expect(drafts.map((draft) => draft.lane)).toEqual(Array.from({ length: 50 }, () => 'alarm'));
  await lab.stop();
});

it('keeps its own copy of a message that the driver changes later', async () => {
  const lab = hubLab({ rates: { default: 1 } });
  const driver = scriptedDriver(async (host) => {
    const sink = host.announce(drone());
    const message = fix(1);
    sink.publish('gps', message);
    message.lat = 2;
    sink.publish('gps', message);
    message.lat = 3;
    await aborted(host.signal);
  });
  void lab.run(driver);
  await vi.advanceTimersByTimeAsync(2_000);
  expect(lab.outbox.on(gps)).toMatchObject([{ lat: 1 }, { lat: 2 }]);
  await lab.stop();
});

it('does not grow under a flood: of 100,000 messages in a loop only those of the rate reach the outbox', async () => {
  const lab = hubLab({ rates: { default: 5 } });
  const flood = 100_000;
  const driver = scriptedDriver(async (host) => {
    const sink = host.announce(drone());
    for (let index = 0; index < flood; index += 1) sink.publish('gps', fix(index / flood));
    await aborted(host.signal);
  });
  void lab.run(driver);
  await settle();
  expect(vi.getTimerCount()).toBeLessThanOrEqual(4);
  await vi.advanceTimersByTimeAsync(5_000);
  expect(lab.outbox.on(gps)).toMatchObject([{ lat: 0 }, { lat: (flood - 1) / flood }]);
  expect(lab.hub.assets()[0]?.feeds['gps']).toMatchObject({ messages: 2, coalesced: flood - 2 });
  await lab.stop();
});
