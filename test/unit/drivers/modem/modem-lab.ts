/** A hub with the links that modems may own, and the modem driver on a bus. */
import { z } from 'zod';
import { modem } from '../../../../drivers/modem/modem.ts';
import { gatewayFeeds, noFeeds } from '../../../../src/contract/feeds.ts';
import { defineDriver } from '../../../../src/toolkit/driver/driver.ts';
import { aborted } from '../../../../src/platform/time.ts';
import { eventually } from '../../../support/eventually.ts';
import { hubLab } from '../../../support/kit/hub-lab.ts';
import { watchedDriver } from '../../../support/drivers/watched-driver.ts';

/** Lists the links that modems may own, as the driver of the links does. */
const ports = defineDriver({
  name: 'ports',
  feeds: noFeeds,
  options: z.strictObject({}),
  async run(_options, host) {
    host.reportKit({ wans: ['wwan0', 'wwan1', 'ppp0'].map((name) => ({ name })) });
    await aborted(host.signal);
  },
});

/** The kit's gateway, on which the feed of the modems stands. */
const gateway = defineDriver({
  name: 'gateway',
  feeds: gatewayFeeds,
  options: z.strictObject({}),
  async run(_options, host) {
    host.announce({
      asset_key: 'gw',
      name: 'Gateway',
      type: 'gateway',
      protocol: 'gateway',
      configured: true,
    });
    await aborted(host.signal);
  },
});

export function modemLab(address: string, options: object = {}) {
  const lab = hubLab({ configured: ['modem', 'ports', 'gateway'] });
  void lab.run(ports, 'ports');
  const watched = watchedDriver(modem);
  void lab.run(watched.driver, 'modem', { options: { bus: address, ...options } });
  void lab.run(gateway, 'gateway');
  const view = () => lab.hub.drivers().find(({ name }) => name === 'modem');
  const link = (name = 'wwan0') => lab.hub.links().find((each) => each.name === name);
  return {
    ...lab,
    fixes: watched.fixes,
    view,
    link,
    fact: (name: string) => view()?.facts[name],
    isp: async (name: string, of = 'wwan0') =>
      eventually(`${of} is served by ${name}`, () => link(of)?.isp === name),
    reason: async (why: string | null, of = 'wwan0') =>
      eventually(`${of}: ${why}`, () => link(of)?.type === 'cellular' && link(of)?.reason === why),
    down: async (why: RegExp) =>
      eventually(`down: ${why}`, () => view()?.state === 'down' && why.test(view()?.reason ?? '')),
  };
}
