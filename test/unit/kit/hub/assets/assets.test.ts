/** What the cloud is told of assets, and when. */
import { expect, it, vi } from 'vitest';
import { announcement, type Announcement } from '../../../../../src/contract/assets.ts';
import { assetId } from '../../../../../src/contract/identity.ts';
import { channels } from '../../../../../src/contract/topics.ts';
import { DeviceUnreachable } from '../../../../../src/platform/errors.ts';
import { aborted } from '../../../../../src/platform/time.ts';
import {
  command,
  drone,
  type DroneHost,
  fix,
  scriptedDriver,
  scripts,
} from '../../../../fakes/scripted-driver.ts';
import { kit_id } from '../../../../support/kit/hub-lab.ts';
import { testHub } from '../../../../support/kit/test-hub.ts';
import { useFakeTime } from '../../../../support/fake-time.ts';
import { texts } from '../../../../../src/kit/hub/texts.ts';

useFakeTime();

const id = assetId(kit_id, 'drone-1');
const settle = async (): Promise<unknown> => vi.advanceTimersByTimeAsync(0);
type Sink = ReturnType<DroneHost['announce']>;

it('announces an asset with its commands and reports that it is online', async () => {
  const lab = testHub();
  void lab.run(scriptedDriver(scripts.wellBehaved));
  await settle();
  const [told] = lab.outbox.on(channels.asset(id));
  expect(announcement.parse(told)).toMatchObject({ id, status: 'online', driver: 'drones', lat: null });
  expect(lab.outbox.on(channels.commands(id))).toMatchObject([{ revision: 1, commands: [{ name: 'arm' }] }]);
  expect(lab.outbox.on(channels.event(id, 'asset_status'))).toEqual([{ status: 'online', reason: null }]);
  expect(lab.outbox.drafts.map((draft) => draft.lane)).toEqual(['presence', 'alarm', 'presence']);
});

it('publishes nothing when a driver repeats its announcement', async () => {
  const lab = testHub();
  const host = await lab.hostOf();
  host.announce(drone());
  lab.outbox.clear();
  host.announce(drone());
  expect(lab.outbox.drafts).toEqual([]);
  host.announce(drone('drone-1', { model: 'X500' }), [command('arm')]);
  expect(lab.outbox.on(channels.asset(id))).toMatchObject([{ model: 'X500' }]);
  expect(lab.outbox.on(channels.commands(id))).toMatchObject([{ revision: 2 }]);
});

it('reports an asset offline once when its driver fails, and online again without a restart', async () => {
  const lab = testHub();
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
  const lab = testHub();
  const host = await lab.hostOf();
  host.announce(drone('drone-1', { offline_reason: 'no camera at channel 2' }));
  const offline = { status: 'offline', status_reason: 'no camera at channel 2' };
  expect(lab.outbox.on(channels.asset(id))).toMatchObject([offline]);
  expect(lab.outbox.on(channels.event(id, 'asset_status'))).toEqual([]);
  host.announce(drone());
  expect(lab.outbox.on(channels.event(id, 'asset_status'))).toMatchObject([{ status: 'online' }]);
});

it('computes the parent from the key of the parent', async () => {
  const lab = testHub();
  (await lab.hostOf()).announce(drone('gimbal', { parent_key: 'drone-1' }));
  expect(lab.outbox.on(channels.asset(assetId(kit_id, 'gimbal')))).toMatchObject([{ parent_id: id }]);
});

it('shows where viewers find the stream, and never the address of the stream itself', async () => {
  const urls = new Map<string, string>();
  const wanted: (string | null)[] = [];
  const lab = testHub({
    streams: {
      want: (_key, url) => void wanted.push(url),
      urlOf: (key) => urls.get(key) ?? null,
      healthOf: () => undefined,
    },
  });
  const rtsp_url = 'rtsp://viewer:s3cret@192.0.2.7/sub';
  const sink = (await lab.hostOf()).announce(drone('drone-1', { rtsp_url }));
  expect(wanted).toEqual([rtsp_url]);
  expect(lab.outbox.on(channels.asset(id))).toMatchObject([{ whep_url: null }]);
  urls.set('drone-1', 'http://192.0.2.1:8889/drone-1/whep');
  lab.hub.streamChanged('drone-1');
  expect(lab.outbox.on(channels.asset(id)).at(-1)).toMatchObject({ whep_url: urls.get('drone-1') });
  sink.remove();
  expect(wanted.at(-1)).toBeNull();
  expect(JSON.stringify(lab.outbox.drafts)).not.toContain('s3cret');
});

it('shows the first position at once and later ones once a minute', async () => {
  const lab = testHub();
  const sink = (await lab.hostOf()).announce(drone());
  lab.outbox.clear();
  for (let index = 0; index < 100; index += 1) sink.setPosition({ lat: 47 + index / 1_000, lon: 8 });
  expect(lab.outbox.on(channels.asset(id))).toMatchObject([{ lat: 47, lon: 8, alt_m: null }]);
  await vi.advanceTimersByTimeAsync(180_000);
  expect(lab.outbox.on(channels.asset(id))).toMatchObject([{ lat: 47 }, { lat: 47.099 }]);
  sink.setPosition({ lat: Number.NaN, lon: 8 });
  sink.setPosition({ lat: 91, lon: 8 });
  await vi.advanceTimersByTimeAsync(60_000);
  expect(lab.outbox.on(channels.asset(id))).toHaveLength(2);
});

