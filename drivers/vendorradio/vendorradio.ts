/** Radios of a mesh or a link, over ubus or SNMP: many of them, each served independently. */
import { vendorradioFeeds } from '../../src/contract/feeds.ts';
import { DeviceReports } from '../../src/device/device-reports.ts';
import { openIdentities } from '../../src/device/identities.ts';
import { serveDevices } from '../../src/device/serve-devices.ts';
import { defineDriver, type Driver, type DriverHost, type OnOptions } from '../../src/driver/driver.ts';
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
    devices: 'radios',
    run: async (options, host, onOptions) => runVendorradio({ options, host, onOptions, limits }),
  });
}

interface VendorradioRun {
  readonly options: VendorradioOptions;
  readonly host: DriverHost<typeof vendorradioFeeds>;
  readonly onOptions: OnOptions<VendorradioOptions>;
  readonly limits: Limits;
}

/** Rejects with DeviceRejected when every radio rejects the connector; runs while at least one does not. */
async function runVendorradio({ options, host, onOptions, limits }: VendorradioRun): Promise<void> {
  const statuses = new Map<string, string>();
  const registry = new Registry();
  const entryOf = (radio: VendorradioOptions['radios'][number]) => ({
    name: radio.name,
    place: `${radio.host}:${portOf(radio)} ${radio.identity ?? ''}`.trim(),
  });
  const bindings = await openIdentities(host, options.radios.map(entryOf));
  const reports = new DeviceReports((devices) => host.reportStatus(Object.fromEntries(statuses), devices));
  await serveDevices({
    host,
    bindings,
    devices: options.radios,
    onStart: (change) =>
      onOptions(({ radios }) => {
        bindings.keep(radios.map(entryOf));
        return change(radios);
      }),
    onEnd({ name }) {
      registry.forget(name);
      statuses.delete(name);
      reports.forget(name);
    },
    serve: async (radio, session) => {
      const { host: member } = session;
      const device = {
        name: radio.name,
        tried: `${radio.host}:${portOf(radio)}`,
        asset_key: () => bindings.keyOf(entryOf(radio)),
      };
      return serveRadio({
        host: member,
        radio,
        options,
        limits,
        registry,
        onState: reports.follow(device, session),
        identify: (mac) => bindings.claim(entryOf(radio), assetKeyOf(mac)),
        showStatus(status) {
          if (member.signal.aborted || statuses.get(radio.name) === status) return;
          statuses.set(radio.name, status);
          host.reportStatus(Object.fromEntries(statuses), reports.all);
        },
      });
    },
  });
}
