/** Radios of a mesh or a link, over ubus or SNMP: many of them, each served independently. */
import { vendorradioFeeds } from '../../src/contract/feeds.ts';
import { serveConfiguredDevices } from '../../src/toolkit/device/configured-devices.ts';
import { defineDriver, type Driver } from '../../src/toolkit/driver/driver.ts';
import { type Limits, limits as usual_limits } from './limits.ts';
import { portOf, type VendorradioOptions, vendorradioOptions } from './options.ts';
import { serveRadio } from './radio-session.ts';
import { assetKeyOf } from './reading.ts';
import { Registry } from './assets/radio-asset.ts';

export const vendorradio = vendorradioWith(usual_limits);

/** The driver with other limits than the default ones. */
export function vendorradioWith(limits: Limits): Driver {
  return defineDriver({
    name: 'vendorradio',
    feeds: vendorradioFeeds,
    options: vendorradioOptions,
    devices: 'radios',
    /** Rejects with DeviceRejected when every radio rejects the connector; runs while at least one does not. */
    async run(options, host, onOptions) {
      const registry = new Registry();
      await serveConfiguredDevices({
        host,
        options,
        onOptions,
        devicesOf: ({ radios }: VendorradioOptions) => radios,
        portOf,
        onEnd: ({ name }) => registry.forget(name),
        serve: async ({ device: radio, entry, bindings, ...served }) =>
          serveRadio({
            ...served,
            radio,
            options,
            limits,
            registry,
            identify: (mac) => bindings.claim(entry, assetKeyOf(mac)),
          }),
      });
    },
  });
}
