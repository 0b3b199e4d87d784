/** The kit's telemetry: merged, paced, and with the edges of its links. */
import { expect, it, vi } from 'vitest';
import { edgeEvents } from '../../../../../src/contract/feeds.ts';
import { assetId } from '../../../../../src/contract/identity.ts';
import { kitTelemetry, type Link } from '../../../../../src/contract/kit.ts';
import { channels } from '../../../../../src/contract/topics.ts';
import { DeviceUnreachable } from '../../../../../src/platform/errors.ts';
import { states_at_once } from '../../../../../src/kit/hub/kit/kit.ts';
import { edge_rate, gone_max, KnownLinks, linkEdges } from '../../../../../src/kit/hub/kit/link-edges.ts';
import { sleep } from '../../../../../src/platform/time.ts';
import { drone, scriptedDriver } from '../../../../fakes/scripted-driver.ts';
import { kit_id } from '../../../../support/kit/hub-lab.ts';
import { testHub } from '../../../../support/kit/test-hub.ts';
import { useFakeTime } from '../../../../support/fake-time.ts';
import { texts } from '../../../../../src/kit/hub/texts.ts';

useFakeTime();

const wan = (name: string, status: Link['status']): Link => ({ name, type: 'cellular', status });
const gateway = (cpu_pct: number) => ({ gateway: { name: 'kit-7', cpu_pct } });

async function start(more: Parameters<typeof testHub>[0] = {}) {
  const lab = testHub(more);
  const host = await lab.hostOf();
  return { ...lab, report: host.reportKit, host };
}

it('publishes a whole snapshot first and then only the parts that changed, at most once a second', async () => {
  const { outbox, report } = await start();
  report({ battery: 80, battery_charging: null });
  report(gateway(1));
  await vi.advanceTimersByTimeAsync(1_000);
  for (let cpu = 2; cpu < 50; cpu += 1) report(gateway(cpu));
  report({ battery: 80 });
  await vi.advanceTimersByTimeAsync(5_000);
  expect(outbox.on(channels.telemetry)).toEqual([
    { battery: 80, battery_charging: null, gateway: { name: 'kit-7', cpu_pct: 1 } },
    { gateway: { name: 'kit-7', cpu_pct: 49 } },
  ]);
  for (const data of outbox.on(channels.telemetry)) kitTelemetry.parse(data);
});

it('publishes a whole snapshot at least every minute although nothing changes', async () => {
  const { outbox, report } = await start();
  report(gateway(1));
  await vi.advanceTimersByTimeAsync(185_000);
  expect(outbox.on(channels.telemetry)).toHaveLength(4);
});

it('keeps one snapshot a minute while the kit is offline, and publishes one as soon as it is back', async () => {
  const { outbox, report, link } = await start();
  report({ battery: 80 });
  report(gateway(0));
  await vi.advanceTimersByTimeAsync(1_000);
  link.online = false;
  outbox.clear();
  for (let second = 1; second <= 150; second += 1) {
    report(gateway(second % 100));
    await vi.advanceTimersByTimeAsync(1_000);
  }
  expect(outbox.on(channels.telemetry)).toHaveLength(2);
  expect(outbox.on(channels.telemetry)[0]).toHaveProperty('battery', 80);
  outbox.clear();
  link.online = true;
  await vi.advanceTimersByTimeAsync(1_000);
  expect(outbox.on(channels.telemetry)).toMatchObject([{ battery: 80, gateway: { cpu_pct: 50 } }]);
});

it('publishes a whole snapshot when everything is to be announced again', async () => {
  const { hub, outbox, report } = await start();
  report({ battery: 80 });
  report(gateway(0));
  await vi.advanceTimersByTimeAsync(1_000);
  outbox.clear();
  hub.announceAll();
  await vi.advanceTimersByTimeAsync(1_000);
  expect(outbox.on(channels.telemetry)).toMatchObject([{ battery: 80, gateway: { cpu_pct: 0 } }]);
});

it('drops a part that breaks its schema, logs it once, and takes the others', async () => {
  const { hub, log, report } = await start();
  report({ battery: 180, ...gateway(3) });
  report({ battery: 181 });
  expect(hub.kit()).toEqual(gateway(3));
  expect(log.lines.filter((line) => line.level === 'error')).toMatchObject([{ facts: { part: 'battery' } }]);
});

it('keeps a part with the driver that reported it first until that driver is lost', async () => {
  const lab = await start({ configured: ['drones', 'second'] });
  const other = await lab.hostOf('second');
  other.reportKit({ battery: 10 });
  lab.report({ battery: 90 });
  lab.report({ battery: 91 });
  expect(lab.hub.kit()).toEqual({ battery: 10 });
  expect(lab.log.at('warn')).toEqual([texts.telemetry_twice]);
  other.reportKit({ battery: 11 });
  expect(lab.hub.kit()).toEqual({ battery: 11 });
  await lab.stop();
  expect(lab.hub.kit()).toEqual({});
});

