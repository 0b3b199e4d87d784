/** Reolink cameras, recorders and hubs over their HTTP interface: many hosts, each served independently. */
import { vendorcamFeeds } from '../../src/contract/feeds.ts';
import { serveConfiguredDevices } from '../../src/toolkit/device/configured-devices.ts';
import { texts } from '../../src/toolkit/device/texts.ts';
import { defineDriver, type Driver } from '../../src/toolkit/driver/driver.ts';
import { serveHost } from './host-session.ts';
import { type Limits, limits as usual_limits } from './limits.ts';
import { portOf, type VendorcamOptions, vendorcamOptions } from './options.ts';

export const vendorcam = vendorcamWith(usual_limits);

/** The driver with other limits than the default ones. */
export function vendorcamWith(limits: Limits): Driver {
  return defineDriver({
    name: 'vendorcam',
    feeds: vendorcamFeeds,
    options: vendorcamOptions,
    devices: 'hosts',
    /** Rejects with DeviceRejected when every host rejects the connector; runs while at least one does not. */
    async run(options, host, onOptions) {
      /** Which host serves which asset. */
      const owners = new Map<string, string>();
      await serveConfiguredDevices({
        host,
        options,
        onOptions,
        devicesOf: ({ hosts }: VendorcamOptions) => hosts,
        portOf,
        weaknessOf: ({ name, tls, legacy_tls }) => (tls && legacy_tls ? texts.legacy_tls(name) : undefined),
        onEnd({ name }) {
          for (const [asset_key, owner] of owners) if (owner === name) owners.delete(asset_key);
        },
        serve: async ({ device: camera, entry, bindings, ...served }) =>
          serveHost({
            ...served,
            options,
            camera,
            limits,
            identify(asset_keys) {
              const bound = bindings.keyOf(entry);
              const asset_key = asset_keys.find((key) => key === bound) ?? asset_keys[0];
              const refusal = bindings.claim(entry, asset_key);
              return refusal === undefined ? { asset_key } : { refusal };
            },
            claim(asset_key) {
              if (bindings.isOthers(entry, asset_key)) return false;
              const owner = owners.get(asset_key) ?? camera.name;
              owners.set(asset_key, owner);
              return owner === camera.name;
            },
          }),
      });
    },
  });
}
