/** How many assets a kit takes, and who makes room when there is none. */
import { expect, it, vi } from 'vitest';
import { announcement } from '../../../../../src/contract/assets.ts';
import { assetId } from '../../../../../src/contract/identity.ts';
import { channels } from '../../../../../src/contract/topics.ts';
import { asset_limits } from '../../../../../src/kit/hub/assets/asset.ts';
import { drone, type DroneHost, fix } from '../../../../fakes/scripted-driver.ts';
import { kit_id } from '../../../../support/kit/hub-lab.ts';
import { testHub } from '../../../../support/kit/test-hub.ts';
import { useFakeTime } from '../../../../support/fake-time.ts';

useFakeTime();

const minute_ms = 60_000;
type Sink = ReturnType<DroneHost['announce']>;

const many = (host: DroneHost, rows: number, prefix: string): Sink[] =>
  Array.from({ length: rows }, (_, n) => host.announce(drone(`${prefix}-${n}`)));
const keysOf = (lab: ReturnType<typeof testHub>): string[] => lab.hub.assets().map(({ key }) => key);

it('takes 500 drones of one driver, with their commands and feeds', async () => {
  const lab = testHub();
  const host = await lab.hostOf();
  for (const sink of many(host, 500, 'drone')) sink.publish('gps', fix());
  expect(lab.hub.assets()).toHaveLength(500);
  expect(lab.log.at('warn')).toEqual([]);
});

it('does not let the strangers of one driver take the slots of another, nor those of configured assets', async () => {
  const configured = ['drones', 'more', 'cameras'];
  const lab = testHub({ configured });
  const [drones, more, cameras] = await Promise.all(configured.map(async (name) => lab.hostOf(name)));
  many(drones!, asset_limits.all, 'junk');
  expect(keysOf(lab)).toHaveLength(asset_limits.strangers_per_driver);
  many(more!, asset_limits.all, 'other');
  expect(keysOf(lab)).toHaveLength(asset_limits.strangers);
  cameras!.announce(drone('gate', { configured: true }));
  expect(keysOf(lab)).toContain('gate');
  expect(lab.log.at('warn')).not.toEqual([]);
});

it('gives the slot of the short-lived asset that was lost first to a new one, and keeps long-lived assets', async () => {
  const lab = testHub();
  const host = await lab.hostOf();
  const known = host.announce(drone('known'));
  await vi.advanceTimersByTimeAsync(10 * minute_ms);
  known.publish('gps', fix());
  known.setOnline(false, 'no heartbeat');
  const [first, second] = many(host, asset_limits.strangers_per_driver, 'junk');
  host.announce(drone('refused'));
  expect(keysOf(lab)).not.toContain('refused');
  first!.setOnline(false, 'no heartbeat');
  await vi.advanceTimersByTimeAsync(1_000);
  second!.setOnline(false, 'no heartbeat');
  host.announce(drone('real'));
  expect(keysOf(lab)).toEqual(expect.arrayContaining(['known', 'real', 'junk-1']));
  expect(keysOf(lab)).not.toContain('junk-0');
  expect(lab.outbox.on(channels.asset(assetId(kit_id, 'junk-0'))).at(-1)).toBeNull();
});

it('takes an asset back that had to make room, once it is online again and there is a slot', async () => {
  const lab = testHub();
  const host = await lab.hostOf();
  const sinks = many(host, asset_limits.strangers_per_driver, 'drone');
  sinks[0]!.setPosition({ lat: 47, lon: 8 });
  sinks[0]!.setOnline(false, 'no heartbeat');
  host.announce(drone('newcomer'));
  sinks[0]!.publish('gps', fix());
  sinks[0]!.setOnline(true);
  expect(keysOf(lab)).not.toContain('drone-0');
  sinks[1]!.setOnline(false, 'no heartbeat');
  sinks[0]!.setOnline(true);
  expect(keysOf(lab)).toContain('drone-0');
  const told = announcement.parse(lab.outbox.on(channels.asset(assetId(kit_id, 'drone-0'))).at(-1));
  expect(told).toMatchObject({ status: 'online', lat: null, lon: null });
});

it('removes assets that were seen for less than ten minutes and not for a day since, also after a restart', async () => {
  const lab = testHub();
  const host = await lab.hostOf();
  host.announce(drone('passer-by')).setOnline(false, 'no heartbeat');
  const known = host.announce(drone('known'));
  await vi.advanceTimersByTimeAsync(10 * minute_ms);
  known.publish('gps', fix());
  known.setOnline(false, 'no heartbeat');
  const announced = ['passer-by', 'known'].map((key) => {
    const channel = channels.asset(assetId(kit_id, key));
    return { channel, body: JSON.stringify(lab.outbox.on(channel).at(-1)) };
  });
  await lab.stop();
  const next = testHub({ announced });
  expect(keysOf(next).toSorted()).toEqual(['known', 'passer-by']);
  await vi.advanceTimersByTimeAsync(24 * 60 * minute_ms);
  expect(keysOf(next)).toEqual(['known']);
});
