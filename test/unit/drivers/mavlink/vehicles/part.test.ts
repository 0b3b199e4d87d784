/** A camera on a vehicle: the requests to it, and the use of its answers. */
import { describe, expect, it } from 'vitest';
import type { Decoded, Messages } from '../../../../../drivers/mavlink/wire/messages.ts';
import { Part } from '../../../../../drivers/mavlink/vehicles/part.ts';
import type { AssetDescription } from '../../../../../src/toolkit/driver/driver.ts';
import { texts } from '../../../../../src/toolkit/driver/texts.ts';

const sink = {
  publish: () => undefined,
  setPosition: () => undefined,
  setOnline: () => undefined,
  setHealth: () => undefined,
  remove: () => undefined,
};

function camera() {
  const announced: AssetDescription[] = [];
  const requested: (readonly number[])[] = [];
  const streams: number[] = [];
  const refused: string[] = [];
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
    request: ({ command, param1, param2 }) => {
      requested.push([command, param1, param2]);
      if (param1 === 269) streams.push(param2);
      if (command === 2504) streams.push(param1);
    },
    onRefused: (_address, reason) => void refused.push(reason),
  });
  return { part, announced, requested, streams, refused };
}

function stream(change: Partial<Messages['VIDEO_STREAM_INFORMATION']>): Decoded {
  const size = { framerate: 30, bitrate: 0, resolution_h: 1920, resolution_v: 1080, rotation: 0, hfov: 0 };
  const about = { flags: 1, stream_id: 1, count: 1, type: 0, name: '', encoding: 1, camera_device_id: 0 };
  const uri = 'rtsp://10.0.0.5:8554/main';
  return { name: 'VIDEO_STREAM_INFORMATION', fields: { ...size, ...about, uri, ...change } };
}

describe('Camera on a vehicle', () => {
  it('offers its first RTSP stream once', () => {
    const { part, announced } = camera();
    part.receive(stream({}), 1);
    part.receive(stream({ uri: 'rtsp://10.0.0.5:8554/second', stream_id: 2 }), 2);
    expect(announced.map(({ rtsp_url }) => rtsp_url)).toEqual([undefined, 'rtsp://10.0.0.5:8554/main']);
  });

  it.each([
    ['of another kind', { type: 1, uri: '5600' }],
    ['without an address', { uri: '5600' }],
    ['on this machine', { uri: 'rtsp://127.0.0.1:9997/main' }],
    ['on this machine by another name', { uri: 'rtsp://[::ffff:127.0.0.1]/main' }],
    ['with instructions to the media server', { uri: 'rtsp://10.0.0.5/main#transport=ws://127.0.0.1:1' }],
    ['at a name, which may lead to this machine', { uri: 'rtsp://camera.example.com:8554/main' }],
    ['at an address in another spelling', { uri: 'rtsp://0x0a000005/main' }],
    ['without a host', { uri: 'rtsp:@127.0.0.1/main' }],
    ['of another protocol', { uri: 'http://10.0.0.5/' }],
  ])('does not offer a stream %s', (_title, change) => {
    const { part, announced } = camera();
    part.receive(stream(change), 1);
    expect(announced.map(({ rtsp_url }) => rtsp_url)).toEqual([undefined, undefined]);
    expect(announced[1]?.health).toMatchObject({ stream: { state: 'fails' } });
  });

  it('is asked for each stream that was lost, and then no more', () => {
    const { part, streams } = camera();
    part.tick(0);
    part.receive(stream({ count: 3, stream_id: 2 }), 1);
    part.tick(2_000);
    part.receive(stream({ count: 3, stream_id: 1 }), 2_001);
    part.tick(4_000);
    part.receive(stream({ count: 3, stream_id: 3 }), 4_001);
    part.tick(6_000);
    expect(streams).toEqual([0, 1, 3, 3]);
  });

  it('reports a stream that it does not offer, with the reason', () => {
    const { part, refused } = camera();
    part.receive(stream({ uri: 'rtsp://2130706433:9997/main' }), 1);
    part.receive(stream({ uri: 'rtsp://10.0.0.5/main#x' }), 2);
    part.receive(stream({ uri: 'rtsp://camera.example.com/main' }), 3);
    expect(refused).toEqual([texts.on_gateway, texts.has_fragment, texts.is_name]);
  });

  it('is requested at most four times for its identity and its stream, each second time as older ones know it', () => {
    const { part, requested } = camera();
    for (let now_ms = 0; now_ms < 20_000; now_ms += 500) part.tick(now_ms);
    const newer = [
      [512, 259, 0],
      [512, 269, 0],
    ];
    const older = [
      [521, 1, 1],
      [2504, 0, 1],
    ];
    expect(requested).toEqual([...newer, ...older, ...newer, ...older]);
  });
});
