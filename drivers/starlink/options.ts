/** The options of the Starlink driver. */
import { isIP } from 'node:net';
import { z } from 'zod';
import { numberIn, portOption, textUpTo } from '../../src/toolkit/driver/option-types.ts';

/** IFNAMSIZ of the kernel is 16 bytes with the closing zero. */
const interfaceName = textUpTo(15);

export const starlinkOptions = z.strictObject({
  host: z
    .string()
    .refine((text) => isIP(text) !== 0, 'must be an IP address, such as 192.168.100.1')
    .default('192.168.100.1')
    .describe('IP address of the dish; every dish has the same one'),
  port: portOption.default(9_200).describe('TCP port of the gRPC server of the dish'),
  web_port: portOption
    .default(9_201)
    .describe('TCP port of gRPC-Web, which is tried where the dish does not answer gRPC, as since June 2026'),
  link: interfaceName.describe('name of the network interface that leads to this dish, such as eth1'),
  bind: z
    .boolean()
    .default(true)
    .describe(
      'true: the dish is asked through the interface `link`, so that of two dishes with one address each is asked on its own; false: by the routing table',
    ),
  interval_s: numberIn(1, 600).default(10).describe('seconds between two looks at the dish'),
  timeout_s: numberIn(0.1, 60)
    .default(5)
    .describe('seconds that the dish has for each answer; then it counts as lost'),
  commands: z
    .array(z.enum(['reboot', 'stow', 'unstow']))
    .max(3)
    .default([])
    .describe('what operators may do with this dish: reboot, stow, unstow; nothing by default'),
  location: z
    .boolean()
    .default(false)
    .describe("true: the dish is asked for its position, which must be allowed in the dish's app first"),
});
export type StarlinkOptions = z.output<typeof starlinkOptions>;
