/** Pictures of cameras: asked for rarely, kept within a limit, refused by policy. */
import { describe, expect, it } from 'vitest';
import { Asset } from '../../../../src/kit/hub/assets/asset.ts';
import { kept_bytes_max, picture_gap_ms, Pictures } from '../../../../src/kit/hub/assets/pictures.ts';
import type { NewFile } from '../../../../src/toolkit/driver/driver.ts';
import type { Health } from '../../../../src/toolkit/driver/health.ts';
import { CommandRefused, DeviceUnreachable } from '../../../../src/platform/errors.ts';
import { texts } from '../../../../src/kit/hub/texts.ts';
import { recordingOutbox } from '../../../support/recording-outbox.ts';

const jpeg = (bytes: number): Buffer => Buffer.alloc(bytes, 1);

function lab() {
  let now_ms = 1_000_000;
  const clock = { boot_id: '', stamp: () => ({ time_ms: now_ms, mono_ms: now_ms, synced: true }) };
  const stopping = new AbortController();
  const pathOf = (id: string): string => `/at/${id}`;
  const outcomes: string[] = [];
  const onOutcome = (_id: string, { state }: Health): void => void outcomes.push(state);
  const added: NewFile[] = [];
  const files = {
    add: async (file: NewFile) => `file-${added.push(file)}`,
  };
  const state = { keepsStills: false };
  const keepsStills = (): boolean => state.keepsStills;
  const { signal } = stopping;
  const pictures = new Pictures({ clock, pathOf, files, keepsStills, onOutcome, signal });
  let asked = 0;
  return {
    pictures,
    added,
    state,
    outcomes,
    clock,
    stopping,
    pass: (ms: number) => {
      now_ms += ms;
    },
    asked: () => asked,
    camera: async () => {
      asked += 1;
      return jpeg(10);
    },
    largeCamera: async () => {
      asked += 1;
      return jpeg(kept_bytes_max / 2);
    },
    refuse: async (): Promise<never> => {
      asked += 1;
      throw new DeviceUnreachable('is dark');
    },
  };
}

