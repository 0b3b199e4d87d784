/** The links driver on a gateway with two WANs: real routes, real carriers, real answers. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { texts } from '../../../../drivers/links/texts.ts';
import { type LinksInside, startLinks } from '../../../support/gateway/links-lab.ts';
import { withNamespace } from '../../../support/gateway/netns.ts';
import { peerMissing, program, rootMissing } from '../../../support/peers.ts';
import { makeDirectory, run, withDirectory } from '../../../support/temporary.ts';
import {
  lab_ports,
  lab_public_ip,
  lab_targets,
  startWanLab,
  type WanLab,
} from '../../../support/gateway/wan-lab.ts';

const interval_s = 0.1;
const timeout_ms = 500;
/** The timeout and four probes, a report, and what a busy machine may add. */
const lost_within_ms = timeout_ms + 4 * interval_s * 1_000 + 3_000;
/** Routes and carriers are events: no probe is waited for. */
const event_within_ms = 2_000;

describe.skipIf(rootMissing() || peerMissing('ip', 'nft', 'sysctl'))('links on two WANs', () => {
  let lab: WanLab;
  let links: LinksInside;

  beforeAll(async () => {
    lab = await startWanLab();
    await lab.set('sat0', { rtt_ms: 120 });
    await lab.set('wwan0', { rtt_ms: 20 });
    const options = {
      interval_s: 30,
      wan: { sat0: { type: 'satellite' }, wwan0: { type: 'cellular', metered: false } },
      probe: { targets: lab_targets, interval_s, timeout_ms },
      public_ip: { stun: [{ ip: lab_targets[0], port: lab_ports.stun }] },
    };
    links = startLinks(lab.gateway.prefix, options, await makeDirectory());
  });
  afterAll(async () => {
    await links.stop();
    await lab.stop();
  });

  const becomes = async (sat0: string, wwan0: string, ms: number) =>
    links.until(
      `sat0 ${sat0}, wwan0 ${wwan0}`,
      ({ wans }) =>
        wans.find(({ name }) => name === 'sat0')?.status === sat0 &&
        wans.find(({ name }) => name === 'wwan0')?.status === wwan0,
      ms,
    );

  it('finds the selected and the standby link, each with its own address', async () => {
    await becomes('online', 'standby', 20_000);
    const { wans } = await links.until('addresses', (each) => each.wans.every(({ ip }) => ip));
    const ips = Object.fromEntries(wans.map(({ name, ip }) => [name, ip]));
    expect(ips).toEqual(lab_public_ip);
    expect(wans.map(({ name }) => name)).toEqual(['sat0', 'wwan0']);
  });

  it('reports the loss and the return of a WAN within seconds', async () => {
    await lab.set('sat0', { blackhole: true });
    const { reasons } = await becomes('offline', 'standby', lost_within_ms);
    expect(reasons['sat0']).toBeTruthy();
    await lab.set('sat0', { rtt_ms: 120 });
    await becomes('online', 'standby', 15_000);
    expect(links.reports.at(-1)?.reasons['sat0']).toBeNull();
  });

  it('follows the route to the other WAN and back immediately', async () => {
    const to = async (metric: string) =>
      lab.ip('route', 'add', 'default', 'via', '10.64.0.1', 'dev', 'wwan0', 'metric', metric);
    await to('50');
    // IPv6 still prefers the satellite until its route changes too.
    await becomes('online', 'online', event_within_ms);
    await lab.ip('-6', 'route', 'del', 'default', 'dev', 'sat0');
    const { wans } = await becomes('standby', 'online', event_within_ms);
    expect(wans[0]?.name).toBe('wwan0');
    await lab.ip('route', 'del', 'default', 'dev', 'wwan0', 'metric', '50');
    await lab.ip('-6', 'route', 'add', 'default', 'via', '2001:db8:a::1', 'dev', 'sat0', 'metric', '100');
    await becomes('online', 'standby', event_within_ms);
  });

  it('follows a rule for all traffic, and not one for marked traffic', async () => {
    await lab.ip('route', 'add', 'default', 'via', '10.64.0.1', 'dev', 'wwan0', 'table', '77');
    await lab.ip('rule', 'add', 'fwmark', '0x100/0x3f00', 'lookup', '77', 'priority', '1000');
    await lab.ip('rule', 'add', 'lookup', '77', 'priority', '2000');
    await becomes('online', 'online', event_within_ms);
    await lab.ip('rule', 'del', 'priority', '2000');
    const { reasons } = await becomes('online', 'standby', event_within_ms);
    expect(reasons['wwan0']).toBe(texts.other_link_selected);
    await lab.ip('rule', 'del', 'priority', '1000');
    await lab.ip('route', 'flush', 'table', '77');
  });

  it('reports a lost carrier immediately although the route stays', async () => {
    await lab.carrier('sat0', 'off');
    const { reasons, wans } = await becomes('offline', 'standby', event_within_ms);
    expect(reasons['sat0']).toMatch(/^no carrier/u);
    // What was measured before says nothing of a link without a carrier: no delay, and no loss of 0 %.
    expect(wans.find(({ name }) => name === 'sat0')).toMatchObject({ latency_ms: null });
    expect(wans.find(({ name }) => name === 'sat0')?.packet_loss_pct).not.toBe(0);
    await expect(lab.ip('route', 'show', 'default')).resolves.toContain('dev sat0');
    await lab.carrier('sat0', 'on');
    await becomes('online', 'standby', 15_000);
  });

  it('keeps a link offline whose carrier returns without answers', async () => {
    await lab.carrier('sat0', 'off');
    await becomes('offline', 'standby', event_within_ms);
    await lab.set('sat0', { blackhole: true });
    const before = links.reports.length;
    await lab.carrier('sat0', 'on');
    await links.until(
      'probes failed after the carrier returned',
      ({ reasons }) => /probed/u.test(reasons['sat0'] ?? ''),
      lost_within_ms + 3_000,
    );
    const statuses = links.reports
      .slice(before)
      .map(({ wans }) => wans.find(({ name }) => name === 'sat0')?.status);
    expect(new Set(statuses)).toEqual(new Set(['offline']));
    await lab.set('sat0', { rtt_ms: 120 });
    await becomes('online', 'standby', 15_000);
  });

  it('keeps a link offline whose address returns without answers', async () => {
    await lab.ip('addr', 'del', '10.64.0.2/24', 'dev', 'wwan0');
    await lab.ip('-6', 'addr', 'flush', 'dev', 'wwan0');
    await becomes('online', 'offline', event_within_ms);
    await lab.set('wwan0', { blackhole: true });
    const before = links.reports.length;
    await lab.ip('addr', 'add', '10.64.0.2/24', 'dev', 'wwan0');
    await lab.ip('route', 'add', 'default', 'via', '10.64.0.1', 'dev', 'wwan0', 'metric', '700');
    await links.until(
      'probes failed after the address returned',
      ({ reasons }) => /probed/u.test(reasons['wwan0'] ?? ''),
      lost_within_ms + 3_000,
    );
    const statuses = links.reports
      .slice(before)
      .map(({ wans }) => wans.find(({ name }) => name === 'wwan0')?.status);
    expect(new Set(statuses)).toEqual(new Set(['offline']));
    await lab.set('wwan0', { rtt_ms: 20 });
    await becomes('online', 'standby', 15_000);
  });

  it('keeps an unplugged modem as offline, and treats a new device of its name as new', async () => {
    await lab.unplug('wwan0');
    const { reasons, wans } = await becomes('online', 'offline', event_within_ms);
    expect(reasons['wwan0']).toBe(texts.interface_missing);
    expect(wans.find(({ name }) => name === 'wwan0')?.latency_ms).toBeNull();
    await lab.plug('wwan0');
    await lab.set('wwan0', { rtt_ms: 20 });
    await becomes('online', 'standby', 15_000);
  });

  it('never gives one WAN the figures of the other', () => {
    const latencies = (name: string) =>
      links.reports.flatMap(({ wans }) => wans.find((each) => each.name === name)?.latency_ms ?? []);
    expect(latencies('sat0').length).toBeGreaterThan(0);
    expect(latencies('wwan0').length).toBeGreaterThan(0);
    for (const ms of latencies('sat0')) expect(ms).toBeGreaterThanOrEqual(119);
  });
});

