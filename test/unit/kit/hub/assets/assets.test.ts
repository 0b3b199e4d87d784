/** What the cloud is told of assets, and when. */
import { expect, it, vi } from 'vitest';
import { announcement, type Announcement } from '../../../../../src/contract/assets.ts';
import { assetId } from '../../../../../src/contract/identity.ts';
import { channels } from '../../../../../src/contract/topics.ts';
import { DeviceUnreachable } from '../../../../../src/platform/errors.ts';
import { asset_limits } from '../../../../../src/kit/hub/assets/asset.ts';
import { aborted } from '../../../../../src/platform/time.ts';
import {
  command,
  drone,
  type DroneHost,
  fix,
  scriptedDriver,
  scripts,
} from '../../../../fakes/scripted-driver.ts';
import { hubLab, kit_id } from '../../../../support/kit/hub-lab.ts';
import { useFakeTime } from '../../../../support/fake-time.ts';
import { texts } from '../../../../../src/kit/hub/texts.ts';

useFakeTime();

const id = assetId(kit_id, 'drone-1');
const settle = async (): Promise<unknown> => vi.advanceTimersByTimeAsync(0);
type Sink = ReturnType<DroneHost['announce']>;

/** A driver whose host and sink the test holds in its hands. */
function held(about = drone()) {
  const hand: { host?: DroneHost; sink?: Sink } = {};
  const driver = scriptedDriver(async (host) => {
    hand.host = host;
    hand.sink = host.announce(about);
    await aborted(host.signal);
  });
  return {
    driver,
    get host(): DroneHost {
      if (!hand.host) throw new Error('the driver does not run yet');
      return hand.host;
    },
    get sink(): Sink {
      if (!hand.sink) throw new Error('the driver does not run yet');
      return hand.sink;
    },
  };
}

it('announces an asset with its commands and reports that it is online', async () => {
  const lab = hubLab();
  void lab.run(scriptedDriver(scripts.wellBehaved));
  await settle();
  const [told] = lab.outbox.on(channels.asset(id));
  expect(announcement.parse(told)).toMatchObject({ id, status: 'online', driver: 'drones', lat: null });
  expect(lab.outbox.on(channels.commands(id))).toMatchObject([{ revision: 1, commands: [{ name: 'arm' }] }]);
  expect(lab.outbox.on(channels.event(id, 'asset_status'))).toEqual([{ status: 'online', reason: null }]);
  expect(lab.outbox.drafts.map((draft) => draft.lane)).toEqual(['presence', 'alarm', 'presence']);
  await lab.stop();
});

it('publishes nothing when a driver repeats its announcement', async () => {
  const lab = hubLab();
  const drones = held();
  void lab.run(drones.driver);
  await settle();
  lab.outbox.clear();
  drones.host.announce(drone());
  expect(lab.outbox.drafts).toEqual([]);
  drones.host.announce(drone('drone-1', { model: 'X500' }), [command('arm')]);
  expect(lab.outbox.on(channels.asset(id))).toMatchObject([{ model: 'X500' }]);
  expect(lab.outbox.on(channels.commands(id))).toMatchObject([{ revision: 2 }]);
  await lab.stop();
});

it('reports an asset offline once when its driver fails, and online again without a restart', async () => {
  const lab = hubLab();
  const driver = scriptedDriver(async (host, run_number) => {
    const sink = host.announce(drone());
    if (run_number === 1) {
      sink.setOnline(false, 'no heartbeat for 5 s');
      throw new DeviceUnreachable('socket closed');
    }
    await aborted(host.signal);
  });
  void lab.run(driver);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(lab.outbox.on(channels.event(id, 'asset_status'))).toEqual([
    { status: 'online', reason: null },
    { status: 'offline', reason: 'no heartbeat for 5 s' },
    { status: 'online', reason: null },
  ]);
  await lab.stop();
  expect(lab.outbox.on(channels.asset(id)).at(-1)).toMatchObject({
    status: 'offline',
    status_reason: texts.driver_stopped,
  });
});

