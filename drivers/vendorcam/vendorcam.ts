/** Reolink cameras, recorders and hubs over their HTTP interface: many hosts, each served for itself. */
import { vendorcamFeeds } from '../../src/contract/feeds.ts';
import { defineDriver, type Driver, type DriverHost } from '../../src/driver/driver.ts';
import { DeviceRejected } from '../../src/errors.ts';
import { keepHost } from './keeper.ts';
import { type Limits, limits as usual_limits } from './limits.ts';
import { type VendorcamOptions, vendorcamOptions } from './options.ts';

export const vendorcam = vendorcamWith(usual_limits);

/** The driver with other waits than the usual ones. */
export function vendorcamWith(limits: Limits): Driver {
  return defineDriver({
    name: 'vendorcam',
    feeds: vendorcamFeeds,
    options: vendorcamOptions,
    run: async (options, host) => runVendorcam(options, host, limits),
  });
}

/** Rejects with DeviceRejected once every host has refused us: as long as one is left, the driver goes on. */
async function runVendorcam(
  options: VendorcamOptions,
  host: DriverHost<typeof vendorcamFeeds>,
  limits: Limits,
): Promise<void> {
  const states = new Map<string, string>();
  /** Which host serves which asset. */
  const owners = new Map<string, string>();
  const keeping = options.hosts.map(async (camera) => {
    const refusal = await keepHost({
      host,
      options,
      camera,
      limits,
      claim(asset_key) {
        const owner = owners.get(asset_key) ?? camera.name;
        owners.set(asset_key, owner);
        return owner === camera.name;
      },
      tell(state) {
        states.set(camera.name, state);
        host.reportStatus(Object.fromEntries(states));
      },
    });
    return refusal === undefined ? undefined : `${camera.name} ${refusal}`;
  });
  const refusals = (await Promise.all(keeping)).filter((refusal) => refusal !== undefined);
  if (!host.signal.aborted) throw new DeviceRejected(refusals.join('; '));
}