describe.skipIf(rootMissing() || peerMissing('ip'))('links over netlink in a plain namespace', () => {
  it('counts a multipath route as all of its links, none through a tunnel, and what carries a tunnel', async () => {
    await withNamespace(async ({ prefix }) => {
      const ip = async (...args: readonly string[]) => run('ip', ...prefix.slice(1), program('ip'), ...args);
      for (const [device, net] of [
        ['wan1', '10.1.0'],
        ['wan2', '10.2.0'],
        ['lan1', '10.3.0'],
      ] as const) {
        await ip('link', 'add', device, 'type', 'veth', 'peer', 'name', `${device}p`);
        await ip('addr', 'add', `${net}.2/24`, 'dev', device);
        for (const end of [device, `${device}p`]) await ip('link', 'set', end, 'up');
      }
      await ip('tuntap', 'add', 'tun0', 'mode', 'tun');
      await ip('addr', 'add', '10.9.0.2/24', 'dev', 'tun0');
      await ip('link', 'set', 'tun0', 'up');
      await withDirectory(async (dir) => {
        const links = startLinks(prefix, { interval_s: 30 }, dir);
        try {
          await links.until('no link yet', ({ wans }) => wans.length === 0);
          const hops = [
            'nexthop',
            'via',
            '10.1.0.1',
            'weight',
            '1',
            'nexthop',
            'via',
            '10.2.0.1',
            'weight',
            '3',
          ];
          await ip('route', 'add', 'default', 'metric', '10', ...hops);
          await ip('route', 'add', 'default', 'dev', 'tun0');
          const { wans } = await links.until('two links', (each) => each.wans.length === 2, event_within_ms);
          expect(wans.map(({ name, status }) => [name, status])).toEqual([
            ['wan2', 'online'],
            ['wan1', 'online'],
          ]);
          await ip('route', 'del', 'default', 'metric', '10');
          await links.until('none is routed', () =>
            Object.values(links.statuses()).every((status) => status === 'offline'),
          );
          await ip('route', 'add', '192.0.2.7/32', 'via', '10.1.0.1', 'dev', 'wan1');
          const carrying = await links.until(
            'the link that carries the tunnel',
            () => links.statuses()['wan1'] === 'online',
            event_within_ms,
          );
          expect(carrying.reasons['wan1']).toBe(texts.below_tunnel);
          await ip('link', 'del', 'wan1');
          const { reasons } = await links.until('gone', (each) =>
            /interface not found/u.test(each.reasons['wan1'] ?? ''),
          );
          expect(reasons['wan2']).toBe(texts.no_default_route);
        } finally {
          await links.stop();
        }
      });
    });
  });

  it('sees routes by nexthop objects where the kernel does not name their paths', async () => {
    await withNamespace(async ({ prefix }) => {
      const ip = async (...args: readonly string[]) => run('ip', ...prefix.slice(1), program('ip'), ...args);
      await run('ip', ...prefix.slice(1), program('sysctl'), '-qw', 'net.ipv4.nexthop_compat_mode=0');
      for (const [device, net] of [
        ['wan1', '10.1.0'],
        ['wan2', '10.2.0'],
      ] as const) {
        await ip('link', 'add', device, 'type', 'veth', 'peer', 'name', `${device}p`);
        await ip('addr', 'add', `${net}.2/24`, 'dev', device);
        for (const end of [device, `${device}p`]) await ip('link', 'set', end, 'up');
      }
      await ip('nexthop', 'add', 'id', '1', 'via', '10.1.0.1', 'dev', 'wan1');
      await ip('nexthop', 'add', 'id', '2', 'via', '10.2.0.1', 'dev', 'wan2');
      await ip('nexthop', 'add', 'id', '10', 'group', '1,1/2,3');
      await withDirectory(async (dir) => {
        const links = startLinks(prefix, { interval_s: 30 }, dir);
        try {
          await links.until('no link yet', ({ wans }) => wans.length === 0);
          await ip('route', 'add', 'default', 'nhid', '1');
          await links.until('one link', () => links.statuses()['wan1'] === 'online', event_within_ms);
          await ip('route', 'replace', 'default', 'nhid', '10');
          const { wans } = await links.until('two links', (each) => each.wans.length === 2, event_within_ms);
          expect(wans.map(({ name, status }) => [name, status])).toEqual([
            ['wan2', 'online'],
            ['wan1', 'online'],
          ]);
          await ip('nexthop', 'replace', 'id', '10', 'group', '1');
          await links.until('one again', () => links.statuses()['wan2'] === 'offline', event_within_ms);
        } finally {
          await links.stop();
        }
      });
    });
  });
});
