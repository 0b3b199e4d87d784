/** Decides whether a part of the kit's telemetry has changed beyond measurement noise. Pure. */
import { distance_m, type Point } from '../../device/distance.ts';

/** Smaller differences from what was published last are noise. */
export interface Deadbands {
  readonly cpu_points: number;
  readonly mem_points: number;
  readonly latency_pct: number;
  readonly latency_ms: number;
  readonly rate_pct: number;
  readonly rate_bps: number;
  readonly loss_points: number;
  readonly availability_points: number;
  readonly usage_gb: number;
  readonly battery_points: number;
  readonly location_m: number;
}

/** `now`: a state changed. `soon`: a figure left its deadband and may wait for others. */
export type Urgency = 'none' | 'soon' | 'now';

/** Least difference that counts for a figure of this name, given the published value; undefined: every difference counts at once. */
function deadbandOf(name: string, published: number, bands: Deadbands): number | undefined {
  if (name === 'uptime_s') return Number.POSITIVE_INFINITY;
  if (name === 'latency_ms' || name === 'jitter_ms') {
    return Math.max(bands.latency_ms, (published * bands.latency_pct) / 100);
  }
  if (/^[rt]x_bps/u.test(name)) return Math.max(bands.rate_bps, (published * bands.rate_pct) / 100);
  if (name.endsWith('_gb')) return bands.usage_gb;
  const fixed: Readonly<Record<string, number>> = {
    cpu_pct: bands.cpu_points,
    mem_pct: bands.mem_points,
    packet_loss_pct: bands.loss_points,
    availability_pct: bands.availability_points,
    battery: bands.battery_points,
    altitude: bands.location_m,
  };
  return fixed[name];
}

/** Compares what was published with what is known now, value by value. `name` is the key that the value stands under. */
export function urgencyOf(name: string, published: unknown, known: unknown, bands: Deadbands): Urgency {
  if (Object.is(published, known)) return 'none';
  if (typeof published === 'number' && typeof known === 'number') {
    const least = deadbandOf(name, published, bands);
    if (least === undefined) return 'now';
    return Math.abs(known - published) >= least ? 'soon' : 'none';
  }
  if (Array.isArray(published) && Array.isArray(known)) {
    if (published.length !== known.length) return 'now';
    return mostUrgent(known.map((each: unknown, index) => urgencyOf(name, published[index], each, bands)));
  }
  return isRecord(published) && isRecord(known) ? urgencyOfRecord(published, known, bands) : 'now';
}

type Named = Readonly<Record<string, unknown>>;

function urgencyOfRecord(published: Named, known: Named, bands: Deadbands): Urgency {
  const keys = new Set([...Object.keys(published), ...Object.keys(known)]);
  const urgencies: Urgency[] = [];
  if (isPoint(published) && isPoint(known)) {
    keys.delete('latitude');
    keys.delete('longitude');
    if (distance_m(published, known) >= bands.location_m) urgencies.push('soon');
  }
  for (const key of keys) urgencies.push(urgencyOf(key, published[key], known[key], bands));
  return mostUrgent(urgencies);
}

function mostUrgent(urgencies: readonly Urgency[]): Urgency {
  if (urgencies.includes('now')) return 'now';
  return urgencies.includes('soon') ? 'soon' : 'none';
}

function isRecord(value: unknown): value is Named {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isPoint(value: object): value is Point {
  return (
    'latitude' in value &&
    'longitude' in value &&
    typeof value.latitude === 'number' &&
    typeof value.longitude === 'number'
  );
}
