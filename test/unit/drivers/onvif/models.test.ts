/** Named ONVIF cameras, and identities that many of them share. */
import { afterEach, beforeEach, expect, it } from 'vitest';
import { texts } from '../../../../drivers/onvif/texts.ts';
import {
  type FakeCamera,
  type FakeCameraSettings,
  startFakeCamera,
} from '../../../fakes/fake-onvif-camera.ts';
import { type CameraLab, cameraLab } from '../../../support/cameras/onvif-lab.ts';
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
