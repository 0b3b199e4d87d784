/** The options of the power driver. */
import { z } from 'zod';
import { hostOption } from '../../src/toolkit/driver/host-option.ts';
import { numberIn, portOption } from '../../src/toolkit/driver/option-types.ts';

export const powerOptions = z.strictObject({
  interval_s: numberIn(1, 30)
    .default(10)
    .describe('seconds between two readings; upsd disconnects clients that are silent for a minute'),
  low_pct: numberIn(0, 90).default(20).describe('percent at which a battery that is not charging is low'),
  nut: z
    .strictObject({
      host: hostOption.default('127.0.0.1').describe('host of upsd'),
      port: portOption.default(3_493).describe('TCP port of upsd'),
      ups: z
        .string()
        .regex(/^[\w.-]{1,64}$/u)
        .optional()
        .describe('name of the UPS; optional where upsd has only one'),
      username: z
        .string()
        .regex(/^[\x21-\x7e]{1,64}$/u)
        .optional()
        .describe('user name at upsd, where it requires one'),
      password_file: z
        .string()
        .min(1)
        .optional()
        .describe('file that holds the password of `username`, readable by its owner only'),
    })
    .refine((nut) => (nut.username === undefined) === (nut.password_file === undefined), {
      message: 'give both username and password_file, or none of them',
    })
    .optional()
    .describe('read from Network UPS Tools (upsd) instead of the kernel'),
  roots: z
    .strictObject({ sys: z.string().default('/sys').describe('path of /sys') })
    .prefault({})
    .describe('mount points of kernel file systems, for containers'),
});
export type PowerOptions = z.output<typeof powerOptions>;
