/** Cameras that send no events for a long time, and one that restarts while the kit waits for an event. */
import { beforeEach, expect, it } from 'vitest';
import { type FakeCamera } from '../../../fakes/fake-onvif-camera.ts';
import { labOfEachTest, said } from '../../../support/cameras/onvif-lab.ts';
import { eventually } from '../../../support/eventually.ts';

const lab = labOfEachTest();
let camera: FakeCamera;
beforeEach(async () => {
  camera = await lab.start({ auth: 'ws_security' });
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

it('subscribes again when the camera restarts in the middle of a pull', async () => {
  const pulled = camera.next('PullMessages');
  const { outbox } = lab.run({ cameras: [await lab.entry(camera)] });
  await pulled;
  await camera.reboot();
  await eventually('a new subscription', () => camera.events.size === 1);
  camera.events.set('tns1:VideoSource/MotionAlarm', 'State', 'true');
  await outbox.until(motion);
});
