/** The section `low_battery` of the configuration file: what the kit does without while its battery is low. */
import { z } from 'zod';

const hertz = z.number().min(0).max(50);

export const lowBatterySection = z
  .strictObject({
    below_pct: z
      .number()
      .min(1)
      .max(90)
      .default(20)
      .describe('charge from which down the kit saves power, while it is not charging'),
    until_pct: z
      .number()
      .min(1)
      .max(100)
      .default(30)
      .describe(
        'charge at which it stops saving; it also stops when the battery has been charging for a minute',
      ),
    rates_hz: z
      .record(z.string().min(1), hertz)
      .default({ default: 0.2 })
      .describe('messages a second and asset at most, by feed; `default` for the others'),
    speed_tests: z.boolean().default(false).describe('false: speed tests are refused'),
    camera_video: z
      .boolean()
      .default(false)
      .describe('false: cameras report events only, without video and snapshots'),
  })
  .refine(({ below_pct, until_pct }) => until_pct > below_pct, {
    path: ['until_pct'],
    message: 'must be above below_pct, so that the kit does not change its mind all the time',
  });
export type LowBatteryConfig = z.output<typeof lowBatterySection>;
