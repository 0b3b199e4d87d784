/**
 * The parts of a kit as clients read them. What the interface does not allow to be null is absent when it is not known:
 * kits send null for it, and `known` leaves it out.
 */
import { z } from '@hono/zod-openapi';
import { latitude, longitude } from '../../contract/assets.ts';
import { type Link, linkStatus, linkType } from '../../contract/kit.ts';

const percent = z.number().min(0).max(100);
const rate = z.number().nonnegative().optional().describe('bits per second');
const milliseconds = z.number().nonnegative().optional().describe('milliseconds');
const gigabytes = z
  .number()
  .nonnegative()
  .nullable()
  .describe('gigabytes of 10^9 bytes; null: not yet available');

export const locationResource = z
  .strictObject({
    latitude,
    longitude,
    altitude: z.number().optional().describe('metres above the WGS-84 ellipsoid'),
    source: z.enum(['satellite', 'satellite_cached', 'cellular', 'manual']),
    stale: z.boolean().describe('the fix is older than 30 seconds'),
    kit_location: z.string().optional().describe('name of the city'),
  })
  .openapi('Location');

export const gatewayResource = z
  .strictObject({
    name: z.string(),
    model: z.string().optional(),
    cpu_pct: percent.optional(),
    mem_pct: percent.optional(),
    uptime_s: z.number().nonnegative().optional().describe('seconds since the last reboot'),
  })
  .openapi('Gateway');

const usageResource = z
  .strictObject({
    today_rx_gb: gigabytes,
    today_tx_gb: gigabytes,
    month_rx_gb: gigabytes,
    month_tx_gb: gigabytes,
  })
  .openapi('Usage');

/** An entry of telemetry: it may carry any part of a link. */
export const wanResource = z
  .strictObject({
    name: z.string().describe('interface name'),
    type: linkType.optional(),
    status: linkStatus.optional(),
    isp: z.string().optional(),
    ip: z.string().optional().describe('public address'),
    rx_bps: rate,
    tx_bps: rate,
    rx_bps_max: rate,
    tx_bps_max: rate,
    latency_ms: milliseconds,
    jitter_ms: milliseconds,
    packet_loss_pct: percent.optional(),
    availability_pct: percent.optional(),
    usage: usageResource.optional(),
  })
  .openapi('Wan');

export const linkResource = wanResource.extend({ usage: usageResource }).openapi('Link');

export const clientResource = z
  .strictObject({
    name: z.string().optional(),
    ip: z.string().optional(),
    mac: z.string(),
    type: z.string().optional().describe('wired or wireless'),
  })
  .openapi('Client');

export const speedtestResource = z
  .strictObject({
    download_mbps: z.number().nonnegative().optional(),
    upload_mbps: z.number().nonnegative().optional(),
    latency_ms: milliseconds,
    timestamp: z.iso.datetime(),
  })
  .openapi('Speedtest');

export type LocationResource = z.output<typeof locationResource>;
export type WanResource = z.output<typeof wanResource>;
export type LinkResource = z.output<typeof linkResource>;

/** A part of a kit as clients read it. */
export function partOf<S extends z.ZodType>(resource: S, part: object): z.output<S> {
  return resource.parse(known(part));
}

export function wanOf({ usage, ...rest }: Link): WanResource {
  return wanResource.parse({ ...known(rest), ...(usage && { usage: usageOf(usage) }) });
}

/** A link that is read alone always has its usage; its fields are null while they are not known. */
export function linkOf({ usage, ...rest }: WanResource): LinkResource {
  return { ...rest, usage: usage ?? usageOf({}) };
}

function usageOf(usage: NonNullable<Link['usage']>): z.output<typeof usageResource> {
  const { today_rx_gb = null, today_tx_gb = null, month_rx_gb = null, month_tx_gb = null } = usage;
  return { today_rx_gb, today_tx_gb, month_rx_gb, month_tx_gb };
}

function known(fields: object): object {
  return Object.fromEntries(
    Object.entries(fields).filter(([, value]) => value !== null && value !== undefined),
  );
}
