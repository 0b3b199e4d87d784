/** Cameras of a vehicle: which stream is shown, what is said where none can be, and those that the autopilot answers for. */
import { describe, expect, it } from 'vitest';
import { texts } from '../../../../../drivers/mavlink/vehicles/texts.ts';
import type { FakeDrone } from '../../../../fakes/fake-drone.ts';
import { sleep } from '../../../../../src/platform/time.ts';
import { eventually } from '../../../../support/eventually.ts';
import { drone_key, type MavlinkLab, mavlinkLab } from '../mavlink-lab.ts';

type Streams = NonNullable<FakeDrone['proxied'][number]['streams']>;
const camera_key = `${drone_key}:component-100`;
const video = (n: number): string => `rtsp://192.168.144.25:8554/video${n}`;
// As cameras with two lenses report them (qgroundcontrol#5260, MAVSDK-Proto#330), the thermal one first.
const thermal = { stream_id: 2, flags: 1 | 2, name: 'Thermal', uri: video(2) };
const daylight = { stream_id: 1, flags: 1, name: 'Daylight', uri: video(1) };
const two = [thermal, daylight];
const dual = { vendor: 'ACME', model: 'Dual', streams: two };

/** Runs the driver beside a media server that takes every stream, and remembers them by asset. */
async function flying(
  about: Partial<Pick<FakeDrone, 'camera' | 'proxied'>>,
  test: (lab: MavlinkLab, wanted: ReadonlyMap<string, string | null>, drone: FakeDrone) => Promise<void>,
  options: object = {},
): Promise<void> {
  const wanted = new Map<string, string | null>();
  const lab = await mavlinkLab(
    { ...options },
    {
      streams: {
        want: (key, url) => void wanted.set(key, url),
        urlOf: () => null,
        healthOf: () => ({ state: 'works' }),
      },
    },
  );
  try {
    const drone = await lab.fly();
    Object.assign(drone, about);
    await lab.until('online');
    if (drone.camera) drone.beatCamera();
    await test(lab, wanted, drone);
  } finally {
    await lab.stop();
  }
}

const healthOf = (lab: MavlinkLab, key = camera_key) =>
  lab.hub.assets().find((asset) => asset.key === key)?.health.stream;

describe.concurrent('The stream of a camera', () => {
  it.each<readonly [title: string, streams: Streams, options: object, url: string]>([
    ['not the thermal one', two, {}, video(1)],
    ['the thermal one where that is wanted', two, { stream: 'thermal' }, video(2)],
    [
      'the one with the wanted name',
      [thermal, { ...daylight, name: 'Zoom', flags: 0 }, { uri: video(3), stream_id: 3 }],
      { stream: 'zoom' },
      video(1),
    ],
    ['the one with the wanted number', two, { stream: 2 }, video(2)],
    ['the one that its vehicle wants', two, { vehicles: { [drone_key]: { stream: 2 } } }, video(2)],
    ['the one that there is', [thermal], {}, video(2)],
    [
      'the one that runs',
      [
        { ...daylight, flags: 0 },
        { uri: video(3), stream_id: 3 },
      ],
      {},
      video(3),
    ],
    ['at a name of mDNS', [{ uri: 'rtsp://camera.local:8554/a' }], {}, 'rtsp://camera.local:8554/a'],
    ['at a plain name', [{ uri: 'rtsp://Siyi-A8/main.264' }], {}, 'rtsp://Siyi-A8:554/main.264'],
    ['RTSP rather than UDP', [{ type: 1, uri: '5600' }, daylight], {}, video(1)],
  ])('is %s', async (_title, streams, options, url) => {
    await flying(
      { camera: { vendor: 'ACME', model: 'Dual', streams } },
      async (lab, wanted) => {
        await eventually('the media server has it', () => wanted.get(camera_key) === url);
        expect(healthOf(lab)).toMatchObject({ state: 'works' });
      },
      options,
    );
  });

  it.each<readonly [title: string, stream: Streams[number], state: string, reason: string]>([
    // What OpenHD, QGroundControl's default and most analogue bridges send.
    ['RTP', { type: 1, uri: '5600' }, 'fails', texts.not_rtsp('RTP over UDP')],
    ['TCP', { type: 2, uri: '192.168.144.20:5600' }, 'fails', texts.not_rtsp('MPEG over TCP')],
    ['MPEG-TS', { type: 3, uri: 'udp://192.168.144.20:5600' }, 'fails', texts.not_rtsp('MPEG-TS')],
    ['empty', { count: 0, stream_id: 0, uri: '' }, 'not_offered', texts.no_stream],
  ])('that is %s is missing with the reason', async (_title, stream, state, reason) => {
    await flying(
      { camera: { vendor: 'ACME', model: 'Z', streams: [{ name: 'Main', ...stream }] } },
      async (lab, wanted) => {
        await eventually('it is shown', () => healthOf(lab) !== undefined);
        const named = state === 'fails' ? texts.stream_unusable('Main', reason) : reason;
        expect(healthOf(lab)).toMatchObject({ state, reason: named });
        expect(wanted.get(camera_key)).toBeNull();
      },
    );
  });

  it('is named in the status among all others', async () => {
    await flying({ camera: dual }, async (lab) => {
      const facts = (): string => JSON.stringify(lab.hub.drivers().map(({ facts: all }) => all));
      const shown = 'Quadrotor 1 camera: Daylight (used), Thermal (thermal)';
      await eventually('the status has them', () => facts().includes(shown));
    });
  });
});

