/** What observers of assets are given, and when. */
import { expect, it } from 'vitest';
import { assetId } from '../../../../src/contract/identity.ts';
import type { AssetActivity } from '../../../../src/kit/hub/activity.ts';
import { drone } from '../../../fakes/scripted-driver.ts';
import { useFakeTime } from '../../../support/fake-time.ts';
import { kit_id } from '../../../support/kit/hub-lab.ts';
import { testHub } from '../../../support/kit/test-hub.ts';
import { texts } from '../../../../src/kit/hub/texts.ts';

useFakeTime();

const id = assetId(kit_id, 'drone-1');

/** A hub with a driver that announces, and what its observer was given, in short. */
async function observed(about = drone()) {
  const activities: AssetActivity[] = [];
  const lab = testHub({ observe: (activity) => void activities.push(activity) });
  const host = await lab.hostOf();
  const sink = host.announce(about);
  return { lab, host, sink, activities, kinds: () => activities.map(({ kind }) => kind) };
}

it('reports a new asset as added, online and announced', async () => {
  const { activities, kinds } = await observed();
  expect(kinds()).toEqual(['added', 'online', 'announced']);
  expect(activities[1]).toMatchObject({
    asset: { id, key: 'drone-1', driver: 'drones', type: 'drone' },
    is_first: true,
  });
});

it('reports a known asset that cannot be reached as added, not as online', async () => {
  const { kinds } = await observed(drone('drone-1', { offline_reason: 'no camera at channel 2' }));
  expect(kinds()).toEqual(['added', 'announced']);
});

it('reports each edge once, with its reason, and whether the asset was online before', async () => {
  const { sink, activities } = await observed();
  activities.length = 0;
  sink.setOnline(false, 'no heartbeat');
  sink.setOnline(false, 'still none');
  sink.setOnline(true);
  sink.setOnline(true);
  expect(activities).toMatchObject([
    { kind: 'offline', reason: 'no heartbeat' },
    { kind: 'online', is_first: false },
  ]);
});

it('reports an announcement that changes commands, since a task may wait for one of them', async () => {
  const { host, kinds, activities } = await observed();
  activities.length = 0;
  host.announce(drone());
  expect(kinds()).toEqual(['announced']);
});

it('reports the removal of an asset with its reason', async () => {
  const { sink, activities } = await observed();
  sink.remove();
  expect(activities.at(-1)).toMatchObject({ kind: 'removed', reason: texts.driver_removed_it });
  const second = await observed();
  second.sink.setOnline(false, 'no heartbeat');
  expect(second.lab.hub.forgetAsset(id)).toBeUndefined();
  expect(second.activities.at(-1)).toMatchObject({ kind: 'removed', reason: 'forgotten by request' });
  const third = await observed();
  third.lab.hub.retire('drones');
  expect(third.activities.slice(-2)).toMatchObject([
    { kind: 'offline', reason: 'its driver was removed' },
    { kind: 'removed', reason: 'its driver was removed' },
  ]);
});

it('reports an asset that returns after its removal as a new one', async () => {
  const { lab, sink, activities, kinds } = await observed();
  sink.setOnline(false, 'no heartbeat');
  lab.hub.forgetAsset(id);
  activities.length = 0;
  sink.setOnline(true);
  expect(kinds()).toEqual(['added', 'online']);
  expect(activities[1]).toMatchObject({ is_first: true });
});
