/** Options of the endpoints to which frames are forwarded, one schema for each kind. */
import { z } from 'zod';

const port = z.int().min(1).max(65_535);
const host = z.string().min(1).max(253);
const own_host = host
  .default('127.0.0.1')
  .describe('own address to listen on; another one than loopback lets that network command the vehicles');
const common = {
  name: z.string().min(1).max(64).optional().describe('shown in logs and status; the address when omitted'),
  vehicles: z
    .array(z.string().min(1))
    .min(1)
    .max(64)
    .optional()
    .describe('asset_keys of the vehicles that are forwarded; all when omitted'),
  read_only: z.boolean().default(false).describe('forward only from vehicles: stations cannot command them'),
  unverified: z
    .boolean()
    .default(false)
    .describe('with signing: also forward frames of vehicles that are not signed with our key'),
  to_vehicles_bytes_per_s: z
    .int()
    .min(100)
    .max(1_000_000)
    .default(4_000)
    .describe('limit of what stations send to vehicles, so that commands of the kit still fit on the link'),
} as const;

export const endpointOptions = z.discriminatedUnion('kind', [
  z.strictObject({
    kind: z.literal('udp_listen'),
    ...common,
    host: own_host,
    port: port.describe('own port; a station that sends to it receives the frames'),
    peers_max: z.int().min(1).max(32).default(4).describe('stations at once; further ones are refused'),
  }),
  z.strictObject({
    kind: z.literal('udp_client'),
    ...common,
    host: host.describe('address of the station, which receives the frames without sending first'),
    port,
  }),
  z.strictObject({
    kind: z.literal('tcp_listen'),
    ...common,
    host: own_host,
    port,
    clients_max: z.int().min(1).max(16).default(4).describe('connections at once; further ones are refused'),
  }),
  z.strictObject({ kind: z.literal('tcp_client'), ...common, host, port }),
]);
export type EndpointOptions = z.output<typeof endpointOptions>;