describe.concurrent('Cameras that the autopilot answers for', () => {
  const key = (device: number): string => `${drone_key}:component-1-camera-${device}`;
  const keys = (lab: MavlinkLab): readonly string[] => lab.hub.assets().map((asset) => asset.key);

  it('are children with their streams, online as long as the vehicle', async () => {
    await flying(
      {
        proxied: [
          { vendor: 'Siyi', model: 'A8', camera_device_id: 1, streams: [daylight] },
          { vendor: 'ViewPro', model: 'Q30', camera_device_id: 2, streams: [thermal] },
        ],
      },
      async (lab, wanted, drone) => {
        await eventually(
          'both are shown',
          () => wanted.get(key(1)) === video(1) && wanted.get(key(2)) === video(2),
        );
        await sleep(20_000, new AbortController().signal);
        await lab.until('online', key(2));
        drone.silent = true;
        await lab.until('offline', key(2));
        drone.silent = false;
        await lab.until('online', key(2));
      },
    );
  });

  it('are told apart by their lens where an ArduPilot gives no number, and need no stream', async () => {
    await flying(
      {
        proxied: [
          { vendor: 'Siyi', model: 'A8', streams: [daylight] },
          { vendor: '', model: '', lens_id: 1 },
        ],
      },
      async (lab, wanted) => {
        await eventually(
          'both are shown',
          () => wanted.get(key(1)) === video(1) && keys(lab).includes(key(2)),
        );
      },
    );
  });

  it('are told apart by their gimbal where they have one lens each (ArduPilot#24551)', async () => {
    await flying(
      {
        proxied: [
          { vendor: 'Siyi', model: 'A8', gimbal_device_id: 1 },
          { vendor: 'ViewPro', model: 'Q30', gimbal_device_id: 2 },
        ],
      },
      async (lab) => {
        await eventually('both are shown', () => keys(lab).includes(key(1)) && keys(lab).includes(key(2)));
      },
    );
  });

  it('are not shown twice where they are components of their own', async () => {
    await flying({ camera: dual, proxied: [dual] }, async (lab, wanted, drone) => {
      await eventually('the camera is shown', () => wanted.get(camera_key) === video(1));
      await eventually('the autopilot is asked', () => drone.requests.includes(269));
      expect(keys(lab)).toEqual([drone_key, camera_key]);
    });
  });

  it('are asked for once where the autopilot has none', async () => {
    await flying({}, async (lab, _wanted, drone) => {
      await sleep(120_000, new AbortController().signal);
      expect(drone.requests.filter((id) => id === 259 || id === 269)).toEqual([259]);
      expect(keys(lab)).toEqual([drone_key]);
    });
  });

  it('announce no feeds of the vehicle', async () => {
    await flying({ camera: dual }, async (lab) => {
      const child = await lab.outbox.until(({ data }) => data?.['asset_key'] === camera_key);
      expect(child.data?.['feeds']).toEqual([]);
      const vehicle = await lab.outbox.until(({ data }) => data?.['asset_key'] === drone_key);
      expect(vehicle.data?.['feeds']).toContain('gps');
    });
  });
});
