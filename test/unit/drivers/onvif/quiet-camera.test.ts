/** Cameras that send no events for a long time, and one that restarts while the kit waits for an event. */
import { afterEach, beforeEach, expect, it } from 'vitest';
import { startSimCamera } from '../../../../drivers/onvif/sim/sim-camera.ts';
import { type FakeCamera, startFakeCamera } from '../../../fakes/fake-onvif-camera.ts';
import { type CameraLab, cameraLab, said } from '../../../support/cameras/onvif-lab.ts';
import { eventually } from '../../../support/eventually.ts';

let lab: CameraLab;
let camera: FakeCamera;
beforeEach(async () => {
  lab = await cameraLab();
  camera = await startFakeCamera({ auth: 'ws_security' });
});
afterEach(async () => {
  await lab.stop();
  await camera.stop();
});

const motion = said('motion', (data) => data['detected'] === true);

it('keeps the subscription of a camera that sees nothing, without a line in the log, and receives the first motion', async () => {
  camera.events.lifetime_ms = 5_000;
  const { outbox, log, hub } = lab.run({ cameras: [await lab.entry(camera)], pull_s: 1 });
  await eventually('it was renewed', () => camera.count('Renew') > 0);
  expect(camera.count('PullMessages')).toBeGreaterThan(2);
  expect(outbox.drafts.filter(said('motion'))).toEqual([]);
  camera.events.set('tns1:VideoSource/MotionAlarm', 'State', 'true');
  await outbox.until(motion);
  expect(camera.count('CreatePullPointSubscription')).toBe(1);
  expect([...log.at('warn'), ...log.at('info')]).toEqual([]);
  expect(hub.drivers()[0]?.devices?.[0]?.state).toBe('online');
});

it('is played by the simulated camera on demand', async () => {
  const stop = new AbortController();
  const quiet = await startSimCamera({ ...camera.settings, isQuiet: true }, 0, stop.signal);
  const entry = { ...(await lab.entry(camera)), port: quiet.port };
  const { outbox } = lab.run({ cameras: [entry] });
  await eventually('a subscription', () => quiet.events.size === 1);
  quiet.events.set('tns1:VideoSource/MotionAlarm', 'State', 'true');
  await outbox.until(motion);
  await lab.stop();
  stop.abort();
});

it('subscribes again when the camera restarts in the middle of a pull', async () => {
  const pulled = camera.next('PullMessages');
  const { outbox } = lab.run({ cameras: [await lab.entry(camera)] });
  await pulled;
  await camera.reboot();
  await eventually('a new subscription', () => camera.events.size === 1);
  camera.events.set('tns1:VideoSource/MotionAlarm', 'State', 'true');
  await outbox.until(motion);
});
