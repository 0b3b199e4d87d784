/** Which link carries the traffic, by the routes and rules of a real kernel. */
import { describe, expect, it } from 'vitest';
import { texts } from '../../../../drivers/links/texts.ts';
import { type LinksInside, startLinks } from '../../../support/gateway/links-lab.ts';
import { withNamespace } from '../../../support/gateway/netns.ts';
import { peerMissing, program, rootMissing } from '../../../support/peers.ts';
import { run, withDirectory } from '../../../support/temporary.ts';

const wans = [
  ['wan1', '10.1.0', '2001:db8:1:', '100'],
  ['wan2', '10.2.0', '2001:db8:2:', '700'],
] as const;

type Ip = (words: string) => Promise<string>;

/** Two WANs with default routes, of which wan1 has the lower metric, and a tunnel without any. */
async function withWans(options: object, play: (links: LinksInside, ip: Ip) => Promise<void>): Promise<void> {
  await withNamespace(async ({ prefix }) => {
    const ip: Ip = async (words) => run('ip', ...prefix.slice(1), program('ip'), ...words.split(' '));
    for (const [device, net, net6, metric] of wans) {
      await ip(`link add ${device} type veth peer name ${device}p`);
      for (const end of [device, `${device}p`]) await ip(`link set ${end} up`);
      await ip(`addr add ${net}.2/24 dev ${device}`);
      await ip(`-6 addr add ${net6}:2/64 dev ${device} nodad`);
      await ip(`route add default via ${net}.1 dev ${device} metric ${metric}`);
    }
    await ip('tuntap add tun0 mode tun');
    await ip('link set tun0 up');
    await ip('addr add 10.8.0.2/24 dev tun0');
    await withDirectory(async (dir) => {
      const links = startLinks(prefix, { interval_s: 30, ...options }, dir);
      try {
        await play(links, ip);
      } finally {
        await links.stop();
      }
    });
  });
}

const patience = { timeout: 20_000 };

describe.skipIf(rootMissing() || peerMissing('ip'))('The link of the traffic', () => {
  it.each([
    // openwrt/packages#29198
    [
      'halves of IPv4',
      ['route add 0.0.0.0/1 via 10.2.0.1 dev wan2', 'route add 128.0.0.0/1 via 10.2.0.1 dev wan2'],
    ],
    [
      'what a VPN leaves of the internet beside private networks',
      ['0.0.0.0/5', '8.0.0.0/7', '64.0.0.0/2', '128.0.0.0/3', '192.0.0.0/2'].map(
        (net) => `route add ${net} via 10.2.0.1 dev wan2`,
      ),
    ],
    [
      'a rule for the user of the daemon',
      ['route add default via 10.2.0.1 dev wan2 table 90', 'rule add pref 100 uidrange 0-0 lookup 90'],
    ],
    [
      'a rule by goto',
      [
        'route add default via 10.2.0.1 dev wan2 table 90',
        'rule add pref 200 lookup 90',
        'rule add pref 100 goto 200',
      ],
    ],
    // wg-quick and firewalls: unmarked packets
    [
      'a rule for what is not marked',
      ['route add default via 10.2.0.1 dev wan2 table 90', 'rule add pref 100 not fwmark 0xca6c lookup 90'],
    ],
    // Two interfaces by DHCP without metrics of their own: lxc/incus#3655, systemd/systemd#17698
    [
      'the first of two routes with one metric',
      [
        'route prepend default via 10.2.0.1 dev wan2 metric 100',
        'route append default via 10.1.0.1 dev wan1 proto dhcp metric 100',
      ],
    ],
  ])('follows %s', async (_name, commands) => {
    await withWans({}, async (links, ip) => {
      await expect.poll(() => links.statuses(), patience).toEqual({ wan1: 'online', wan2: 'standby' });
      for (const command of commands) await ip(command);
      await expect.poll(() => links.statuses(), patience).toEqual({ wan1: 'standby', wan2: 'online' });
    });
  });

  it.each([
    ['halves of IPv6', ['::/1', '8000::/1']],
    ['all that is assigned of IPv6', ['2000::/3']],
  ])('follows %s', async (_name, nets) => {
    await withWans({}, async (links, ip) => {
      for (const [device, net6, metric] of [
        ['wan1', '2001:db8:1:', 1],
        ['wan2', '2001:db8:2:', 2],
      ] as const)
        await ip(`-6 route add default via ${net6}:1 dev ${device} metric ${metric}`);
      await ip('route flush default');
      for (const net of nets) await ip(`-6 route add ${net} via 2001:db8:2::1 dev wan2`);
      await expect.poll(() => links.statuses(), patience).toEqual({ wan1: 'standby', wan2: 'online' });
    });
  });

  it('lists a link that has halves of the internet and no default route', async () => {
    await withWans({}, async (links, ip) => {
      await ip('route del default dev wan2');
      for (const net of ['0.0.0.0/1', '128.0.0.0/1']) await ip(`route add ${net} via 10.2.0.1 dev wan2`);
      await expect.poll(() => links.statuses(), patience).toEqual({ wan1: 'standby', wan2: 'online' });
    });
  });

  // ics-openvpn#175
  it('is the one of the host route to the server of a VPN that takes halves of the internet', async () => {
    await withWans({}, async (links, ip) => {
      await ip('route add 203.0.113.1/32 via 10.2.0.1 dev wan2');
      for (const net of ['0.0.0.0/1', '128.0.0.0/1']) await ip(`route add ${net} dev tun0`);
      await expect.poll(() => links.statuses(), patience).toEqual({ wan1: 'standby', wan2: 'online' });
    });
  });
});

describe.skipIf(rootMissing() || peerMissing('ip'))('A name in the configuration', () => {
  it('may be an alternative name of the interface, also after it was unplugged, and one that matches nothing says so', async () => {
    const named = 'enp3s0u1-with-a-name-of-more-than-15-bytes';
    const options = { wan: { [named]: { type: 'cellular', cap_gb: 50 }, wwan7: {} }, ignore: ['uplink'] };
    await withWans(options, async (links, ip) => {
      await ip(`link property add dev wan2 altname ${named}`);
      await ip('link property add dev wan1 altname uplink');
      const { wans: found, reasons } = await links.until(
        'named',
        (report) => report.wans.map(({ name }) => name).join(' ') === 'wan2 wwan7',
      );
      expect(found[0]).toMatchObject({ type: 'cellular' });
      expect(reasons['wwan7']).toContain(
        texts.name_matches_nothing(['wan1', 'wan1p', 'wan2', 'wan2p', 'tun0']).slice(0, 60),
      );
      await ip('link del wan2');
      await links.until('still that one', () => links.statuses()['wan2'] === 'offline');
      expect(Object.keys(links.statuses()).toSorted()).toEqual(['wan2', 'wwan7']);
    });
  });
});