it('does not repeat what a lost driver reported', async () => {
  const lab = testHub();
  void lab.run(
    scriptedDriver(async (host, run_number) => {
      if (run_number === 1) host.reportKit({ battery: 50 });
      throw new DeviceUnreachable('gone');
    }),
  );
  await vi.advanceTimersByTimeAsync(300_000);
  expect(lab.outbox.on(channels.telemetry)).toEqual([]);
});

it('reports the battery as unknown when its driver is lost', async () => {
  const lab = testHub();
  void lab.run(
    scriptedDriver(async (host, run_number) => {
      if (run_number > 1) throw new DeviceUnreachable('still gone');
      host.reportKit({ battery: 50 });
      await sleep(5_000, host.signal);
      throw new DeviceUnreachable('gone');
    }),
  );
  await vi.advanceTimersByTimeAsync(10_000);
  expect(lab.outbox.on(channels.telemetry)).toEqual([{ battery: 50 }, { battery: null }]);
});

it('keeps the type of a link when the driver of its dish is lost, and reports why the rest is unknown', async () => {
  const lab = await start({ configured: ['drones', 'dish'] });
  lab.report({ wans: [{ name: 'eth1', type: 'ethernet', status: 'online' }] });
  void lab.run(
    scriptedDriver(async (host) => {
      host.reportLink({ name: 'eth1', type: 'satellite', isp: 'Skylink', latency_ms: 40 });
      await sleep(1_000, host.signal);
      throw new DeviceUnreachable('the dish does not answer');
    }),
    'dish',
  );
  await vi.advanceTimersByTimeAsync(0);
  expect(lab.hub.links()).toMatchObject([
    { type: 'satellite', isp: 'Skylink', latency_ms: 40, reason: null, cause: null },
  ]);
  await vi.advanceTimersByTimeAsync(1_500);
  const [link] = lab.hub.links();
  expect(link).toMatchObject({ type: 'satellite', isp: 'Skylink', reason: 'dish: the dish does not answer' });
  expect(link?.latency_ms).toBeUndefined();
});

it('reports the edges of links on the asset of the gateway', async () => {
  const { outbox, host, report } = await start();
  report({ wans: [wan('wwan0', 'online')] });
  report({ wans: [wan('wwan0', 'offline')] });
  const nameless = channels.event(assetId(kit_id, 'gateway'), 'link_status');
  expect(outbox.on(nameless)).toEqual([
    { name: 'wwan0', type: 'cellular', status: 'offline', reason: null, cause: null, down_s: null },
  ]);
  host.announce(drone('gateway:1234', { type: 'gateway', protocol: 'gateway' }));
  report({ wans: [wan('wwan0', 'online')] });
  const events = outbox.on(channels.event(assetId(kit_id, 'gateway:1234'), 'link_status'));
  expect(events).toMatchObject([{ status: 'online' }]);
  for (const event of events) edgeEvents.link_status.parse(event);
});

it('calls for an attempt to connect when the link that leads to the broker is back, and for no other', async () => {
  const onLinkBack = vi.fn<() => void>();
  const { link, report } = await start({ onLinkBack });
  link.carrier = 'sat0';
  report({ wans: [wan('eth0', 'offline'), wan('sat0', 'offline')] });
  report({ wans: [wan('eth0', 'online'), wan('sat0', 'offline')] });
  expect(onLinkBack).not.toHaveBeenCalled();
  report({ wans: [wan('eth0', 'online'), wan('sat0', 'standby')] });
  report({ wans: [wan('eth0', 'online'), wan('sat0', 'online')] });
  expect(onLinkBack).toHaveBeenCalledTimes(1);
});

it('counts a link on standby as in use while it carries the connection to the broker', async () => {
  const { hub, link, outbox, host, report } = await start();
  report({ wans: [wan('eth0', 'online'), wan('usb0', 'offline'), wan('sat0', 'standby')] });
  host.reportLink({ name: 'sat0', reason: 'traffic uses another link' });
  link.carrier = 'sat0';
  await vi.advanceTimersByTimeAsync(1_000);
  expect(hub.links()).toMatchObject([
    { name: 'eth0', status: 'online' },
    { name: 'sat0', status: 'online', reason: texts.carries_broker },
    { name: 'usb0', status: 'offline' },
  ]);
  expect(hub.kit().wans?.map(({ name, status }) => `${name} ${status}`)).toEqual([
    'eth0 online',
    'sat0 online',
    'usb0 offline',
  ]);
  link.carrier = 'usb0';
  await vi.advanceTimersByTimeAsync(1_000);
  expect(hub.links()).toMatchObject([{ name: 'eth0' }, { status: 'offline' }, { status: 'standby' }]);
  const events = outbox.on(channels.event(assetId(kit_id, 'gateway'), 'link_status'));
  expect(events).toMatchObject([
    { name: 'sat0', status: 'online' },
    { name: 'sat0', status: 'standby' },
  ]);
});

