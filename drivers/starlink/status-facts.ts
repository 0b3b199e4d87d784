/** What `kit-connector status` shows of a dish. */
import type { Quality } from './history.ts';
import type { DishStatus } from './api/messages.ts';
import type { Permission } from './permit.ts';
import { alertsText, reasonOf } from './words.ts';

interface Seen {
  readonly status: DishStatus;
  readonly quality: Quality | undefined;
  readonly location: Permission;
}

/** Null is not known, or none in the case of alerts. */
export function statusFacts({
  status,
  quality,
  location,
}: Seen): Readonly<Record<string, string | number | null>> {
  return {
    dish: reasonOf(status) ?? 'connected',
    latency_ms: quality?.latency_ms ?? null,
    packet_loss_pct: quality?.packet_loss_pct ?? null,
    down_mbps: inMegabits(status.downlink_bps),
    up_mbps: inMegabits(status.uplink_bps),
    obstructed_pct: tenths(status.obstructed_fraction, 100),
    alerts: alertsText(status.alerts),
    location,
    uptime_s: status.uptime_s ?? null,
    id: status.id ?? null,
    hardware: status.hardware ?? null,
    firmware: status.firmware ?? null,
  };
}

function inMegabits(bps: number | undefined): number | null {
  return tenths(bps, 1e-6);
}

function tenths(value: number | undefined, factor: number): number | null {
  return value === undefined ? null : Math.round(value * factor * 10) / 10;
}