it('announces a known asset that cannot be reached as offline, without an edge', async () => {
  const lab = hubLab();
  const drones = held(drone('drone-1', { offline_reason: 'no camera at channel 2' }));
  void lab.run(drones.driver);
  await settle();
  const offline = { status: 'offline', status_reason: 'no camera at channel 2' };
  expect(lab.outbox.on(channels.asset(id))).toMatchObject([offline]);
  expect(lab.outbox.on(channels.event(id, 'asset_status'))).toEqual([]);
  drones.host.announce(drone());
  expect(lab.outbox.on(channels.event(id, 'asset_status'))).toMatchObject([{ status: 'online' }]);
  await lab.stop();
});

it('computes the parent from the key of the parent', async () => {
  const lab = hubLab();
  void lab.run(held(drone('gimbal', { parent_key: 'drone-1' })).driver);
  await settle();
  expect(lab.outbox.on(channels.asset(assetId(kit_id, 'gimbal')))).toMatchObject([{ parent_id: id }]);
  await lab.stop();
});

it('shows where viewers find the stream, and never the address of the stream itself', async () => {
  const urls = new Map<string, string>();
  const wanted: (string | null)[] = [];
  const lab = hubLab({
    streams: {
      want: (_key, url) => void wanted.push(url),
      urlOf: (key) => urls.get(key) ?? null,
      healthOf: () => undefined,
    },
  });
  const rtsp_url = 'rtsp://viewer:s3cret@192.0.2.7/sub';
  const drones = held(drone('drone-1', { rtsp_url }));
  void lab.run(drones.driver);
  await settle();
  expect(wanted).toEqual([rtsp_url]);
  expect(lab.outbox.on(channels.asset(id))).toMatchObject([{ whep_url: null }]);
  urls.set('drone-1', 'http://192.0.2.1:8889/drone-1/whep');
  lab.hub.streamChanged('drone-1');
  expect(lab.outbox.on(channels.asset(id)).at(-1)).toMatchObject({ whep_url: urls.get('drone-1') });
  drones.sink.remove();
  expect(wanted.at(-1)).toBeNull();
  expect(JSON.stringify(lab.outbox.drafts)).not.toContain('s3cret');
  await lab.stop();
});

it('shows the first position at once and later ones once a minute', async () => {
  const lab = hubLab();
  const drones = held();
  void lab.run(drones.driver);
  await settle();
  lab.outbox.clear();
  for (let index = 0; index < 100; index += 1) drones.sink.setPosition({ lat: 47 + index / 1_000, lon: 8 });
  expect(lab.outbox.on(channels.asset(id))).toMatchObject([{ lat: 47, lon: 8, alt_m: null }]);
  await vi.advanceTimersByTimeAsync(180_000);
  expect(lab.outbox.on(channels.asset(id))).toMatchObject([{ lat: 47 }, { lat: 47.099 }]);
  drones.sink.setPosition({ lat: Number.NaN, lon: 8 });
  drones.sink.setPosition({ lat: 91, lon: 8 });
  await vi.advanceTimersByTimeAsync(60_000);
  expect(lab.outbox.on(channels.asset(id))).toHaveLength(2);
  await lab.stop();
});

it('counts a feed message as a sign of life', async () => {
  const lab = hubLab();
  const drones = held();
  void lab.run(drones.driver);
  await vi.advanceTimersByTimeAsync(5_000);
  const before = lab.hub.assets()[0]?.last_seen_at ?? '';
  drones.sink.publish('gps', fix());
  expect(Date.parse(lab.hub.assets()[0]?.last_seen_at ?? '') - Date.parse(before)).toBe(5_000);
  await lab.stop();
});

it('clears both retained messages of a removed asset and ignores its sink', async () => {
  const lab = hubLab();
  const drones = held();
  void lab.run(drones.driver);
  await settle();
  lab.outbox.clear();
  drones.sink.remove();
  drones.sink.publish('gps', fix());
  drones.sink.setOnline(true);
  drones.sink.remove();
  const cleared = [channels.asset(id), channels.commands(id)];
  expect(lab.outbox.drafts).toEqual(cleared.map((channel) => ({ channel, lane: 'presence', data: null })));
  expect(lab.hub.assets()).toEqual([]);
  await lab.stop();
});

