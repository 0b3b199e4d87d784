/** The options of the gateway driver. */
import { z } from 'zod';
import { busAddress } from '../../src/toolkit/device/dbus/address.ts';
import { numberIn } from '../../src/toolkit/driver/option-types.ts';

export const gatewayOptions = z.strictObject({
  interval_s: numberIn(1, 3_600).default(5).describe('seconds between two reports'),
  name: z
    .string()
    .min(1)
    .optional()
    .describe("shown name of the gateway; the machine's host name when left out"),
  model: z.string().min(1).optional().describe('hardware model; read from the machine when left out'),
  commands: z
    .array(z.enum(['reboot', 'support_bundle']))
    .max(2)
    .default([])
    .describe(
      'reboot: lets operators restart this machine; support_bundle: lets them order the bundle of `kit-connector support-bundle` into the cloud; none by default',
    ),
  bus: busAddress.describe('D-Bus address on which systemd-logind is found, for reboot'),
  roots: z
    .strictObject({
      proc: z.string().default('/proc').describe('where /proc is'),
      sys: z.string().default('/sys').describe('where /sys is'),
      etc: z.string().default('/etc').describe('where /etc is'),
    })
    .prefault({})
    .describe('where the kernel and the system show themselves, for containers'),
});
export type GatewayOptions = z.output<typeof gatewayOptions>;
