/** A camera on a vehicle: what it is asked for, and what becomes of its answers. */
import { expect, it } from 'vitest';
import type { Decoded, Messages } from '../../../../drivers/mavlink/messages.ts';
import { Part } from '../../../../drivers/mavlink/part.ts';
import type { AssetDescription } from '../../../../src/driver/driver.ts';

const sink = {
  publish: () => undefined,
  setPosition: () => undefined,
  setOnline: () => undefined,
  remove: () => undefined,
};

function camera() {
  const announced: AssetDescription[] = [];
  const asked: number[] = [];
  const part = new Part({
    parent_key: 'mavlink:1',
    parent_name: 'Falcon',
    compid: 100,
    part: 'camera',
    type: 'camera',
    now_ms: 0,
    offline_after_ms: 600_000,
    announce: (about) => {
      announced.push(about);
      return sink;
    },
    ask: (msgid) => void asked.push(msgid),
  });
  return { part, announced, asked };
}

function stream(change: Partial<Messages['VIDEO_STREAM_INFORMATION']>): Decoded {
  const size = { framerate: 30, bitrate: 0, resolution_h: 1920, resolution_v: 1080, rotation: 0, hfov: 0 };
  const about = { flags: 1, stream_id: 1, count: 1, type: 0, name: '', encoding: 1, camera_device_id: 0 };
  const uri = 'rtsp://10.0.0.5:8554/main';
  return { name: 'VIDEO_STREAM_INFORMATION', fields: { ...size, ...about, uri, ...change } };
}

it('offers its first stream over RTSP, once', () => {
  const { part, announced } = camera();
  part.take(stream({}), 1);
  part.take(stream({ uri: 'rtsp://10.0.0.5:8554/second', stream_id: 2 }), 2);
  expect(announced.map(({ rtsp_url }) => rtsp_url)).toEqual([undefined, 'rtsp://10.0.0.5:8554/main']);
});

it.each([
  ['of another kind', { type: 1, uri: '5600' }],
  ['that is no address', { uri: '5600' }],
  ['of another protocol', { uri: 'http://10.0.0.5/' }],
])('a stream %s is not offered', (_title, change) => {
  const { part, announced } = camera();
  part.take(stream(change), 1);
  expect(announced).toHaveLength(1);
});

it('is asked three times at most what it is and what it shows', () => {
  const { part, asked } = camera();
  for (let now_ms = 0; now_ms < 20_000; now_ms += 500) part.tick(now_ms);
  expect(asked).toEqual([259, 269, 259, 269, 259, 269]);
});
