/** Radios of a mesh or a link, over ubus or SNMP: many of them, each served for itself. */
import { vendorradioFeeds } from '../../src/contract/feeds.ts';
import { defineDriver, type Driver, type DriverHost } from '../../src/driver/driver.ts';
import { DeviceRejected } from '../../src/errors.ts';
import { keepRadio } from './keeper.ts';
import { type Limits, limits as usual_limits } from './limits.ts';
import { type VendorradioOptions, vendorradioOptions } from './options.ts';
import { Registry } from './registry.ts';

export const vendorradio = vendorradioWith(usual_limits);

/** The driver with other waits than the usual ones. */
export function vendorradioWith(limits: Limits): Driver {
  return defineDriver({
    name: 'vendorradio',
    feeds: vendorradioFeeds,
    options: vendorradioOptions,
    run: async (options, host) => runVendorradio(options, host, limits),
  });
}

/** Rejects with DeviceRejected once every radio has refused us: as long as one is left, the driver goes on. */
async function runVendorradio(
  options: VendorradioOptions,
  host: DriverHost<typeof vendorradioFeeds>,
  limits: Limits,
): Promise<void> {
  const states = new Map<string, string>();
  const registry = new Registry();
  const keeping = options.radios.map(async (radio) => {
    const tell = (state: string): void => {
      if (states.get(radio.name) === state) return;
      states.set(radio.name, state);
      host.reportStatus(Object.fromEntries(states));
    };
    const refusal = await keepRadio({ host, radio, options, limits, registry, tell });
    return refusal === undefined ? [] : [`${radio.name} ${refusal}`];
  });
  const refusals = (await Promise.all(keeping)).flat();
  if (!host.signal.aborted) throw new DeviceRejected(refusals.join('; '));
}
