/**
 * npm onvif, by its public interface: its probe finds cameras for `setup`, and as a second client it must find in the simulated
 * camera what the driver finds there. Why the driver itself does without it is in decision 0002.
 */
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import onvif from 'onvif';
import { afterEach, expect, it } from 'vitest';
import { logIn, readDevice } from '../../../../../drivers/onvif/camera/device.ts';
import { discoverByLibrary } from '../../../../../drivers/onvif/suggest.ts';
import { readPresets } from '../../../../../drivers/onvif/camera/presets.ts';
import { onvifOptions } from '../../../../../drivers/onvif/options.ts';
import { openLine } from '../../../../../drivers/onvif/soap/line.ts';
import { type FakeCamera, startFakeCamera } from '../../../../fakes/fake-onvif-camera.ts';

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
  const profile = device.sources[0]?.ptz?.profile ?? '';

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

it('finds what answers its probe, at the address that answered', async () => {
  const camera = createSocket({ type: 'udp4', reuseAddr: true });
  camera.bind(3_702);
  await once(camera, 'listening');
  camera.addMembership('239.255.255.250', '127.0.0.1');
  camera.on('message', (probe, { port, address }) => {
    const id = /MessageID[^>]*>([^<]*)</u.exec(String(probe))?.[1] ?? '';
    const answer =
      `<s:Envelope xmlns:s="http://www.w3.org/2003/05/soap-envelope" xmlns:a="http://schemas.xmlsoap.org/ws/2004/08/addressing" xmlns:d="http://schemas.xmlsoap.org/ws/2005/04/discovery"><s:Header><a:RelatesTo>${id}</a:RelatesTo></s:Header><s:Body><d:ProbeMatches><d:ProbeMatch>` +
      '<a:EndpointReference><a:Address>urn:uuid:7</a:Address></a:EndpointReference><d:Scopes>onvif://www.onvif.org/name/Gate</d:Scopes><d:XAddrs>http://10.9.9.9/onvif/device_service</d:XAddrs>' +
      '</d:ProbeMatch></d:ProbeMatches></s:Body></s:Envelope>';
    camera.send('no XML', port, address);
    camera.send(answer, port, address);
  });
  const found = await discoverByLibrary('lo').finally(() => camera.close());
  expect(found).toMatchObject([{ host: '127.0.0.1', port: 80, name: 'Gate', endpoint: 'urn:uuid:7' }]);
});
