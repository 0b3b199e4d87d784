/** The built-in drivers. Each is loaded only when the configuration names it. */
import type { Driver } from '../src/toolkit/driver/driver.ts';
import type { Suggest } from '../src/toolkit/driver/suggest.ts';

interface BuiltIn {
  /** The value of `driver:` in the configuration file. */
  readonly name: string;
  readonly load: () => Promise<Driver>;
  /** Of drivers that can look around for their devices. */
  readonly suggest?: Suggest;
}

export const drivers: readonly BuiltIn[] = [
  { name: 'clients', load: async () => (await import('./clients/clients.ts')).clients },
  { name: 'gateway', load: async () => (await import('./gateway/gateway.ts')).gateway },
  { name: 'links', load: async () => (await import('./links/links.ts')).links },
  { name: 'location', load: async () => (await import('./location/location.ts')).location },
  {
    name: 'mavlink',
    load: async () => (await import('./mavlink/mavlink.ts')).mavlink,
    suggest: async (signal) => (await import('./mavlink/suggest.ts')).suggest(signal),
  },
  {
    name: 'onvif',
    load: async () => (await import('./onvif/onvif.ts')).onvif,
    suggest: async (signal) => (await import('./onvif/suggest.ts')).suggest(signal),
  },
  { name: 'power', load: async () => (await import('./power/power.ts')).power },
  {
    name: 'modem',
    load: async () => (await import('./modem/modem.ts')).modem,
    suggest: async (signal) => (await import('./modem/suggest.ts')).suggest(signal),
  },
  { name: 'speedtest', load: async () => (await import('./speedtest/speedtest.ts')).speedtest },
  {
    name: 'starlink',
    load: async () => (await import('./starlink/starlink.ts')).starlink,
    suggest: async (signal) => (await import('./starlink/suggest.ts')).suggest(signal),
  },
  { name: 'vendorcam', load: async () => (await import('./vendorcam/vendorcam.ts')).vendorcam },
  { name: 'vendorradio', load: async () => (await import('./vendorradio/vendorradio.ts')).vendorradio },
];
