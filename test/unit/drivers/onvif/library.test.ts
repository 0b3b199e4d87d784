/**
 * npm onvif as a second client, by its public interface: it must find in the simulated camera what the driver finds there. The
 * driver itself does without it, see decision 0002.
 */
import onvif from 'onvif';
import { afterEach, expect, it } from 'vitest';
import { logIn, readDevice } from '../../../../drivers/onvif/camera/device.ts';
import { readPresets } from '../../../../drivers/onvif/camera/presets.ts';
import { onvifOptions } from '../../../../drivers/onvif/options.ts';
import { openLine } from '../../../../drivers/onvif/soap/line.ts';
import { type FakeCamera, startFakeCamera } from '../../../fakes/fake-onvif-camera.ts';

const cameras: FakeCamera[] = [];
const stopping = new AbortController();
afterEach(async () => {
  for (const camera of cameras.splice(0)) await camera.stop();
});

/** Calls one method of the library. */
async function asked<T>(
  call: (done: (error: Error | null | false, data?: T) => void) => void,
): Promise<T | undefined> {
  return new Promise((resolve, reject) => {
    call((error, data) => {
      if (error) reject(error);
      else resolve(data);
    });
  });
}

it('sees and moves what the driver does', async () => {
  const presets = [
    { token: 'a', name: 'Gate' },
    { token: 'b', name: 'Yard & Roof' },
  ];
  const camera = await startFakeCamera({ auth: 'ws_security', presets, password: 'secret' });
  cameras.push(camera);
  const { username, password } = camera.settings;
  const cam = new onvif.Cam({
    hostname: '127.0.0.1',
    port: camera.port,
    username,
    password,
    autoconnect: false,
  });
  // Without it the library drops the profiles.
  const sources = '<GetVideoSourcesResponse><VideoSources token="VS0"/></GetVideoSourcesResponse>';
  camera.misbehave('GetVideoSources', { body: sources });
  await asked((done) => cam.connect(done));

  const [options] = onvifOptions.parse({
    cameras: [{ name: 'Gate', host: '127.0.0.1', port: camera.port, username, password_file: 'x' }],
  }).cameras;
  if (!options) throw new Error('no camera');
  const where = { host: '127.0.0.1', port: camera.port, path: options.path, secure: false };
  const soap = openLine({ ...where, fingerprint: undefined, username, password }, stopping.signal);
  const login = await logIn(soap, options);
  const device = await readDevice(soap, login, options);
  const url = device.services.get('ptz') ?? '';
  const profile = device.ptz_profile ?? '';

  const { manufacturer, model } = login.information;
  expect(await asked((done) => cam.getDeviceInformation(done))).toMatchObject({ manufacturer, model });
  expect(cam.profiles?.map(({ $ }) => ($ as { token: string }).token)).toContain(profile);
  const listed = await readPresets({ soap, url, profile });
  await asked((done) => cam.getPresets({ profileToken: profile }, done));
  const tokens = 'presets' in listed ? listed.presets.map(({ token }) => token) : [];
  expect(Object.keys(cam.presets ?? {})).toEqual(tokens);

  await asked((done) =>
    cam.continuousMove({ profileToken: profile, x: 0.5, y: 0, onlySendPanTilt: true }, done),
  );
  expect(camera.motor.x).toBe(0.5);
  await asked((done) => cam.stop({ profileToken: profile, panTilt: true, zoom: true }, done));
  expect(camera.motor.isMoving).toBe(false);
});
