/** The section `telemetry` of the configuration file: when news of the kit itself leave. */
import { z } from 'zod';

const points = z.number().min(0).max(100);
const percent = z.number().min(0).max(1_000);

const deadbands = z.strictObject({
  cpu_points: points.default(5).describe('of cpu_pct'),
  mem_points: points.default(5).describe('of mem_pct'),
  latency_pct: percent.default(10).describe('latency and jitter: the greater of this and latency_ms'),
  latency_ms: z.number().min(0).max(60_000).default(5).describe('see latency_pct'),
  rate_pct: percent.default(20).describe('rx_bps and tx_bps: the greater of this and rate_kbps'),
  rate_kbps: z.number().min(0).max(1_000_000).default(100).describe('see rate_pct'),
  loss_points: points.default(2).describe('of packet_loss_pct'),
  availability_points: points.default(0.5).describe('of availability_pct'),
  usage_gb: z.number().min(0).max(1_000).default(0.01).describe('of every figure of usage'),
  battery_points: points.default(1).describe('of battery'),
  location_m: z.number().min(0).max(100_000).default(10).describe('metres of movement'),
});

export const telemetrySection = z.strictObject({
  floor_s: z
    .number()
    .min(1)
    .max(3_600)
    .default(300)
    .describe('the whole telemetry of the kit is sent at least this often'),
  pace_s: z
    .number()
    .min(1)
    .max(3_600)
    .default(30)
    .describe(
      'figures alone are sent at most this often; states at once, of states that flap 20 and then at this pace',
    ),
  deadbands: deadbands
    .prefault({})
    .describe('a figure that differs less from what was sent last is not news; uptime never is'),
});
type TelemetrySection = z.output<typeof telemetrySection>;

/** The section in the units of the hub. */
export function telemetryOf({ floor_s, pace_s, deadbands }: TelemetrySection) {
  const { rate_kbps, ...bands } = deadbands;
  return {
    floor_ms: floor_s * 1_000,
    pace_ms: pace_s * 1_000,
    deadbands: { ...bands, rate_bps: rate_kbps * 1_000 },
  };
}
