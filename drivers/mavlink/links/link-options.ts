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

/** The usual default rate of telemetry radios and autopilots. */
const baud_default = 57_600;

export const linkOptions = z.discriminatedUnion('kind', [
  z.strictObject({
    kind: z.literal('udp_listen'),
    name,
    host: host.default('0.0.0.0').describe('own address to listen on'),
    port: port.describe('own port; vehicles and routers send to it'),
  }),
  z.strictObject({
    kind: z.literal('udp_client'),
    name,
    host,
    port,
    local_port: port.describe(
      'own port, fixed: autopilots keep sending to the first port that they received from',
    ),
  }),
  z.strictObject({ kind: z.literal('tcp_client'), name, host, port }),
  z.strictObject({ kind: z.literal('tcp_listen'), name, host: host.default('0.0.0.0'), port }),
  z.strictObject({
    kind: z.literal('serial'),
    name,
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
