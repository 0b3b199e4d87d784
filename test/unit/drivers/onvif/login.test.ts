/** Refused logins: a camera that only boots is back soon, no account is locked, and everyone can see what was answered. */
import { describe, expect, it } from 'vitest';
import { channelKind } from '../../../../src/contract/topics.ts';
import { isStatus, sceneOfEachTest } from '../../../support/cameras/onvif-lab.ts';
import { elapse } from '../../../support/elapse.ts';
import { eventually } from '../../../support/eventually.ts';
import type { RecordingOutbox } from '../../../support/recording-outbox.ts';

/** As an onvif_simple_server answers, and as cameras do for up to half a minute while they boot. */
const not_authorized = { fault: 'ter:NotAuthorized', reason: 'Sender not Authorized' } as const;

const scene = sceneOfEachTest();

const everyLoginRefused = (): void => {
  for (const operation of ['GetDeviceInformation', 'PullMessages', 'CreatePullPointSubscription'])
    scene.camera.misbehave(operation, not_authorized);
};
const loginsAccepted = (): void => {
  for (const operation of ['GetDeviceInformation', 'PullMessages', 'CreatePullPointSubscription'])
    scene.camera.misbehave(operation, 'normal');
};
const reasonOf = ({ drafts }: RecordingOutbox): unknown =>
  drafts.findLast(({ channel }) => channelKind(channel) === 'asset')?.data?.['status_reason'];

/** What the buffer hands to the next run. */
function retained(...outboxes: readonly RecordingOutbox[]) {
  const drafts = outboxes.flatMap((outbox) => outbox.drafts);
  const assets = drafts.filter(({ channel }) => channelKind(channel) === 'asset');
  const newest = new Map(assets.map(({ channel, data }) => [channel, JSON.stringify(data)]));
  return Array.from(newest, ([channel, body]) => ({ channel, body }));
}

describe('a camera that accepted this password before', () => {
  const limits = { may_pass_ms: [400, 1_200], rejected_first_ms: 60_000 };

  it('is back soon after it has booted, and was asked once for each attempt', async () => {
    const { outbox, hub } = scene.lab.run({ cameras: [await scene.lab.entry(scene.camera)] }, { limits });
    await outbox.until(isStatus('online'));
    await scene.camera.next('PullMessages');
    everyLoginRefused();
    await scene.camera.reboot();
    await outbox.until(isStatus('offline'));
    await eventually('it is rejected', () => hub.drivers()[0]?.devices?.[0]?.state === 'rejected');
    scene.camera.forget();
    await scene.camera.next('GetDeviceInformation');
    await elapse(100);
    expect(scene.camera.count('GetDeviceInformation')).toBe(1);
    loginsAccepted();
    outbox.clear();
    await outbox.until(isStatus('online'));
    expect(hub.drivers()[0]?.devices).toMatchObject([{ state: 'online', reason: null, next_try_at: null }]);
  });

  it('is tried rarely once its refusal has not passed', async () => {
    const { outbox, hub } = scene.lab.run({ cameras: [await scene.lab.entry(scene.camera)] }, { limits });
    await outbox.until(isStatus('online'));
    await scene.camera.next('PullMessages');
    everyLoginRefused();
    await scene.camera.reboot();
    const pause_ms = (): number => {
      const device = hub.drivers()[0]?.devices?.[0];
      return Date.parse(device?.next_try_at ?? '') - Date.parse(device?.tried_at ?? '');
    };
    await eventually('the pause has grown', () => pause_ms() >= limits.rejected_first_ms / 2);
    const asked = scene.camera.requests.length;
    await elapse(1_500);
    expect(scene.camera.requests).toHaveLength(asked);
  });
});

it('shows the answer, its time and the next attempt in status and in the reason of the asset', async () => {
  const { outbox, hub } = scene.lab.run({ cameras: [await scene.lab.entry(scene.camera, { name: 'Gate' })] });
  await outbox.until(isStatus('online'));
  await scene.camera.next('PullMessages');
  everyLoginRefused();
  await scene.camera.reboot();
  await eventually('it is rejected', () => hub.drivers()[0]?.devices?.[0]?.state === 'rejected');
  const [device] = hub.drivers()[0]?.devices ?? [];
  expect(device).toMatchObject({
    name: 'Gate',
    tried: `127.0.0.1:${scene.camera.port}`,
    asset_key: hub.assets()[0]?.key,
  });
  expect(device?.reason).toContain('Sender not Authorized');
  expect(hub.assets()[0]?.reason).toContain(device?.reason);
  expect(hub.assets()[0]?.reason).toContain(device?.tried_at);
  expect(hub.assets()[0]?.reason).toContain(device?.next_try_at);
  expect(reasonOf(outbox)).toBe(hub.assets()[0]?.reason);
});

it('explains after a restart why a known camera is not served, and tries a refused password no more', async () => {
  const cameras = [await scene.lab.entry(scene.camera)];
  const first = scene.lab.run({ cameras });
  await first.outbox.until(isStatus('online'));
  await first.stop();
  const announced = retained(first.outbox);
  scene.camera.settings.password = 'changed on the camera';
  const second = scene.lab.run({ cameras }, { announced });
  await eventually('it is rejected', () => second.hub.drivers()[0]?.devices?.[0]?.state === 'rejected');
  expect(second.hub.assets()[0]).toMatchObject({ status: 'offline' });
  expect(second.hub.assets()[0]?.reason).toContain('Sender not authorized');
  await second.stop();
  const asked = scene.camera.requests.length;
  const third = scene.lab.run({ cameras }, { announced: retained(first.outbox, second.outbox) });
  await eventually('it is rejected', () => third.hub.drivers()[0]?.devices?.[0]?.state === 'rejected');
  expect(scene.camera.requests).toHaveLength(asked);
});
