/** A technician forgets an asset that is gone for good. */
import { expect, it } from 'vitest';
import { announcement } from '../../../../src/contract/assets.ts';
import { assetId } from '../../../../src/contract/identity.ts';
import { channels } from '../../../../src/contract/topics.ts';
import { command, drone } from '../../../fakes/scripted-driver.ts';
import { kit_id } from '../../../support/kit/hub-lab.ts';
import { testHub } from '../../../support/kit/test-hub.ts';
import { useFakeTime } from '../../../support/fake-time.ts';

useFakeTime();

const id = assetId(kit_id, 'drone-1');

async function started(about = drone()) {
  const lab = testHub();
  const host = await lab.hostOf();
  return { lab, sink: host.announce(about, [command('arm')]) };
}

it('clears what is retained of an asset that is offline', async () => {
  const { lab, sink } = await started();
  sink.setOnline(false, 'no heartbeat');
  expect(lab.hub.forgetAsset(id)).toBeUndefined();
  expect(lab.hub.assets()).toEqual([]);
  expect(lab.outbox.on(channels.asset(id)).at(-1)).toBeNull();
  expect(lab.outbox.on(channels.commands(id)).at(-1)).toBeNull();
});

it('forgets an asset of an earlier run that its driver has not reached', async () => {
  const { lab, sink } = await started();
  sink.setPosition({ lat: 47, lon: 8 });
  const body = JSON.stringify(lab.outbox.on(channels.asset(id)).at(-1));
  const next = testHub({ announced: [{ channel: channels.asset(id), body }] });
  expect(next.hub.forgetAsset(id)).toBeUndefined();
  expect(next.hub.assets()).toEqual([]);
});

it('refuses an asset that its driver reaches, that is configured, or that is unknown', async () => {
  const { lab } = await started();
  expect(lab.hub.forgetAsset(id)).toMatch(/^Drone drone-1 is online: drones still reaches it; /u);
  expect(lab.hub.forgetAsset(kit_id)).toBe(`this kit has no asset ${kit_id}`);
  const configured = await started(drone('drone-1', { configured: true }));
  configured.sink.setOnline(false, 'no answer');
  expect(configured.lab.hub.forgetAsset(id)).toMatch(/^drones is configured with Drone drone-1; /u);
});

it('restores the asset when it returns, without its last position', async () => {
  const { lab, sink } = await started();
  sink.setPosition({ lat: 47, lon: 8 });
  sink.setOnline(false, 'no heartbeat');
  lab.hub.forgetAsset(id);
  sink.setPosition({ lat: 47, lon: 8 });
  expect(lab.hub.assets()).toEqual([]);
  sink.setOnline(true);
  expect(lab.hub.assets()).toMatchObject([{ id, status: 'online' }]);
  expect(announcement.parse(lab.outbox.on(channels.asset(id)).at(-1))).toMatchObject({ lat: null });
  expect(lab.outbox.on(channels.commands(id)).at(-1)).toMatchObject({ commands: [{ name: 'arm' }] });
});
