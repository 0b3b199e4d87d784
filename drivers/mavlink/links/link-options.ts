/** Options of the links to vehicles, one schema for each kind. */
import { z } from 'zod';
import { Networks, plainIp } from '../../../src/platform/networks.ts';
import type { MavlinkOptions } from '../options.ts';

const port = z.int().min(1).max(65_535);
const host = z.string().min(1).max(253);
const name = z
  .string()
  .min(1)
  .max(64)
  .optional()
  .describe('shown in logs and status; the address when omitted');

/** Least that carries our heartbeat and a command. */
const budget_min_bytes_per_s = 100;
const common = {
  name,
  bytes_per_s_max: z
    .int()
    .min(budget_min_bytes_per_s)
    .max(1_000_000)
    .optional()
    .describe(
      'limit of what is sent to vehicles, for slow radios; commands have precedence; none when omitted',
    ),
  high_latency: z
    .boolean()
    .default(false)
    .describe('a satellite modem: long silence is usual, and no heartbeats are sent'),
} as const;

/** The usual default rate of telemetry radios and autopilots. */
const baud_default = 57_600;

export const linkOptions = z.discriminatedUnion('kind', [
  z.strictObject({
    kind: z.literal('udp_listen'),
    ...common,
    host: host.default('0.0.0.0').describe('own address to listen on'),
    port: port.describe('own port; vehicles and routers send to it'),
  }),
  z.strictObject({
    kind: z.literal('udp_client'),
    ...common,
    host,
    port,
    local_port: port.describe(
      'own port, fixed: autopilots keep sending to the first port that they received from',
    ),
  }),
  z.strictObject({ kind: z.literal('tcp_client'), ...common, host, port }),
  z.strictObject({ kind: z.literal('tcp_listen'), ...common, host: host.default('0.0.0.0'), port }),
  z.strictObject({
    kind: z.literal('serial'),
    ...common,
    path: z
      .string()
      .startsWith('/')
      .describe('device; /dev/serial/by-id/... keeps its name when other devices are plugged in'),
    baud: z
      .array(z.int().min(1_200).max(4_000_000))
      .min(1)
      .max(8)
      .default([baud_default])
      .describe('rates, tried in this order until MAVLink is received'),
  }),
]);
export type LinkOptions = z.output<typeof linkOptions>;

/** What the link opens, as people write it. */
export function addressOf(options: LinkOptions): string {
  return options.kind === 'serial'
    ? options.path
    : `${options.kind.replace('_', ' ')} ${options.host}:${options.port}`;
}

// Links over which a stranger can pass for a vehicle: they accept unsigned frames from any sender.

interface OpenLink {
  readonly name: string;
  /** Own address and port that it receives at. */
  readonly place: string;
}

/** The links that receive from any host of a network, unless frames are signed or all configured vehicles have their hosts. */
export function openLinks({
  links,
  signing,
  vehicles,
}: Pick<MavlinkOptions, 'links' | 'signing' | 'vehicles'>): readonly OpenLink[] {
  const named = Object.values(vehicles);
  const have_hosts = named.length > 0 && named.every(({ hosts }) => hosts !== undefined);
  if (signing || have_hosts) return [];
  return links.flatMap((link) => {
    const place = placeOf(link);
    return place === undefined ? [] : [{ name: link.name ?? addressOf(link), place }];
  });
}

const loopback = new Networks(['127.0.0.0/8', '::1/128']);

/** Undefined: its peers are those of the configuration, or of this machine. */
function placeOf(link: LinkOptions): string | undefined {
  // It sends to one host, and receives from all.
  if (link.kind === 'udp_client') return `UDP port ${link.local_port}`;
  if (link.kind !== 'udp_listen' && link.kind !== 'tcp_listen') return undefined;
  const { host, port, kind } = link;
  if (host === 'localhost' || loopback.has(plainIp(host))) return undefined;
  const named = `${kind === 'udp_listen' ? 'UDP' : 'TCP'} port ${port}`;
  return host === '0.0.0.0' || host === '::' ? named : `${named} of ${host}`;
}
