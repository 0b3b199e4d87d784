/** The built-in drivers. Each is loaded only when the configuration names it. */
import type { Driver } from '../src/driver/driver.ts';

interface BuiltIn {
  /** What `driver:` says in the configuration file. */
  readonly name: string;
  readonly load: () => Promise<Driver>;
}

export const drivers: readonly BuiltIn[] = [
  { name: 'clients', load: async () => (await import('./clients/clients.ts')).clients },
  { name: 'gateway', load: async () => (await import('./gateway/gateway.ts')).gateway },
  { name: 'links', load: async () => (await import('./links/links.ts')).links },
  { name: 'location', load: async () => (await import('./location/location.ts')).location },
  { name: 'mavlink', load: async () => (await import('./mavlink/mavlink.ts')).mavlink },
  { name: 'onvif', load: async () => (await import('./onvif/onvif.ts')).onvif },
  { name: 'power', load: async () => (await import('./power/power.ts')).power },
  { name: 'modem', load: async () => (await import('./modem/modem.ts')).modem },
  { name: 'speedtest', load: async () => (await import('./speedtest/speedtest.ts')).speedtest },
  { name: 'starlink', load: async () => (await import('./starlink/starlink.ts')).starlink },
  { name: 'vendorcam', load: async () => (await import('./vendorcam/vendorcam.ts')).vendorcam },
];
