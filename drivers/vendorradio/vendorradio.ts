/** Radios of a mesh or a link, over ubus or SNMP: many of them, each served independently. */
import { vendorradioFeeds } from '../../src/contract/feeds.ts';
import { DeviceReports } from '../../src/device/device-reports.ts';
import { openIdentities } from '../../src/device/identities.ts';
import { serveDevices } from '../../src/device/serve-devices.ts';
import { defineDriver, type Driver, type DriverHost } from '../../src/driver/driver.ts';
import { type Limits, limits as usual_limits } from './limits.ts';
import { portOf, type VendorradioOptions, vendorradioOptions } from './options.ts';
import { serveRadio } from './radio-session.ts';
import { assetKeyOf } from './reading.ts';
import { Registry } from './registry.ts';

export const vendorradio = vendorradioWith(usual_limits);

/** The driver with other limits than the default ones. */
export function vendorradioWith(limits: Limits): Driver {
  return defineDriver({
    name: 'vendorradio',
    feeds: vendorradioFeeds,
    options: vendorradioOptions,
    run: async (options, host) => runVendorradio(options, host, limits),
  });
}

/** Rejects with DeviceRejected when every radio rejects the connector; runs while at least one does not. */
async function runVendorradio(
  options: VendorradioOptions,
  host: DriverHost<typeof vendorradioFeeds>,
  limits: Limits,
): Promise<void> {
  const statuses = new Map<string, string>();
  const registry = new Registry();
  const entryOf = (radio: VendorradioOptions['radios'][number]) => ({
    name: radio.name,
    place: `${radio.host}:${portOf(radio)} ${radio.identity ?? ''}`.trim(),
  });
  const bindings = await openIdentities(host, options.radios.map(entryOf));
  const reports = new DeviceReports((devices) => host.reportStatus(Object.fromEntries(statuses), devices));
  await serveDevices(options.radios, host.signal, async (radio, { signal, onState }) => {
    const device = {
      name: radio.name,
      tried: `${radio.host}:${portOf(radio)}`,
      asset_key: () => bindings.keyOf(entryOf(radio)),
    };
    return serveRadio({
      host: { ...host, signal },
      radio,
      options,
      limits,
      registry,
      onState(state) {
        reports.take(device, state);
        onState(state);
      },
      identify: (mac) => bindings.claim(entryOf(radio), assetKeyOf(mac)),
      showStatus(status) {
        if (statuses.get(radio.name) === status) return;
        statuses.set(radio.name, status);
        host.reportStatus(Object.fromEntries(statuses), reports.all);
      },
    });
  });
}
