/** Pictures of ONVIF cameras: the address is the camera's, the host is the configured one. */
import { describe, expect, it } from 'vitest';
import { picture_bytes_max } from '../../../../src/toolkit/device/pictures/picture.ts';
import { samplePicture } from '../../../../src/toolkit/device/pictures/sample-picture.ts';
import { texts as device_texts } from '../../../../src/toolkit/device/texts.ts';
import { texts } from '../../../../drivers/onvif/texts.ts';
import { type FakeCamera, type FakeCameraSettings } from '../../../fakes/fake-onvif-camera.ts';
import { labOfEachTest, context, said } from '../../../support/cameras/onvif-lab.ts';

const lab = labOfEachTest();
let camera: FakeCamera;

async function serve(settings: Partial<FakeCameraSettings> = {}) {
  camera = await lab.start(settings);
  const { hub, outbox } = lab.run({ cameras: [await lab.entry(camera)] });
  await outbox.until(said('status', ({ online }) => online === true));
  const [asset] = hub.assets();
  if (!asset) throw new Error('it was announced');
  return { hub, asset };
}

async function snapshot({ hub, asset }: Awaited<ReturnType<typeof serve>>) {
  const found = hub.findCommand(asset.id, 'snapshot');
  if (!('command' in found)) throw new Error(found.refusal);
  return found.command.read({}).run(context());
}

describe('key frame', () => {
  const asked = () =>
    camera.requests.filter(
      ({ operation, path }) => operation === 'SetSynchronizationPoint' && path.endsWith('media'),
    );

  it('is asked for at the profile whose stream is shown', async () => {
    const { hub, asset } = await serve();
    await hub.requestKeyFrame(asset.id);
    expect(asked().map(({ body }) => body)).toEqual([expect.stringContaining('<ProfileToken>sub<')]);
  });

  it('is not to be had of a camera that does not know the request', async () => {
    const { hub, asset } = await serve();
    camera.misbehave('SetSynchronizationPoint', { fault: 'ter:ActionNotSupported' });
    await hub.requestKeyFrame(asset.id);
    expect(asked()).toHaveLength(1);
  });
});

describe('picture of an alarm', () => {
  const alarm = 'tns1:VideoSource/MotionAlarm';
  const watch = async (settings: Partial<FakeCameraSettings> = {}) => {
    camera = await lab.start(settings);
    const profile = (token: string, width: number, height: number) =>
      `<trt:Profiles token="${token}"><tt:VideoEncoderConfiguration token="VE"><tt:Encoding>H264</tt:Encoding><tt:Resolution><tt:Width>${width}</tt:Width><tt:Height>${height}</tt:Height></tt:Resolution></tt:VideoEncoderConfiguration></trt:Profiles>`;
    const all = [profile('main', 1920, 1080), profile('thumb', 160, 90), profile('sub', 640, 360)];
    camera.misbehave('GetProfiles', {
      body: `<trt:GetProfilesResponse>${all.join('')}</trt:GetProfilesResponse>`,
    });
    const { outbox } = lab.run({ cameras: [await lab.entry(camera, { alarm_picture: true })] });
    await camera.next('PullMessages');
    camera.events.set(alarm, 'State', 'true');
    return { picture: (await outbox.until(said('alarm_picture'))).data, outbox };
  };

  it('is that of the smallest profile, and names the alarm', async () => {
    const { picture, outbox } = await watch();
    const motion = outbox.drafts.find(said('motion'));
    expect(picture).toMatchObject({
      alarms: [{ feed: 'motion', timestamp: motion?.data?.['timestamp'] }],
      jpeg: samplePicture().toString('base64'),
      reason: null,
    });
    const asked = camera.requests.filter(({ operation }) => operation === 'GetSnapshotUri');
    expect(asked.at(-1)?.body).toContain('<ProfileToken>thumb<');
  });

  it('is a sentence where the camera has no address for pictures', async () => {
    const { picture } = await watch({ snapshot: undefined });
    expect(picture).toMatchObject({ jpeg: null, reason: texts.request_refused('ActionNotSupported') });
  });
});

describe('snapshot of an ONVIF camera', () => {
  it.each(['ws_security', 'digest', 'either', 'none'] as const)(
    'is taken from a camera with the login %s, over HTTP digest where it asks for one',
    async (auth) => {
      const served = await serve({ auth });
      expect(await snapshot(served)).toMatchObject({
        path: `/pictures/${served.asset.id}`,
        bytes: samplePicture().length,
      });
      const { jpeg } = await served.hub.picture(served.asset.id, 60_000);
      expect(jpeg.equals(samplePicture())).toBe(true);
      const file = camera.requests.find(({ operation }) => operation === 'GET');
      expect(file?.path).toBe(camera.settings.snapshot);
    },
  );

  it('is fetched from the configured host, whatever host the camera names', async () => {
    const served = await serve({ snapshot: 'http://192.0.2.99:8080/snap.jpg?a=1&b=2' });
    await snapshot(served);
    const file = camera.requests.find(({ operation }) => operation === 'GET');
    expect(file?.path).toBe('/snap.jpg?a=1&b=2');
  });

  // openvideolibs/python-onvif-zeep-async#88, agsh/onvif#231
  it.each([
    ['with the login of a person in its address', 'http://viewer:p%40ss@192.0.2.99/snap.jpg?a=1'],
    ['at an address without a host', 'http:///snap.jpg?a=1'],
    ['at a relative address', 'snap.jpg?a=1'],
  ])('is fetched %s, with the configured login', async (_, address) => {
    const served = await serve({ auth: 'digest', snapshot: address });
    camera.file = { type: 'image/jpeg', bytes: samplePicture() };
    await snapshot(served);
    const file = camera.requests.findLast(({ operation }) => operation === 'GET');
    expect(file?.path).toBe('/snap.jpg?a=1');
    expect(file?.authorization).toContain('username="kit"');
  });

  it('is not offered by a camera that reports no address for it', async () => {
    const { hub, asset } = await serve({ snapshot: undefined });
    expect(hub.findCommand(asset.id, 'snapshot')).toHaveProperty('refusal');
    await expect(hub.picture(asset.id, 0)).rejects.toThrow(/snapshot/u);
  });

  it.each([
    ['a login page', Buffer.from('<html>'), device_texts.picture_not_jpeg('text/html')],
    ['an endless answer', Buffer.alloc(picture_bytes_max + 1), String(picture_bytes_max)],
  ])('fails with the reason when the camera sends %s', async (_what, bytes, reason) => {
    const served = await serve();
    camera.file = { type: 'text/html', bytes };
    await expect(snapshot(served)).rejects.toThrow(reason);
    expect(served.hub.assets()).toMatchObject([{ status: 'online' }]);
  });

  it('names a refused login, and does not try it again within the gap', async () => {
    const served = await serve();
    camera.misbehave('GET', { raw: '', status: 401 });
    await expect(snapshot(served)).rejects.toThrow(texts.no_picture(401));
    await expect(snapshot(served)).rejects.toThrow(texts.no_picture(401));
    expect(camera.count('GET')).toBe(1);
  });
});
