/** The options of the clients driver. */
import { z } from 'zod';
import { clients_max } from '../../src/contract/kit.ts';
import { numberIn, textUpTo, wholeIn } from '../../src/toolkit/driver/option-types.ts';

const interfaceName = textUpTo(64);

export const clientsOptions = z.strictObject({
  interval_s: numberIn(1, 3_600).default(30).describe('seconds between two looks'),
  interfaces: z
    .array(interfaceName)
    .max(16)
    .default([])
    .describe('the local network: bridges or ports; when empty, every bridge that has a hardware port'),
  access_point_ports: z
    .array(interfaceName)
    .max(32)
    .default([])
    .describe('ports with an access point behind them: whether a device there is wired is not known'),
  leases: z
    .array(z.string().min(1))
    .max(16)
    .default(['/var/lib/misc/dnsmasq.leases', '/tmp/dhcp.leases'])
    .describe('lease files of dnsmasq; NetworkManager keeps its own, which are found'),
  present_s: numberIn(10, 86_400)
    .default(300)
    .describe('seconds without a sign of a device after which it is no longer listed'),
  names: z
    .boolean()
    .default(true)
    .describe('false: host names stay on the kit, since people call their phones after themselves'),
  entries_max: wholeIn(1, clients_max).default(256).describe('devices that are reported at most'),
  roots: z
    .strictObject({
      sys: z.string().default('/sys').describe('where /sys is'),
      var: z.string().default('/var').describe('where /var is'),
    })
    .prefault({})
    .describe('where the system shows itself, for containers'),
});
export type ClientsOptions = z.output<typeof clientsOptions>;
