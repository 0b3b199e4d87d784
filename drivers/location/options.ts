/** The options of the location driver. */
import { z } from 'zod';
import { hostOption } from '../../src/toolkit/driver/host-option.ts';

export const locationOptions = z
  .strictObject({
    gpsd: z
      .strictObject({
        host: hostOption.default('127.0.0.1').describe('where gpsd listens'),
        port: z.int().min(1).max(65_535).default(2_947).describe('TCP port of gpsd'),
        device: z
          .string()
          .min(1)
          .max(255)
          .optional()
          .describe('the receiver that counts, as gpsd names it: /dev/ttyACM0; left out: the best of all'),
        mute_s: z
          .number()
          .min(2)
          .max(600)
          .default(10)
          .describe('a receiver that sends nothing for so long is reported mute'),
      })
      .optional()
      .describe('reads the position from gpsd; {} for gpsd on this machine'),
    manual: z
      .strictObject({
        latitude: z.number().min(-90).max(90).describe('WGS-84, degrees'),
        longitude: z.number().min(-180).max(180).describe('WGS-84, degrees'),
        altitude_m: z
          .number()
          .min(-500)
          .max(10_000)
          .optional()
          .describe('metres above the WGS-84 ellipsoid, not above the sea'),
        pinned: z.boolean().default(false).describe('true: counts before every receiver'),
      })
      .optional()
      .describe('position of the kit while no receiver has one'),
  })
  .refine((options) => options.gpsd !== undefined || options.manual !== undefined, {
    message: 'give gpsd or manual: without both there is no position',
  });
export type LocationOptions = z.output<typeof locationOptions>;
