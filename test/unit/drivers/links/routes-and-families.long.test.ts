/**
 * The verdicts on two WANs under the routes, rules and families that gateways have: a link whose way to the internet works is never
 * offline, and one whose way ends is. Prints a table of the wrong verdicts.
 */
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, describe, expect, it, onTestFinished } from 'vitest';
import { startLinks } from '../../../support/gateway/links-lab.ts';
import { lab_targets, lab_targets_v6, type LabWan, startWanLab } from '../../../support/gateway/wan-lab.ts';
import { peerMissing, rootMissing } from '../../../support/peers.ts';
import { withDirectory } from '../../../support/temporary.ts';

interface Row {
  readonly name: string;
  /** Arguments of `ip` in the gateway. */
  readonly commands: readonly string[];
  readonly targets?: readonly string[];
  readonly wan?: object;
  /** IPv4 goes through a tunnel over the IPv6 of wwan0, as does a connection of this process; `filtered`: no probe is answered. */
  readonly ds_lite?: 'open' | 'filtered';
  readonly verdicts: Readonly<Partial<Record<LabWan, 'online' | 'standby'>>>;
}

const wans = ['sat0', 'wwan0'] as const;
const without_v6 = wans.flatMap((wan) => [
  `-6 route del default dev ${wan}`,
  `-6 addr flush dev ${wan} scope global`,
]);
const without_v4 = wans.map((wan) => `-4 addr flush dev ${wan}`);
const modem_alone = ['addr flush dev sat0', 'link set sat0 down', '-4 addr flush dev wwan0'];
const tunnel = (name: string, address: string) => [
  `tuntap add dev ${name} mode tun`,
  `link set ${name} up`,
  `addr add ${address} dev ${name}`,
];
const over_modem = 'via 10.64.0.1 dev wwan0';
const halves = (way: string) => ['0.0.0.0/1', '128.0.0.0/1'].map((net) => `route add ${net} ${way}`);
const satellite = { sat0: 'online', wwan0: 'standby' } as const;
const modem = { sat0: 'standby', wwan0: 'online' } as const;

const rows: readonly Row[] = [
  { name: 'IPv4 alone', commands: without_v6, verdicts: satellite },
  { name: 'IPv6 alone', commands: without_v4, verdicts: satellite },
  { name: 'targets of IPv4 alone', commands: [], targets: lab_targets, verdicts: satellite },
  // omacom/omarchy#11215: clatd has the IPv4 default
  {
    name: '464XLAT (clat)',
    commands: [...modem_alone, ...tunnel('clat', '192.0.0.1/32'), 'route add default dev clat mtu 1260'],
    verdicts: { wwan0: 'online' },
  },
  { name: 'DS-Lite', commands: modem_alone, ds_lite: 'open', verdicts: { wwan0: 'online' } },
  {
    name: 'DS-Lite with filtered probes',
    commands: modem_alone,
    ds_lite: 'filtered',
    verdicts: { wwan0: 'online' },
  },
  { name: 'NAT64 and DNS64', commands: modem_alone, targets: lab_targets, verdicts: { wwan0: 'online' } },
  // openwrt/packages#29198
  { name: 'halves of IPv4', commands: [...without_v6, ...halves(over_modem)], verdicts: modem },
  // ics-openvpn#175: redirect-gateway def1, the server over the modem
  {
    name: 'a VPN with halves',
    commands: [
      ...without_v6,
      ...tunnel('tun0', '10.8.0.2/24'),
      `route add 203.0.113.200/32 ${over_modem}`,
      ...halves('dev tun0'),
    ],
    verdicts: modem,
  },
  {
    name: 'a VPN in place of the default route',
    commands: [
      ...without_v6,
      ...tunnel('tun0', '10.8.0.2/24'),
      'route add 203.0.113.200/32 via 100.64.0.1 dev sat0',
      'route add default dev tun0 metric 1',
    ],
    verdicts: satellite,
  },
  // wg-quick(8): what is not marked goes into the tunnel, and its own packets by the main table
  {
    name: 'wg-quick',
    commands: [
      ...without_v6,
      ...tunnel('wg0', '10.9.0.2/32'),
      'route add default dev wg0 table 51820',
      'rule add not fwmark 0xca6c lookup 51820 pref 32764',
      'rule add lookup main suppress_prefixlength 0 pref 32763',
    ],
    verdicts: satellite,
  },
  {
    name: 'suppress_prefixlength and another table',
    commands: [
      ...without_v6,
      `route add default ${over_modem} table 90`,
      'rule add lookup main suppress_prefixlength 0 pref 100',
      'rule add lookup 90 pref 200',
    ],
    verdicts: modem,
  },
  // tailscale/tailscale#12667: mwan3 marks
  {
    name: 'a rule for marked packets',
    commands: [
      ...without_v6,
      `route add default ${over_modem} table 3`,
      'rule add fwmark 0x300/0x3f00 lookup 3 pref 2003',
      'rule add fwmark 0x300/0x3f00 unreachable pref 3003',
    ],
    verdicts: satellite,
  },
  {
    name: 'a rule for packets that are not marked',
    commands: [
      ...without_v6,
      `route add default ${over_modem} table 90`,
      'rule add not fwmark 0xca6c lookup 90 pref 100',
    ],
    verdicts: modem,
  },
  {
    name: 'an alternative name',
    commands: ['link property add dev wwan0 altname enp3s0u1-lte'],
    wan: { 'enp3s0u1-lte': { metered: false } },
    verdicts: satellite,
  },
];

