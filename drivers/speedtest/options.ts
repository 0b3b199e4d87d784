/** The options of the speedtest driver. */
import { z } from 'zod';

const interfaceName = z.string().min(1).max(64);
const httpUrl = z
  .url({ protocol: /^https?$/u })
  .max(2_048)
  .refine((url) => !/^https?:\/\/[^/]*@/u.test(url), 'may not hold a user name or password');

export const server = z.strictObject({
  name: z.string().min(1).max(64).describe('what the command calls it'),
  download_url: httpUrl.describe('answers GET with data; {bytes} in it is replaced by the number wanted'),
  upload_url: httpUrl
    .optional()
    .describe('reads the body of a POST to its end; the upload is not measured when left out'),
  ca_file: z.string().min(1).optional().describe('PEM file of the authority, where it is a private one'),
});
export type Server = z.output<typeof server>;

export const speedtestOptions = z.strictObject({
  servers: z.array(server).min(1).max(16).describe('the first one is used when the command names none'),
  bytes_max: z
    .int()
    .min(200_000)
    .max(1_000_000_000)
    .default(25_000_000)
    .describe('data in each direction at most, bytes'),
  seconds_max: z.number().min(1).max(60).default(10).describe('time for each direction at most'),
  connections: z
    .int()
    .min(1)
    .max(8)
    .default(4)
    .describe('connections at once: one alone does not fill a link with a long delay'),
  metered: z
    .array(interfaceName)
    .max(32)
    .default([])
    .describe(
      'links, by name, that a speed test refuses to use as it refuses cellular and satellite links; neither wan.NAME.metered of links nor uplink.metered changes that, since 50 MB cost more than probes do',
    ),
  roots: z
    .strictObject({
      proc: z.string().default('/proc').describe('where /proc is'),
      sys: z.string().default('/sys').describe('where /sys is'),
    })
    .prefault({})
    .describe('where the kernel shows itself, for containers'),
});
export type SpeedtestOptions = z.output<typeof speedtestOptions>;
