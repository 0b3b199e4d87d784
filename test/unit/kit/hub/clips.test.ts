/** Clips of recordings: on order, and one for the alarms that come together. */
import { expect, it } from 'vitest';
import { z } from 'zod';
import { onvifFeeds } from '../../../../src/contract/feeds.ts';
import type { Recordings } from '../../../../src/kit/hub/assets/clips.ts';
import type { HubOptions } from '../../../../src/kit/hub/hub.ts';
import { texts } from '../../../../src/kit/hub/texts.ts';
import { CommandRefused, notSent } from '../../../../src/platform/errors.ts';
import { aborted } from '../../../../src/platform/time.ts';
import { type AssetSink, defineDriver, type NewFile } from '../../../../src/toolkit/driver/driver.ts';
import { startCommand } from '../../../support/drivers/started-command.ts';
import { eventually } from '../../../support/eventually.ts';
import { testHub } from '../../../support/kit/test-hub.ts';

const minute_ms = 60_000;
const begin_ms = Date.UTC(2026, 10, 21, 10);
const timestamp = (s: number): string => new Date(begin_ms + s * 1_000).toISOString();

/** A camera whose media server records. A minute passes whenever the clock is read. */
async function lab(more: Partial<HubOptions> = {}, recording: Partial<Recordings> = {}) {
  let time_ms = begin_ms;
  const clock = {
    boot_id: 'test',
    stamp: () => ({ time_ms: (time_ms += minute_ms), mono_ms: time_ms, synced: true }),
  };
  const orders: { readonly from_ms: number; readonly event_ms: number; readonly to_ms: number }[] = [];
  const files: NewFile[] = [];
  const gate = Promise.withResolvers<void>();
  const kit = testHub({
    clock,
    configured: ['cameras'],
    files: {
      async add(file) {
        files.push(file);
        return 'the-file';
      },
    },
    recordings: {
      before_s: 10,
      after_s: 5,
      alarms: true,
      async clip(_key, when) {
        orders.push(when);
        await gate.promise;
        return { content: contentOf('an mp4'), from_ms: when.from_ms };
      },
      ...recording,
    },
    ...more,
  });
  let sink: AssetSink<typeof onvifFeeds> | undefined;
  const about = { asset_key: 'a', name: 'Gate', type: 'camera', protocol: 'onvif' } as const;
  const driver = defineDriver({
    name: 'camera',
    feeds: onvifFeeds,
    options: z.strictObject({}),
    run: async (_, host) => {
      host.announce({ ...about, asset_key: 'without stream', name: 'Door' });
      sink = host.announce({ ...about, rtsp_url: 'rtsp://192.0.2.1/a' });
      await aborted(host.signal);
    },
  });
  void kit.run(driver, 'cameras');
  await eventually('it is announced', () => sink !== undefined);
  const id = kit.hub.assets().find(({ name }) => name === 'Gate')?.id ?? '';
  return {
    ...kit,
    id,
    orders,
    files,
    open: () => gate.resolve(),
    alarm: (s: number) => sink?.publish('motion', { detected: true, timestamp: timestamp(s) }),
    order: (payload: object) => {
      const found = kit.hub.findCommand(id, 'clip');
      return startCommand('command' in found ? found.command : undefined, { payload });
    },
  };
}

async function* contentOf(text: string): AsyncGenerator<Uint8Array> {
  yield Buffer.from(text);
}

it('makes one clip of the alarms that come until it is complete, and names them', async () => {
  const camera = await lab();
  camera.alarm(1);
  await eventually('it is fetched', () => camera.orders.length === 1);
  camera.alarm(2);
  camera.open();
  await eventually('it is a file', () => camera.files.length === 1);
  const [order] = camera.orders;
  if (!order) throw new Error('nothing was ordered');
  const { from_ms, event_ms, to_ms } = order;
  expect([event_ms - from_ms, to_ms - event_ms]).toEqual([10_000, 5_000]);
  expect(camera.files[0]).toMatchObject({
    kind: 'clip',
    asset_key: 'a',
    content_type: 'video/mp4',
    at_ms: from_ms,
    alarms: [1, 2].map((s) => ({ feed: 'motion', timestamp: timestamp(s) })),
  });
  camera.alarm(3);
  await eventually('the next is another', () => camera.files.length === 2);
});

it('says why an alarm has no clip, and has none where the policy forbids the command', async () => {
  const refused = async (): Promise<never> => Promise.reject(new CommandRefused('no recording'));
  const camera = await lab({}, { clip: refused });
  camera.alarm(1);
  await eventually('it is logged', () =>
    camera.log.lines.some(({ sentence }) => sentence === texts.alarm_clip_missing),
  );
  await camera.stop();
  const other = await lab({ allow: () => 'not here' });
  other.alarm(1);
  await other.stop();
  expect(other.orders).toEqual([]);
  const without = await lab({}, { alarms: false });
  without.alarm(1);
  await without.stop();
  expect(without.orders).toEqual([]);
});

it('takes orders for cameras with a stream: until now, or around a moment of the last day', async () => {
  const camera = await lab();
  camera.open();
  const door = camera.hub.assets().find(({ name }) => name === 'Door')?.id ?? '';
  expect(camera.hub.commandsOf(door)).toEqual([]);
  const done = await camera.order({ before_s: 30 }).done;
  expect(done).toMatchObject({ file_id: 'the-file' });
  expect(camera.orders[0]?.to_ms).toBe(camera.orders[0]?.event_ms);
  const at = timestamp(0);
  await camera.order({ at }).done;
  expect(camera.orders[1]).toEqual({
    from_ms: begin_ms - 10_000,
    event_ms: begin_ms,
    to_ms: begin_ms + 5_000,
  });
  expect(camera.files.every(({ alarms }) => alarms === undefined)).toBe(true);
  for (const payload of [
    { before_s: 0 },
    { before_s: 100, after_s: 100 },
    { at: '2026-11-19T10:00:00Z' },
    { at: '2027-11-19T10:00:00Z' },
  ])
    await expect(camera.order(payload).done).rejects.toThrow(notSent(texts.clip_times(120)));
});