describe('Pictures', () => {
  it('serves the last picture while it is young enough, and takes a new one afterwards', async () => {
    const { pictures, camera, asked, pass } = lab();
    const first = await pictures.get('a', camera, 10_000);
    pass(9_000);
    expect(await pictures.get('a', camera, 10_000)).toEqual(first);
    pass(2_000);
    expect((await pictures.get('a', camera, 10_000)).taken_ms).toBe(first.taken_ms + 11_000);
    expect(asked()).toBe(2);
  });

  it('asks a camera once for clients that come together, and once within the gap', async () => {
    const { pictures, camera, asked, pass } = lab();
    const [one, two] = await Promise.all([pictures.get('a', camera, 0), pictures.get('a', camera, 0)]);
    expect(one).toEqual(two);
    pass(picture_gap_ms - 1);
    await pictures.get('a', camera, 0);
    expect(asked()).toBe(1);
    pass(1);
    await pictures.get('a', camera, 0);
    expect(asked()).toBe(2);
  });

  it('repeats a failure within the gap without asking the camera again', async () => {
    const { pictures, refuse, camera, asked, pass } = lab();
    await expect(pictures.get('a', refuse, 0)).rejects.toThrow('is dark');
    await expect(pictures.get('a', camera, 0)).rejects.toThrow('is dark');
    expect(asked()).toBe(1);
    pass(picture_gap_ms);
    expect((await pictures.get('a', camera, 0)).jpeg).toHaveLength(10);
  });

  // Frigate #15104, go2rtc #1498: what worked once must not be shown as working for ever; one late frame is no outage.
  it('reports a camera that gives no picture twice in a row, and the next picture', async () => {
    const { pictures, refuse, camera, outcomes, pass } = lab();
    for (const take of [refuse, camera, refuse, refuse, camera]) {
      await pictures.get('a', take, 0).catch(() => undefined);
      pass(picture_gap_ms);
    }
    expect(outcomes).toEqual(['works', 'fails', 'works']);
  });

  it('asks four cameras at the same time at most', async () => {
    const { pictures } = lab();
    const { promise, resolve } = Promise.withResolvers<Buffer>();
    const waiting = ['a', 'b', 'c', 'd'].map(async (id) => pictures.get(id, async () => promise, 0));
    await expect(pictures.get('e', async () => promise, 0)).rejects.toThrow(texts.pictures_busy);
    resolve(jpeg(1));
    expect(await Promise.all(waiting)).toHaveLength(4);
  });

  it('keeps two places for others from cameras whose last picture failed', async () => {
    const { pictures, refuse, camera, pass } = lab();
    const hostile = ['a', 'b', 'c', 'd'];
    for (const id of hostile) await expect(pictures.get(id, refuse, 0)).rejects.toThrow('is dark');
    pass(picture_gap_ms);
    const { promise, resolve } = Promise.withResolvers<Buffer>();
    const asked = hostile.map(async (id) => pictures.get(id, async () => promise, 0));
    await expect(asked[2]).rejects.toThrow(texts.pictures_busy);
    await expect(asked[3]).rejects.toThrow(texts.pictures_busy);
    expect((await pictures.get('e', camera, 0)).jpeg).toHaveLength(10);
    resolve(jpeg(1));
    await Promise.all(asked.slice(0, 2));
    // Its picture has come: it is one of the others again.
    pass(picture_gap_ms);
    const again = ['b', 'c', 'd', 'a'].map(async (id) => pictures.get(id, async () => jpeg(1), 0));
    expect(await Promise.all(again)).toHaveLength(4);
  });

  it('keeps the newest pictures within its limit', async () => {
    const { pictures, largeCamera, asked, pass } = lab();
    for (const id of ['a', 'b', 'c']) await pictures.get(id, largeCamera, 0);
    pass(picture_gap_ms);
    const other = lab();
    await pictures.get('c', other.refuse, 60_000);
    await pictures.get('b', other.refuse, 60_000);
    expect(other.asked()).toBe(0);
    await pictures.get('a', largeCamera, 60_000);
    expect(asked()).toBe(4);
  });

  it('ends a request when the hub ends', async () => {
    const { pictures, stopping } = lab();
    let ended = false;
    const take = async (signal: AbortSignal): Promise<Buffer> => {
      signal.addEventListener('abort', () => {
        ended = true;
      });
      return new Promise(() => undefined);
    };
    const got = pictures.get('a', take, 0);
    stopping.abort();
    await expect(got).rejects.toThrow(DeviceUnreachable);
    expect(ended).toBe(true);
  });

  it('gives clients no picture that the local policy forbids, and none of an offline camera', async () => {
    const { pictures, camera, clock, stopping, asked } = lab();
    const facts = { id: 'a', asset_key: 'a', name: 'Gate', type: 'camera', protocol: 'onvif' } as const;
    const more = { vendor: null, model: null, firmware: null, parent_id: null, whep_url: null };
    const parts = { outbox: recordingOutbox(), clock, observe: () => undefined, signal: stopping.signal };
    const asset = new Asset(parts, { ...facts, ...more, feeds: [], driver: 'cameras' }, 0);
    asset.takePicture = camera;
    const [command] = pictures.commandOf(asset);
    if (!command) throw new Error('it gives pictures');
    const found = { asset: asset.target(), command };
    await expect(pictures.of(asset, { refusal: 'no' }, 0)).rejects.toThrow(CommandRefused);
    await expect(pictures.of(asset, found, 0)).rejects.toThrow(DeviceUnreachable);
    expect(asked()).toBe(0);
    asset.setOnline(true);
    expect((await pictures.of(asset, found, 0)).jpeg).toHaveLength(10);
  });

  it('become files of the cloud when they are ordered, once each, where that is asked for', async () => {
    const { pictures, camera: takePicture, state, added, pass, stopping } = lab();
    const facts = { id: 'a', asset_key: 'key', name: 'Gate', type: 'camera', protocol: 'onvif' } as const;
    const more = { vendor: null, model: null, firmware: null, parent_id: null, whep_url: null };
    const [command] = pictures.commandOf({
      facts: { ...facts, ...more, feeds: [], driver: 'cameras' },
      takePicture,
    });
    const { signal } = stopping;
    const order = async (): Promise<unknown> =>
      command?.read({}).run({ signal, progress: () => undefined, remaining_ms: () => 1e4 });
    expect(await order()).not.toHaveProperty('file_id');
    state.keepsStills = true;
    pass(picture_gap_ms);
    expect(await Promise.all([order(), order()])).toMatchObject([
      { path: '/at/a', file_id: 'file-1', bytes: 10 },
      { file_id: 'file-1' },
    ]);
    expect(added).toMatchObject([
      { kind: 'still', asset_key: 'key', name: 'Gate 1970-01-01T00-16-42.jpg', content: { bytes: jpeg(10) } },
    ]);
  });
});