it('keeps an asset with the driver that announced it first', async () => {
  const lab = hubLab({ configured: ['drones', 'others'] });
  const first = held();
  const second = held(drone('drone-1', { name: 'Impostor' }));
  void lab.run(first.driver);
  void lab.run(second.driver, 'others');
  await settle();
  lab.outbox.clear();
  second.sink.publish('gps', fix());
  second.sink.setOnline(false, 'no');
  second.sink.remove();
  expect(lab.outbox.drafts).toEqual([]);
  expect(lab.log.lines.filter((line) => line.level === 'warn')).toMatchObject([
    { facts: { asset_key: 'drone-1', reason: 'driver drones announced an asset with this key first' } },
  ]);
  first.sink.publish('gps', fix());
  expect(lab.outbox.on(channels.feed(id, 'gps'))).toHaveLength(1);
  await lab.stop();
});

it('ignores calls of a driver after its run has ended', async () => {
  const lab = hubLab();
  const kept: { sink?: Sink; host?: DroneHost } = {};
  void lab.run(
    scriptedDriver(async (host) => {
      kept.host = host;
      kept.sink = host.announce(drone());
      throw new DeviceUnreachable('gone');
    }),
  );
  await settle();
  lab.outbox.clear();
  kept.sink?.publish('gps', fix());
  kept.sink?.setOnline(true);
  kept.host?.announce(drone('drone-2')).publish('gps', fix());
  kept.host?.reportKit({ battery: 50 });
  await lab.stop();
  expect(lab.outbox.drafts).toEqual([]);
});

it('refuses an announcement that breaks its schema, names the key and accepts the next one', async () => {
  const lab = hubLab();
  void lab.run(
    scriptedDriver(async (host) => {
      host.announce(drone('')).publish('gps', fix());
      host.announce(drone());
      await aborted(host.signal);
    }),
  );
  await settle();
  expect(lab.hub.assets().map((asset) => asset.key)).toEqual(['drone-1']);
  expect(String(lab.log.lines[0]?.facts['reason'])).toContain('asset_key');
  await lab.stop();
});

it('has a limit on the number of assets', async () => {
  const lab = hubLab();
  void lab.run(
    scriptedDriver(async (host) => {
      for (let index = 0; index <= asset_limits.strangers_per_driver; index += 1)
        host.announce(drone(`drone-${index}`));
      await aborted(host.signal);
    }),
  );
  await settle();
  expect(lab.hub.assets()).toHaveLength(asset_limits.strangers_per_driver);
  expect(lab.log.at('warn')).toHaveLength(1);
  await lab.stop();
});

it('publishes everything retained again on request', async () => {
  const lab = hubLab();
  void lab.run(scriptedDriver(scripts.wellBehaved));
  await settle();
  lab.outbox.clear();
  lab.hub.announceAll();
  expect(lab.outbox.on(channels.asset(id))).toHaveLength(1);
  expect(lab.outbox.on(channels.commands(id))).toMatchObject([{ revision: 1 }]);
  await lab.stop();
});

it('names all its assets after it has published them again, those of an earlier run too, so that others are gone', async () => {
  const lab = hubLab({ announced: [{ channel: channels.asset(id), body: JSON.stringify(earlier) }] });
  lab.hub.announceAll();
  const sent = lab.outbox.drafts.map(({ channel }) => channel);
  expect(sent.indexOf(channels.roster)).toBeGreaterThan(sent.indexOf(channels.asset(id)));
  expect(lab.outbox.on(channels.roster)).toEqual([{ assets: [id] }]);
  await lab.stop();
  const empty = hubLab();
  empty.hub.announceAll();
  expect(empty.outbox.on(channels.roster)).toEqual([{ assets: [] }]);
  await empty.stop();
});

const earlier: Announcement = {
  id,
  asset_key: 'drone-1',
  name: 'Drone drone-1',
  type: 'drone',
  vendor: null,
  model: null,
  firmware: null,
  protocol: 'mavlink',
  status: 'online',
  status_reason: null,
  last_seen_at: '2026-11-20T10:00:00.000Z',
  parent_id: null,
  lat: 47,
  lon: 8,
  alt_m: null,
  whep_url: null,
  feeds: ['gps'],
  driver: 'drones',
};
const announced = [
  { channel: channels.asset(id), body: JSON.stringify(earlier) },
  { channel: channels.commands(id), body: JSON.stringify({ revision: 7, commands: [] }) },
];