it('reports a missing link offline once, and its return online', () => {
  const first = linkEdges(new Map(), [wan('wwan0', 'online'), wan('eth1', null)], 0);
  expect(first.edges).toEqual([]);
  const gone = linkEdges(first.states, [], 5_000);
  expect(gone.edges).toMatchObject([{ name: 'wwan0', status: 'offline', reason: texts.interface_gone }]);
  const still_gone = linkEdges(gone.states, [], 10_000);
  expect(still_gone.edges).toEqual([]);
  expect(linkEdges(still_gone.states, [wan('wwan0', 'online')], 65_000).edges).toMatchObject([
    { status: 'online', cause: 'removed', down_s: 60 },
  ]);
});

it('counts an outage from the last answer to the first, as the driver reports them', () => {
  const known = new KnownLinks();
  const lastsOf = (name: string): number => known.lasts_ms(name);
  const up = linkEdges(new Map(), [wan('wwan0', 'online')], 0, lastsOf);
  known.note('links', { name: 'wwan0', cause: 'no_answer', lasts_ms: 4_900 });
  const down = linkEdges(up.states, [wan('wwan0', 'offline')], 10_000, lastsOf);
  known.note('links', { name: 'wwan0', lasts_ms: 1_000 });
  const back = linkEdges(down.states, [wan('wwan0', 'online')], 36_100, lastsOf);
  expect(back.edges).toMatchObject([{ status: 'online', down_s: 30 }]);
  expect(known.fill(wan('wwan0', 'online'))).not.toHaveProperty('lasts_ms');
});

it('reports a limited number of changes of a link that flaps, and in the end the status that it has', async () => {
  const { outbox, report } = await start();
  const steady = wan('eth0', 'online');
  report({ wans: [steady, wan('wwan0', 'online')] });
  const flaps = 1_000;
  for (let flap = 1; flap <= flaps; flap += 1) {
    report({ wans: [steady, wan('wwan0', flap % 2 === 0 ? 'online' : 'standby')] });
    await vi.advanceTimersByTimeAsync(100);
  }
  const events = (): readonly unknown[] =>
    outbox.on(channels.event(assetId(kit_id, 'gateway'), 'link_status'));
  const minutes = (flaps * 100) / 60_000;
  expect(events().length).toBeLessThanOrEqual(edge_rate.at_once + minutes);
  report({ wans: [wan('eth0', 'offline')] });
  expect(events().at(-1)).toMatchObject({ name: 'eth0', status: 'offline' });
  await vi.advanceTimersByTimeAsync(60_000);
  expect(events().at(-1)).toMatchObject({ name: 'wwan0', status: 'offline', cause: 'removed' });
  const before = events().length;
  await vi.advanceTimersByTimeAsync(600_000);
  expect(events()).toHaveLength(before);
});

it('sends a limited number of telemetry messages for a state that flaps, and in the end the state that it has', async () => {
  const { outbox, report } = await start();
  const seconds = 600;
  for (let second = 0; second < seconds; second += 1) {
    report({ battery_charging: second % 2 === 0 });
    await vi.advanceTimersByTimeAsync(1_000);
  }
  const [pace_s, whole_s] = [5, 60];
  const sent = outbox.on(channels.telemetry);
  expect(sent.length).toBeLessThanOrEqual(states_at_once + seconds / pace_s + seconds / whole_s);
  expect(sent.length).toBeGreaterThan(states_at_once);
  report({ battery_charging: true });
  await vi.advanceTimersByTimeAsync(pace_s * 1_000);
  expect(outbox.on(channels.telemetry).at(-1)).toEqual({ battery_charging: true });
});

it('remembers a limited number of missing links', () => {
  let states = linkEdges(new Map(), [], 0).states;
  for (let index = 0; index < 10 * gone_max; index += 1) {
    ({ states } = linkEdges(states, [wan(`ppp${index}`, 'online')], index));
  }
  expect(states.size).toBe(gone_max + 1);
});

it('reports an interruption with the cause behind the interface, and how long it took', async () => {
  const wan = (status: Link['status']) => [{ name: 'sat0', type: 'satellite' as const, status }];
  const known = new KnownLinks();
  const cause = () => known.cause('sat0');
  expect(cause()).toBeNull();
  known.note('links', { name: 'sat0', cause: 'no_answer' });
  expect(cause()).toBe('no_answer');
  known.note('dish', { name: 'sat0', cause: 'obstructed' });
  expect(cause()).toBe('obstructed');
  const up = linkEdges(new Map(), wan('online'), 0);
  const down = linkEdges(up.states, [{ ...wan('offline')[0], name: 'sat0', cause: cause() }], 1_000);
  expect(down.edges).toMatchObject([{ status: 'offline', cause: 'obstructed', down_s: null }]);
  const later = linkEdges(
    down.states,
    [{ ...wan('offline')[0], name: 'sat0', cause: 'no_satellite' }],
    5_000,
  );
  expect(later.edges).toEqual([]);
  // The dish is well again before the first probe is answered.
  const almost = linkEdges(
    later.states,
    [{ ...wan('offline')[0], name: 'sat0', cause: 'no_answer' }],
    13_000,
  );
  const back = linkEdges(almost.states, wan('standby'), 13_400);
  expect(back.edges).toMatchObject([{ status: 'standby', cause: 'no_satellite', down_s: 12.4 }]);
  expect(edgeEvents.link_status.parse(back.edges[0])).toEqual(back.edges[0]);
});