it('counts a feed message as a sign of life', async () => {
  const lab = testHub();
  const sink = (await lab.hostOf()).announce(drone());
  await vi.advanceTimersByTimeAsync(5_000);
  const before = lab.hub.assets()[0]?.last_seen_at ?? '';
  sink.publish('gps', fix());
  expect(Date.parse(lab.hub.assets()[0]?.last_seen_at ?? '') - Date.parse(before)).toBe(5_000);
});

it('clears both retained messages of a removed asset and ignores its sink', async () => {
  const lab = testHub();
  const sink = (await lab.hostOf()).announce(drone());
  lab.outbox.clear();
  sink.remove();
  sink.publish('gps', fix());
  sink.setOnline(true);
  sink.remove();
  const cleared = [channels.asset(id), channels.commands(id)];
  expect(lab.outbox.drafts).toEqual(cleared.map((channel) => ({ channel, lane: 'presence', data: null })));
  expect(lab.hub.assets()).toEqual([]);
});

it('keeps an asset with the driver that announced it first', async () => {
  const lab = testHub({ configured: ['drones', 'others'] });
  const first = (await lab.hostOf()).announce(drone());
  const second = (await lab.hostOf('others')).announce(drone('drone-1', { name: 'Impostor' }));
  lab.outbox.clear();
  second.publish('gps', fix());
  second.setOnline(false, 'no');
  second.remove();
  expect(lab.outbox.drafts).toEqual([]);
  expect(lab.log.lines.filter((line) => line.level === 'warn')).toMatchObject([
    { facts: { asset_key: 'drone-1', reason: 'driver drones announced an asset with this key first' } },
  ]);
  first.publish('gps', fix());
  expect(lab.outbox.on(channels.feed(id, 'gps'))).toHaveLength(1);
});

it('ignores calls of a driver after its run has ended', async () => {
  const lab = testHub();
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
  const lab = testHub();
  const host = await lab.hostOf();
  host.announce(drone('')).publish('gps', fix());
  host.announce(drone());
  expect(lab.hub.assets().map((asset) => asset.key)).toEqual(['drone-1']);
  expect(String(lab.log.lines[0]?.facts['reason'])).toContain('asset_key');
});

it('publishes everything retained again on request', async () => {
  const lab = testHub();
  void lab.run(scriptedDriver(scripts.wellBehaved));
  await settle();
  lab.outbox.clear();
  lab.hub.announceAll();
  expect(lab.outbox.on(channels.asset(id))).toHaveLength(1);
  expect(lab.outbox.on(channels.commands(id))).toMatchObject([{ revision: 1 }]);
});

it('names all its assets after it has published them again, those of an earlier run too, so that others are gone', async () => {
  const lab = testHub({ announced: [{ channel: channels.asset(id), body: JSON.stringify(earlier) }] });
  lab.hub.announceAll();
  const sent = lab.outbox.drafts.map(({ channel }) => channel);
  expect(sent.indexOf(channels.roster)).toBeGreaterThan(sent.indexOf(channels.asset(id)));
  expect(lab.outbox.on(channels.roster)).toEqual([{ assets: [id] }]);
  const empty = testHub();
  empty.hub.announceAll();
  expect(empty.outbox.on(channels.roster)).toEqual([{ assets: [] }]);
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
  const lab = testHub();
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
});

it('takes over no asset that it has removed before the buffer file could be read', async () => {
  const lab = testHub();
  const sink = (await lab.hostOf()).announce(drone());
  sink.remove();
  lab.outbox.clear();
  lab.hub.takeUp(announced);
  expect(lab.hub.assets()).toEqual([]);
  expect(lab.outbox.drafts).toEqual([]);
});

it('leaves the assets of an earlier run to the next one when the buffer file can be read only at the stop', async () => {
  const lab = testHub();
  await lab.stop();
  lab.outbox.clear();
  lab.hub.takeUp(announced);
  expect(lab.outbox.drafts).toEqual([]);
});

it('lists an asset of an earlier run as offline until its driver announces it', async () => {
  const lab = testHub({ announced });
  expect(lab.hub.assets()).toMatchObject([{ status: 'offline', last_seen_at: earlier.last_seen_at }]);
  expect(lab.outbox.on(channels.event(id, 'asset_status'))).toMatchObject([{ status: 'offline' }]);
  void lab.run(scriptedDriver(scripts.wellBehaved));
  await settle();
  expect(lab.outbox.on(channels.asset(id)).at(-1)).toMatchObject({ status: 'online', lat: 47 });
  expect(lab.outbox.on(channels.commands(id))).toMatchObject([{ revision: 8 }]);
});

it('publishes nothing for an asset of an earlier run that was offline already', async () => {
  const body = JSON.stringify({ ...earlier, status: 'offline', status_reason: 'battery swap' });
  const lab = testHub({ announced: [{ channel: channels.asset(id), body }] });
  expect(lab.outbox.drafts).toEqual([]);
  expect(lab.hub.assets()[0]?.reason).toBe('battery swap');
});

it('takes back what a driver announced that is not configured any more, and what cannot be read', async () => {
  const unreadable = channels.asset('5c3c7e0e-0000-5000-8000-000000000000');
  const lab = testHub({
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
});

it('clears assets announced under an earlier kit_id and keeps those announced since', async () => {
  const other = assetId('0b7f3c52-1d3e-4a7b-8a51-6c1f5a0d9e21', 'drone-1');
  const lab = testHub({
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
});
