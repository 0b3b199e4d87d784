/** Checks with expected answers on a gateway with two WANs: a real portal, a real name server, real filters. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { checkDns } from '../../../../../drivers/links/checks/dns.ts';
import { checkHttp } from '../../../../../drivers/links/checks/checker.ts';
import { linkChecks } from '../../../../../drivers/links/options.ts';
import { texts } from '../../../../../drivers/links/texts.ts';
import { startLinks } from '../../../../support/gateway/links-lab.ts';
import {
  lab_dns64_name,
  lab_inner_name,
  lab_many_name,
  lab_name,
  lab_ports,
  lab_targets,
  lab_targets_v6,
  startWanLab,
  type WanLab,
} from '../../../../support/gateway/wan-lab.ts';
import { peerMissing, rootMissing } from '../../../../support/peers.ts';
import { withDirectory } from '../../../../support/temporary.ts';

const [target] = lab_targets;
const page = `http://${target}:${lab_ports.what_is_my_ip}/generate_204`;
const list = [{ url: page }, { name: lab_name.name, server: target, addresses: [lab_name.address] }];
const wan = { sat0: { type: 'satellite' }, wwan0: { type: 'cellular', metered: false } };
const quick = { interval_s: 0.1, timeout_ms: 500 };
/** The reason of the dead link to which the default route leads. */
const stillInUse = (reason: string): string => `${reason}; ${texts.still_in_use}`;
/** Two rounds of checks, whose second comes after the interval, and what a busy machine may add. */
const within_ms = 20_000;

