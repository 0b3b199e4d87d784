/** The kit itself: what stands on `telemetry`. A message may carry any of the parts; what is absent did not change. */
import { z } from 'zod';
import { altitude_m, latitude, longitude } from './assets.ts';
import { address_chars_max, name_chars_max, time_chars_max } from './limits.ts';

/** Entries of one message. */
export const wans_max = 32;
export const clients_max = 512;

const percent = z.number().min(0).max(100);

export const location = z.strictObject({
  latitude,
  longitude,
  altitude: altitude_m.nullish(),
  source: z.enum(['satellite', 'satellite_cached', 'cellular', 'manual']),
  stale: z
    .boolean()
    .describe('the fix was older than 30 seconds when this was sent; a pinned manual position never is'),
  kit_location: z.string().max(name_chars_max).nullish().describe('name of the city'),
});
export type Location = z.output<typeof location>;

export const linkType = z.enum(['satellite', 'cellular', 'ethernet', 'wifi']);
export type LinkType = z.output<typeof linkType>;

export const linkStatus = z.enum(['online', 'offline', 'standby']);
export type LinkStatus = z.output<typeof linkStatus>;

/** Why a link is offline, as one word; the sentence beside it has details. */
export const linkCause = z.enum([
  'removed',
  'switched_off',
  'no_carrier',
  'no_address',
  'no_route',
  'not_connected',
  'no_answer',
  'wrong_answer',
  'obstructed',
  'no_satellite',
  'no_signal',
  'no_sim',
  'not_registered',
  'disabled',
  'device',
]);
export type LinkCause = z.output<typeof linkCause>;

const bitsPerSecond = z.number().nonnegative().nullish().describe('bits per second');
const gigabytes = z
  .number()
  .nonnegative()
  .nullish()
  .describe('gigabytes of 10^9 bytes; null: not yet available');

export const usage = z.strictObject({
  today_rx_gb: gigabytes,
  today_tx_gb: gigabytes,
  month_rx_gb: gigabytes,
  month_tx_gb: gigabytes,
});
export type Usage = z.output<typeof usage>;

/** A WAN link. An entry may carry any part of this: what is left out or null is not known. */
export const link = z.strictObject({
  name: z.string().min(1).max(name_chars_max).describe('interface name'),
  type: linkType.nullish(),
  status: linkStatus.nullish(),
  isp: z.string().max(name_chars_max).nullish(),
  ip: z.string().max(address_chars_max).nullish().describe('public address, as seen from outside'),
  rx_bps: bitsPerSecond,
  tx_bps: bitsPerSecond,
  rx_bps_max: bitsPerSecond,
  tx_bps_max: bitsPerSecond,
  latency_ms: z
    .number()
    .nonnegative()
    .nullish()
    .describe('mean round trip of the answered probes, milliseconds'),
  jitter_ms: z
    .number()
    .nonnegative()
    .nullish()
    .describe('mean difference of successive round trips, milliseconds'),
  packet_loss_pct: percent.nullish(),
  availability_pct: percent
    .nullish()
    .describe('share of the observed time with an answer; time not observed does not count'),
  usage: usage.nullish(),
});
export type Link = z.output<typeof link>;

export const gateway = z.strictObject({
  name: z.string().max(name_chars_max),
  model: z.string().max(name_chars_max).nullish(),
  cpu_pct: percent.nullish(),
  mem_pct: percent.nullish(),
  uptime_s: z.number().nonnegative().nullish().describe('seconds since the gateway booted'),
});
export type Gateway = z.output<typeof gateway>;

/** A device on the kit's local network. */
export const client = z.strictObject({
  name: z.string().max(name_chars_max).nullish(),
  ip: z.string().max(address_chars_max).nullish(),
  mac: z.string().max(address_chars_max).describe('lower case, colons'),
  type: z.string().max(name_chars_max).nullish().describe('wired or wireless'),
});
export type Client = z.output<typeof client>;

export const speedtest = z.strictObject({
  download_mbps: z.number().nonnegative().nullable(),
  upload_mbps: z.number().nonnegative().nullable(),
  latency_ms: z.number().nonnegative().nullable(),
  timestamp: z.iso.datetime().max(time_chars_max),
});
export type Speedtest = z.output<typeof speedtest>;

export const kitTelemetry = z.strictObject({
  location: location.optional(),
  wans: z.array(link).max(wans_max).optional().describe('all links of the kit, each time'),
  battery: percent.nullish().describe('percent; null: no battery sensor'),
  battery_charging: z.boolean().nullish(),
  gateway: gateway.optional(),
  clients: z.array(client).max(clients_max).optional().describe('all devices, each time'),
  speedtest: speedtest.optional().describe('the last result'),
});
export type KitTelemetry = z.output<typeof kitTelemetry>;

/** What a driver reports of the kit: any of the parts. */
export type KitPart = Readonly<Partial<KitTelemetry>>;
