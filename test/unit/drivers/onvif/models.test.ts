/** Named ONVIF cameras, and identities that many of them share. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { bare, logIn, readDevice } from '../../../../drivers/onvif/camera/device.ts';
import { readPresets } from '../../../../drivers/onvif/camera/presets.ts';
import { notesOf } from '../../../../drivers/onvif/events/topics.ts';
import { onvifOptions } from '../../../../drivers/onvif/options.ts';
import { readEnvelope } from '../../../../drivers/onvif/soap/envelope.ts';
import { failure, type Reading } from '../../../../drivers/onvif/soap/soap.ts';
import type { Soap } from '../../../../drivers/onvif/soap/soap.ts';
import { texts } from '../../../../drivers/onvif/texts.ts';
import {
  type FakeCamera,
  type FakeCameraSettings,
  startFakeCamera,
} from '../../../fakes/fake-onvif-camera.ts';
import { type CameraLab, cameraLab } from '../../../support/cameras/onvif-lab.ts';
import { onvif_models, type OnvifModel } from '../../../support/cameras/onvif-models.ts';
import { eventually } from '../../../support/eventually.ts';

const cameras: FakeCamera[] = [];
let lab: CameraLab;
beforeEach(async () => {
  lab = await cameraLab();
});
afterEach(async () => {
  await lab.stop();
  for (const camera of cameras.splice(0)) await camera.stop();
});

async function start(settings: Partial<FakeCameraSettings>): Promise<FakeCamera> {
  const camera = await startFakeCamera(settings);
  cameras.push(camera);
  return camera;
}

it('serves cameras that share one serial number by their MAC addresses, over restarts, and logs it', async () => {
  // As Tapo C200 do (edgexfoundry/device-onvif-camera#2).
  const [one, two] = [await start({ mac: '00:1b:c5:00:00:01' }), await start({ mac: '00:1b:c5:00:00:02' })];
  const cameras_options = [await lab.entry(one, { name: 'A' }), await lab.entry(two, { name: 'B' })];
  const keys = (hub: ReturnType<CameraLab['run']>['hub']): readonly string[] =>
    hub
      .assets()
      .flatMap(({ key, name, status }) => (status === 'online' ? [`${name} ${key}`] : []))
      .toSorted();
  const first = lab.run({ cameras: cameras_options });
  await eventually('both are served', () => keys(first.hub).length === 2);
  const served = keys(first.hub);
  expect(served.filter((key) => key.endsWith(' onvif:acme:007:12345678901234567890'))).toHaveLength(1);
  expect(served.filter((key) => /^A .*:mac:001bc5000001$|^B .*:mac:001bc5000002$/u.test(key))).toHaveLength(
    1,
  );
  expect(first.log.at('warn')).toContain(texts.serial_shared);
  await first.stop();
  const second = lab.run({ cameras: cameras_options });
  await eventually('both are served again', () => keys(second.hub).length === 2);
  expect(keys(second.hub)).toEqual(served);
  expect(second.log.at('error')).toEqual([]);
});

it('identifies no camera by a hardware address that firmware ships with', async () => {
  // home-assistant/core#59218.
  const camera = await start({ serial: '', mac: '00:12:34:56:78:9a' });
  const { log } = lab.run({ cameras: [await lab.entry(camera)] });
  await eventually('it is refused', () => log.at('error').length > 0);
  expect(log.lines.at(-1)?.facts['reason']).toContain(texts.no_identity);
});

const read = (inner: string): Reading =>
  readEnvelope(
    `<SOAP-ENV:Envelope xmlns:SOAP-ENV="http://www.w3.org/2003/05/soap-envelope"><SOAP-ENV:Body>${inner}</SOAP-ENV:Body></SOAP-ENV:Envelope>`,
  );

/** Answers from the replies of the model, as text that the driver reads. */
function soapOf({ replies }: OnvifModel): Soap {
  return {
    connection: {
      host: '10.41.2.11',
      port: 80,
      path: '/onvif/device_service',
      secure: false,
      fingerprint: undefined,
      username: 'kit',
      password: 'p',
    },
    login: 'ws_security',
    call: async ({ action }) => {
      const name = action.slice(action.lastIndexOf('/') + 1);
      const inner = replies[name];
      if (inner === undefined) return { kind: 'fault', code: 'ActionNotSupported', reason: '', status: 400 };
      const reading = read(`<a:${name}Response>${inner}</a:${name}Response>`);
      if (reading.kind !== 'read') return reading;
      return { kind: 'reply', body: reading.body, local_address: undefined };
    },
    fetch: async () => failure('unreachable', 'no picture'),
    close: () => undefined,
  };
}

describe.each(onvif_models)('$model with $firmware ($special; $source)', (row) => {
  const { expected } = row;
  const soap = soapOf(row);

  it('is described with its identity, its stream and what it can do', async () => {
    const [options] = onvifOptions.parse({ cameras: [{ name: 'Gate', host: '10.41.2.11' }] }).cameras;
    if (!options) throw new Error('no camera');
    const device = await readDevice(soap, await logIn(soap, options), options);
    expect(device.asset_keys).toEqual(expected.asset_keys);
    const [source = bare('')] = device.sources;
    const url = source.stream?.rtsp_url;
    expect(url?.replace(/^rtsp:\/\/kit:p@10\.41\.2\.11:554/u, '')).toBe(expected.stream);
    expect(source.ptz !== undefined).toBe(expected.canMove ?? false);
    expect(source.takePicture !== undefined).toBe(expected.hasPicture ?? false);
    const listed = await readPresets({ soap, url: '', profile: source.ptz?.profile ?? '' });
    const presets = 'presets' in listed ? listed.presets : undefined;
    expect(presets?.map(({ token, name }) => `${token} ${name}`)).toEqual(expected.presets);
  });

  it('has its events read as what they mean, and others left alone', () => {
    const meanings = row.notes.map(([xml]) => {
      const reading = read(`<tev:PullMessagesResponse>${xml}</tev:PullMessagesResponse>`);
      return reading.kind === 'read'
        ? notesOf(reading.body).map(({ detection, state }) => `${detection} ${state}`)
        : reading.reason;
    });
    expect(meanings).toEqual(row.notes.map(([, meaning]) => meaning));
  });
});