it('takes over the assets of an earlier run when the buffer file can be read only later', async () => {
  const other = assetId(kit_id, 'drone-2');
  const lost = { ...earlier, id: other, asset_key: 'drone-2', name: 'Drone drone-2' };
  const lab = hubLab();
  void lab.run(scriptedDriver(scripts.wellBehaved));
  await settle();
  lab.outbox.clear();
  lab.hub.takeUp([...announced, { channel: channels.asset(other), body: JSON.stringify(lost) }]);
  expect(lab.hub.assets()).toMatchObject([
    { key: 'drone-1', status: 'online' },
    { key: 'drone-2', status: 'offline', last_seen_at: earlier.last_seen_at },
  ]);
  expect(lab.outbox.on(channels.asset(other)).at(-1)).toMatchObject({ id: other, status: 'offline' });
  expect(lab.outbox.on(channels.roster)).toEqual([{ assets: [id, other] }]);
  await lab.stop();
});

it('takes over no asset that it has removed before the buffer file could be read', async () => {
  const lab = hubLab();
  const drones = held();
  void lab.run(drones.driver);
  await settle();
  drones.sink.remove();
  lab.outbox.clear();
  lab.hub.takeUp(announced);
  expect(lab.hub.assets()).toEqual([]);
  expect(lab.outbox.drafts).toEqual([]);
  await lab.stop();
});

it('leaves the assets of an earlier run to the next one when the buffer file can be read only at the stop', async () => {
  const lab = hubLab();
  await lab.stop();
  lab.outbox.clear();
  lab.hub.takeUp(announced);
  expect(lab.outbox.drafts).toEqual([]);
});

it('lists an asset of an earlier run as offline until its driver announces it', async () => {
  const lab = hubLab({ announced });
  expect(lab.hub.assets()).toMatchObject([{ status: 'offline', last_seen_at: earlier.last_seen_at }]);
  expect(lab.outbox.on(channels.event(id, 'asset_status'))).toMatchObject([{ status: 'offline' }]);
  void lab.run(scriptedDriver(scripts.wellBehaved));
  await settle();
  expect(lab.outbox.on(channels.asset(id)).at(-1)).toMatchObject({ status: 'online', lat: 47 });
  expect(lab.outbox.on(channels.commands(id))).toMatchObject([{ revision: 8 }]);
  await lab.stop();
});

it('publishes nothing for an asset of an earlier run that was offline already', async () => {
  const body = JSON.stringify({ ...earlier, status: 'offline', status_reason: 'battery swap' });
  const lab = hubLab({ announced: [{ channel: channels.asset(id), body }] });
  expect(lab.outbox.drafts).toEqual([]);
  expect(lab.hub.assets()[0]?.reason).toBe('battery swap');
  await lab.stop();
});

it('takes back what a driver announced that is not configured any more, and what cannot be read', async () => {
  const unreadable = channels.asset('5c3c7e0e-0000-5000-8000-000000000000');
  const lab = hubLab({
    configured: ['cameras'],
    announced: [
      ...announced,
      { channel: unreadable, body: '{"id":' },
      { channel: channels.state, body: '{}' },
    ],
  });
  const cleared = [channels.asset(id), channels.commands(id), unreadable];
  expect(lab.outbox.drafts).toEqual(cleared.map((channel) => ({ channel, lane: 'presence', data: null })));
  expect(lab.log.lines).toMatchObject([
    { level: 'info', facts: { asset_key: earlier.asset_key, name: earlier.name } },
  ]);
  expect(lab.hub.assets()).toEqual([]);
  await lab.stop();
});

it('clears assets announced under an earlier kit_id and keeps those announced since', async () => {
  const other = assetId('0b7f3c52-1d3e-4a7b-8a51-6c1f5a0d9e21', 'drone-1');
  const lab = hubLab({
    announced: [
      ...announced,
      { channel: channels.asset(other), body: JSON.stringify({ ...earlier, id: other }) },
      { channel: channels.commands(other), body: JSON.stringify({ revision: 1, commands: [] }) },
    ],
  });
  expect(lab.outbox.drafts.filter(({ data }) => data === null).map(({ channel }) => channel)).toEqual([
    channels.asset(other),
    channels.commands(other),
  ]);
  expect(lab.hub.assets()).toMatchObject([{ id }]);
  await lab.stop();
});
