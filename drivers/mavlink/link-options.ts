/** Options of the links to vehicles, one schema for each kind. */
import { z } from 'zod';

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
