/** Pictures of alarms: one for those that come together, bounded, and never left out without a word. */
import { expect, it } from 'vitest';
import { z } from 'zod';
import { alarm_picture_bytes_max, onvifFeeds } from '../../../../src/contract/feeds.ts';
import type { HubOptions } from '../../../../src/kit/hub/hub.ts';
import { texts } from '../../../../src/kit/hub/texts.ts';
import { DeviceUnreachable } from '../../../../src/platform/errors.ts';
import { aborted } from '../../../../src/platform/time.ts';
import {
  type AssetSink,
  defineDriver,
  type NewFile,
  type TakePicture,
} from '../../../../src/toolkit/driver/driver.ts';
import { eventually } from '../../../support/eventually.ts';
import { testHub } from '../../../support/kit/test-hub.ts';

const timestamp = (s: number): string => new Date(Date.UTC(2026, 10, 21, 10, 0, s)).toISOString();

/** A hub with one camera, whose clock the test moves. */
async function lab(takeAlarmPicture: TakePicture | undefined, more: Partial<HubOptions> = {}) {
  let passed_ms = 0;
  const clock = {
    boot_id: 'test',
    stamp: () => ({ time_ms: Date.UTC(2026, 10, 21), mono_ms: 1e6 + passed_ms, synced: true }),
  };
  const kit = testHub({ clock, configured: ['cameras'], ...more });
  let sink: AssetSink<typeof onvifFeeds> | undefined;
  const about = { asset_key: 'a', name: 'Gate', type: 'camera', protocol: 'onvif' } as const;
  const driver = defineDriver({
    name: 'camera',
    feeds: onvifFeeds,
    options: z.strictObject({}),
    run: async (_, host) => {
      sink = host.announce({
        ...about,
        takeAlarmPicture,
        takePicture: async () => Buffer.from('whole still'),
      });
      await aborted(host.signal);
    },
  });
  void kit.run(driver, 'cameras');
  await eventually('it is announced', () => sink !== undefined);
  const pictures = () => kit.outbox.drafts.filter(({ channel }) => channel.endsWith('/alarm_picture'));
  return {
    log: kit.log,
    stop: kit.stop,
    pictures,
    pass: (ms: number) => {
      passed_ms += ms;
    },
    alarm: (s: number, detected = true) => sink?.publish('motion', { detected, timestamp: timestamp(s) }),
    see: (s: number) =>
      sink?.publish('ai_detection', { detected: true, types: ['people'], timestamp: timestamp(s) }),
    settled: async (count: number) => {
      await eventually(`${count} are published`, () => pictures().length === count);
      return pictures().at(-1)?.data;
    },
  };
}

it('sends one picture for the alarms that come together, after them and behind all else, and none for their end', async () => {
  const camera = await lab(async () => Buffer.from('jpeg'));
  camera.alarm(1);
  camera.see(1);
  const alarms = [
    { feed: 'motion', timestamp: timestamp(1) },
    { feed: 'ai_detection', timestamp: timestamp(1) },
  ];
  const taken_at = '2026-11-21T00:00:00.000Z';
  expect(await camera.settled(1)).toEqual({ alarms, jpeg: 'anBlZw==', taken_at, reason: null });
  expect(camera.pictures()[0]).toMatchObject({ lane: 'feed', is_behind: true });
  camera.pass(20_000);
  camera.alarm(2, false);
  camera.alarm(3);
  expect(await camera.settled(2)).toMatchObject({ alarms: [{ feed: 'motion', timestamp: timestamp(3) }] });
});

it.each([
  [
    'is too large',
    async () => Buffer.alloc(alarm_picture_bytes_max + 1),
    texts.alarm_picture_large(alarm_picture_bytes_max + 1, alarm_picture_bytes_max),
  ],
  ['fails', async () => Promise.reject(new DeviceUnreachable('HTTP status 500')), 'HTTP status 500'],
] as const)('says why an alarm has no picture where it %s', async (_what, take, reason) => {
  const camera = await lab(take);
  camera.alarm(1);
  expect(await camera.settled(1)).toMatchObject({ jpeg: null, taken_at: null, reason });
  expect(camera.log.at('info')).toContain(texts.alarm_picture_missing);
});

it('takes one picture in ten seconds, and of a kit one a minute after a series', async () => {
  let taken = 0;
  const camera = await lab(async () => {
    taken += 1;
    return Buffer.from('jpeg');
  });
  camera.alarm(1);
  await camera.settled(1);
  camera.pass(4_000);
  camera.alarm(5);
  expect(await camera.settled(2)).toMatchObject({ jpeg: null, reason: texts.alarm_picture_gap(4) });
  for (let count = 3; count <= 40; count += 1) {
    camera.pass(10_000);
    camera.alarm(count);
    await camera.settled(count);
  }
  expect(taken).toBe(36);
  expect(camera.pictures().at(-1)?.data?.['reason']).toBe(texts.alarm_pictures_many);
});

it('takes none on a metered link, and none where the local policy forbids pictures; the log says so once', async () => {
  let off: string | undefined = 'the link is metered';
  let allowed: true | string = true;
  let taken = 0;
  const take = async () => {
    taken += 1;
    return Buffer.from('jpeg');
  };
  const camera = await lab(take, { alarmPicturesOff: () => off, allow: () => allowed });
  camera.alarm(1);
  camera.alarm(2);
  expect(camera.log.at('info').filter((line) => line === texts.alarm_pictures_off)).toHaveLength(1);
  off = undefined;
  allowed = 'snapshot is disabled on this kit';
  camera.alarm(3);
  allowed = true;
  camera.alarm(4);
  expect(await camera.settled(1)).toMatchObject({ alarms: [{ timestamp: timestamp(4) }] });
  expect(taken).toBe(1);
  expect(camera.log.at('info')).toContain(texts.alarm_pictures_on);
});

it('sends no pictures of a camera whose configuration asks for none', async () => {
  const camera = await lab(undefined);
  camera.alarm(1);
  camera.alarm(2, false);
  await camera.stop();
  expect(camera.pictures()).toEqual([]);
});

it('keeps the whole still as a file for the cloud where that is asked for, with the alarms and the small picture', async () => {
  const added: NewFile[] = [];
  const files = { add: async (file: NewFile) => `file-${added.push(file)}` };
  let small = Buffer.from('jpeg');
  const camera = await lab(async () => small, { files, keepsStills: () => true });
  camera.alarm(1);
  await eventually('it is kept', () => added.length === 1);
  expect(added[0]).toEqual({
    kind: 'alarm_still',
    asset_key: 'a',
    name: 'Gate 2026-11-21T00-00-00.jpg',
    content_type: 'image/jpeg',
    at_ms: Date.UTC(2026, 10, 21),
    content: { bytes: Buffer.from('whole still') },
    thumbnail: small,
    alarms: [{ feed: 'motion', timestamp: timestamp(1) }],
  });
  // Of alarms that come too often none; where the small one is too large all the more.
  camera.pass(4_000);
  camera.alarm(5);
  await camera.settled(2);
  small = Buffer.alloc(alarm_picture_bytes_max + 1);
  camera.pass(10_000);
  camera.alarm(15);
  await eventually('it is kept', () => added.length === 2);
  expect(added[1]).toMatchObject({ thumbnail: undefined, alarms: [{ timestamp: timestamp(15) }] });
});
