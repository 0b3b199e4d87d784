/** Links with one family alone, and links whose probes are filtered, on a gateway with two WANs: real routes, real sockets. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { texts } from '../../../../drivers/links/texts.ts';
import { type LinksInside, startLinks } from '../../../support/gateway/links-lab.ts';
import { lab_targets, lab_targets_v6, startWanLab, type WanLab } from '../../../support/gateway/wan-lab.ts';
import { peerMissing, rootMissing } from '../../../support/peers.ts';
import { withDirectory } from '../../../support/temporary.ts';

const wan = { sat0: { type: 'satellite' }, wwan0: { type: 'cellular', metered: false } };
const quick = { interval_s: 0.1, timeout_ms: 500 };
const within_ms = 20_000;

describe.skipIf(rootMissing() || peerMissing('ip', 'nft', 'sysctl'))('A link', () => {
  let lab: WanLab;
  beforeAll(async () => {
    lab = await startWanLab();
  });
  afterAll(async () => lab.stop());
  afterEach(async () => {
    await lab.filterIcmp('wwan0', 'off');
    await lab.set('wwan0', {});
  });

  async function withLinks(
    { targets, tcp = true, session_ip }: { targets: readonly string[]; tcp?: boolean; session_ip?: string },
    play: (links: LinksInside) => Promise<void>,
  ): Promise<void> {
    await withDirectory(async (dir) => {
      const options = { interval_s: 0.5, wan, probe: { targets, tcp, ...quick } };
      const links = startLinks(lab.gateway.prefix, options, dir, session_ip);
      try {
        await play(links);
      } finally {
        await links.stop();
      }
    });
  }
  const modem = ({ wans }: LinksInside['reports'][number]) => wans.find(({ name }) => name === 'wwan0');

  // omacom/omarchy#11215, xhikarishii/openwrt-ipq#33: the modem has IPv6 alone, and a translator on the gateway has the IPv4 default.
  describe('with IPv6 alone, beside a translator', () => {
    beforeAll(async () => {
      await lab.ip('addr', 'del', '10.64.0.2/24', 'dev', 'wwan0');
      await lab.ip('tuntap', 'add', 'dev', 'clat', 'mode', 'tun');
      await lab.ip('addr', 'add', '192.0.0.1/32', 'dev', 'clat');
      await lab.ip('link', 'set', 'clat', 'up');
      await lab.ip('route', 'add', 'default', 'dev', 'clat', 'metric', '50');
    });
    afterAll(async () => {
      await lab.ip('link', 'del', 'clat');
      await lab.ip('addr', 'add', '10.64.0.2/24', 'dev', 'wwan0');
      await lab.ip('route', 'add', 'default', 'via', '10.64.0.1', 'dev', 'wwan0', 'metric', '700');
    });

    it('is not called dead for targets that it has no family for, and has no figures of them', async () => {
      await withLinks({ targets: lab_targets }, async (links) => {
        const report = await links.until('a verdict', (each) => modem(each)?.status === 'standby', within_ms);
        expect(modem(report)).toMatchObject({ packet_loss_pct: null, availability_pct: null });
        expect(report.reasons['wwan0']).toContain(texts.none_of_its_family('IPv4'));
        await links.until('the other link answers', (each) => each.wans[0]?.latency_ms !== null, within_ms);
        expect(links.reports.map((each) => modem(each)?.status)).not.toContain('offline');
      });
    });

    it('is measured by the targets of its family, and its reason names the family that it lacks', async () => {
      await withLinks({ targets: [...lab_targets, ...lab_targets_v6] }, async (links) => {
        const report = await links.until(
          'figures',
          (each) => modem(each)?.packet_loss_pct === 0 && modem(each)?.latency_ms !== null,
          within_ms,
        );
        expect(modem(report)?.status).toBe('standby');
        expect(report.reasons['wwan0']).toContain(texts.family_missing('IPv4'));
      });
    });
  });

  it('goes on with the other family when it loses one, and is offline when that falls silent too', async () => {
    await withLinks({ targets: [...lab_targets, ...lab_targets_v6] }, async (links) => {
      await links.until('both', (each) => modem(each)?.status === 'standby', within_ms);
      await lab.ip('addr', 'del', '10.64.0.2/24', 'dev', 'wwan0');
      const report = await links.until(
        'without IPv4',
        (each) => each.reasons['wwan0']?.includes(texts.family_missing('IPv4')) === true,
        within_ms,
      );
      expect(modem(report)?.status).toBe('standby');
      await lab.set('wwan0', { blackhole: true });
      const dead = await links.until('offline', (each) => modem(each)?.status === 'offline', within_ms);
      expect(dead.reasons['wwan0']).toContain(`probed ${lab_targets_v6.join(', ')}`);
      await lab.ip('addr', 'add', '10.64.0.2/24', 'dev', 'wwan0');
      await lab.ip('route', 'add', 'default', 'via', '10.64.0.1', 'dev', 'wwan0', 'metric', '700');
    });
  });

  it('whose probes are filtered is online while a connection of this process is answered, and offline when it is not', async () => {
    await lab.filterIcmp('wwan0', 'on');
    await lab.ip('route', 'add', `${lab_targets[1]}/32`, 'via', '10.64.0.1', 'dev', 'wwan0');
    const filtered = { targets: lab_targets, tcp: false };
    await withLinks({ ...filtered, session_ip: lab_targets[1] }, async (links) => {
      const report = await links.until('a verdict', (each) => modem(each)?.status === 'standby', within_ms);
      expect(modem(report)).toMatchObject({ packet_loss_pct: null });
      expect(report.reasons['wwan0']).toContain(texts.only_connections_answer);
      expect(links.reports.map((each) => modem(each)?.status)).not.toContain('offline');
      await lab.set('wwan0', { blackhole: true });
      await links.until('offline', (each) => modem(each)?.status === 'offline', within_ms);
    });
    await lab.set('wwan0', {});
    // The connection leads over the other link.
    await withLinks({ ...filtered, session_ip: lab_targets[0] }, async (links) => {
      await links.until('offline', (each) => modem(each)?.status === 'offline', within_ms);
    });
    await lab.ip('route', 'del', `${lab_targets[1]}/32`);
  });
});
