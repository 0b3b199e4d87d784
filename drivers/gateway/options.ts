/** The options of the gateway driver. */
import { z } from 'zod';

export const gatewayOptions = z.strictObject({
  interval_s: z.number().min(1).max(3_600).default(5).describe('seconds between two reports'),
  name: z
    .string()
    .min(1)
    .optional()
    .describe("shown name of the gateway; the machine's host name when left out"),
  model: z.string().min(1).optional().describe('hardware model; read from the machine when left out'),
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