const within_ms = 30_000;
/** So many reports are looked at, one each half second and each change. */
const reports_looked_at = 6;

describe.skipIf(rootMissing() || peerMissing('ip', 'nft', 'sysctl', 'dnsmasq'))(
  'The verdict on links',
  () => {
    const table: Record<string, object> = {};
    afterAll(() => console.table(table));

    it.each(rows)('is right with $name', async ({ name, commands, targets, wan, ds_lite, verdicts }) => {
      const lab = await startWanLab();
      onTestFinished(async () => lab.stop());
      const etc = `/etc/netns/${lab.gateway.namespace}`;
      onTestFinished(async () => rm(etc, { recursive: true, force: true }));
      await mkdir(etc, { recursive: true });
      await writeFile(join(etc, 'resolv.conf'), `nameserver ${lab_targets_v6[0]}\n`);
      for (const command of commands) await lab.ip(...command.split(' '));
      if (ds_lite !== undefined) await lab.dsLite();
      if (ds_lite === 'filtered') await lab.filterIcmp('wwan0', 'on');
      await withDirectory(async (dir) => {
        const options = {
          interval_s: 0.5,
          wan: wan ?? { wwan0: { metered: false } },
          probe: {
            targets: targets ?? [...lab_targets, ...lab_targets_v6],
            interval_s: 0.1,
            timeout_ms: 500,
            tcp: ds_lite !== 'filtered',
          },
        };
        const session_ip = ds_lite === undefined ? undefined : lab_targets[0];
        const links = startLinks(lab.gateway.prefix, options, dir, session_ip);
        onTestFinished(async () => links.stop());
        await expect.poll(() => links.statuses(), { timeout: within_ms }).toEqual(verdicts);
        const seen = links.reports.length;
        await expect
          .poll(() => links.reports.length, { timeout: within_ms })
          .toBeGreaterThan(seen + reports_looked_at);
        const wrong = links.reports
          .flatMap((report) => report.wans)
          .filter(({ status }) => status === 'offline');
        const listed = wans.filter((each) => verdicts[each] !== undefined);
        const undead: string[] = [];
        for (const each of listed) {
          await lab.set(each, { blackhole: true });
          await links
            .until(`${each} is offline`, () => links.statuses()[each] === 'offline', within_ms)
            .catch(() => undead.push(each));
        }
        table[name] = { ...verdicts, 'false offline': wrong.length, 'false online': undead.length };
        expect({ wrong, undead }).toEqual({ wrong: [], undead: [] });
      });
    });
  },
);