describe.skipIf(rootMissing() || peerMissing('ip', 'nft', 'sysctl', 'dnsmasq'))('Checks of links', () => {
  let lab: WanLab;
  beforeAll(async () => {
    lab = await startWanLab();
  });
  afterAll(async () => lab.stop());
  beforeEach(async () => {
    await lab.set('sat0', { rtt_ms: 120 });
    await lab.set('wwan0', { rtt_ms: 20 });
  });
  afterEach(async () => lab.portal('sat0', 'off'));

  async function withLinks(
    options: object,
    play: (links: ReturnType<typeof startLinks>) => Promise<void>,
  ): Promise<void> {
    await withDirectory(async (dir) => {
      const links = startLinks(lab.gateway.prefix, { interval_s: 1, wan, ...options }, dir);
      try {
        await play(links);
      } finally {
        await links.stop();
      }
    });
  }
  const satellite = (status: string) => (report: { wans: readonly { name: string; status?: unknown }[] }) =>
    report.wans.some((link) => link.name === 'sat0' && link.status === status);

  it('report a portal that answers TCP in place of everybody, and the return of the internet', async () => {
    const options = {
      probe: { targets: lab_targets, ...quick },
      checks: { list, interval_s: 1, timeout_ms: 2_000 },
    };
    await withLinks(options, async (links) => {
      await links.until('online', satellite('online'), within_ms);
      await lab.portal('sat0', 'on');
      const { wans, reasons } = await links.until(
        'offline, by a check',
        (report) => satellite('offline')(report) && !/probed/u.test(report.reasons['sat0'] ?? 'probed'),
        within_ms,
      );
      expect(wans.find(({ name }) => name === 'sat0')).toMatchObject({
        latency_ms: null,
        packet_loss_pct: 100,
      });
      expect(
        [
          texts.http_unexpected(page, 302, { expected: 204, to: 'http://portal.example/login' }),
          texts.dns_unexpected(lab_name.name, target, '192.0.2.80'),
        ].map(stillInUse),
      ).toContain(reasons['sat0']);
      expect(reasons['wwan0']).toBe(texts.dead_link_selected('sat0'));
      expect(links.statuses()['wwan0']).toBe('standby');
      await lab.portal('sat0', 'off');
      await links.until('online again', satellite('online'), within_ms);
    });
  });

  it('report a link that passes echoes and nothing else', async () => {
    const options = {
      probe: { targets: lab_targets, ...quick },
      checks: { list, interval_s: 1, timeout_ms: 1_000 },
    };
    await withLinks(options, async (links) => {
      await links.until('online', satellite('online'), within_ms);
      await lab.portal('sat0', 'echo');
      const { reasons } = await links.until('offline', satellite('offline'), within_ms);
      const silences = [texts.http_silent(page), texts.dns_silent(lab_name.name, target)];
      expect(silences.map(stillInUse)).toContain(reasons['sat0']);
    });
  });

  it('keep a link online whose echoes are filtered while TCP may not stand in, until it is dead', async () => {
    await lab.filterIcmp('sat0', 'on');
    const options = {
      probe: { targets: lab_targets, ...quick, tcp: false },
      checks: { list, interval_s: 1, timeout_ms: 1_000 },
    };
    await withLinks(options, async (links) => {
      const { reasons, wans } = await links.until('online', satellite('online'), within_ms);
      expect(reasons['sat0']).toBe(texts.only_checks_answer);
      expect(wans.find(({ name }) => name === 'sat0')).toMatchObject({ packet_loss_pct: null });
      await lab.set('sat0', { blackhole: true });
      await links.until('offline', satellite('offline'), within_ms);
    });
  });

  it('look a name up by the family of the link, at a name server that translates', async () => {
    const url = `http://${lab_dns64_name.name}:${lab_ports.what_is_my_ip}/generate_204`;
    const { list: checks } = linkChecks.parse({
      list: [{ url, resolver: lab_targets_v6[0] }, { url: page }],
    });
    const leave = lab.enter();
    try {
      const way = { device: 'wwan0', families: [6], timeout_ms: 2_000 } as const;
      const { signal } = new AbortController();
      const [check] = checks;
      expect(check?.kind === 'http' && (await checkHttp(check, { ...way, signal }))).toBeNull();
    } finally {
      leave();
    }
  });

  it('decide alone where no probe targets are configured', async () => {
    await withLinks({ checks: { list, interval_s: 1, timeout_ms: 1_000 } }, async (links) => {
      await links.until('online', satellite('online'), within_ms);
      await lab.set('sat0', { blackhole: true });
      const { wans } = await links.until('offline', satellite('offline'), within_ms);
      expect(wans.find(({ name }) => name === 'sat0')?.packet_loss_pct).toBe(100);
    });
  });

  it('ask over the device that they were given, find the server of a name over it too, and name who is silent', async () => {
    const leave = lab.enter();
    const { signal } = new AbortController();
    const [http, named, dns] = linkChecks.parse({
      list: [
        { url: page },
        {
          url: `http://${lab_name.name}:${lab_ports.what_is_my_ip}/`,
          resolver: target,
          status: 200,
          body: '203.0.113.20',
        },
        list[1],
      ],
    }).list;
    if (http?.kind !== 'http' || named?.kind !== 'http' || dns?.kind !== 'dns')
      throw new Error('other checks');
    try {
      const way = (device: string) => ({ device, families: [4, 6] as const, timeout_ms: 5_000, signal });
      expect(await checkHttp(http, way('sat0'))).toBeNull();
      // The server answers with the address that it sees: that of the link.
      expect(await checkHttp(named, way('wwan0'))).toBeNull();
      expect(await checkHttp(named, way('sat0'))).toBe(texts.http_other_text(named.url.href));
      expect(await checkDns(dns, way('wwan0'))).toBeNull();
      await lab.set('wwan0', { blackhole: true });
      const silent = { ...way('wwan0'), timeout_ms: 200 };
      expect(await checkHttp(named, silent)).toBe(texts.dns_silent(lab_name.name, target));
      expect(await checkHttp(http, silent)).toBe(texts.http_silent(page));
      await lab.set('wwan0', {});
      await expect(checkDns(dns, way('none0'))).rejects.toThrow('none0');
    } finally {
      leave();
    }
  });

  it('go to no private address that a name server answers, and name three of many in their reason', async () => {
    const leave = lab.enter();
    const way = {
      device: 'wwan0',
      families: [4, 6] as const,
      timeout_ms: 5_000,
      signal: new AbortController().signal,
    };
    const [inner, many, dns] = linkChecks.parse({
      list: [
        { url: `http://${lab_inner_name.name}/reboot`, resolver: target },
        { url: `http://${lab_many_name.name}/`, resolver: target },
        { name: lab_many_name.name, server: target },
      ],
    }).list;
    if (inner?.kind !== 'http' || many?.kind !== 'http' || dns?.kind !== 'dns')
      throw new Error('other checks');
    try {
      const { name, address } = lab_inner_name;
      expect(await checkHttp(inner, way)).toBe(texts.dns_unexpected(name, target, address));
      for (const outcome of [await checkHttp(many, way), await checkDns(dns, way)]) {
        expect(outcome).toMatch(/answered (192\.168\.7\.\d+, ){2}192\.168\.7\.\d+ and 17 more for/u);
        expect(outcome?.length).toBeLessThan(250);
      }
    } finally {
      leave();
    }
  });
});
