/** Decides whether a part of the kit's telemetry says something new, or only the noise of its measurement. Pure. */
import { distance_m, type Point } from '../geo/distance.ts';

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
export type News = 'none' | 'soon' | 'now';

/** Least difference that counts for a figure of this name, given what was told; undefined: every difference, at once. */
function deadbandOf(name: string, told: number, bands: Deadbands): number | undefined {
  if (name === 'uptime_s') return Number.POSITIVE_INFINITY;
  if (name === 'latency_ms' || name === 'jitter_ms') {
    return Math.max(bands.latency_ms, (told * bands.latency_pct) / 100);
  }
  if (/^[rt]x_bps/u.test(name)) return Math.max(bands.rate_bps, (told * bands.rate_pct) / 100);
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
export function newsOf(name: string, told: unknown, known: unknown, bands: Deadbands): News {
  if (Object.is(told, known)) return 'none';
  if (typeof told === 'number' && typeof known === 'number') {
    const least = deadbandOf(name, told, bands);
    if (least === undefined) return 'now';
    return Math.abs(known - told) >= least ? 'soon' : 'none';
  }
  if (Array.isArray(told) && Array.isArray(known)) {
    if (told.length !== known.length) return 'now';
    return loudest(known.map((each: unknown, index) => newsOf(name, told[index], each, bands)));
  }
  return isRecord(told) && isRecord(known) ? newsOfRecord(told, known, bands) : 'now';
}

type Named = Readonly<Record<string, unknown>>;

function newsOfRecord(told: Named, known: Named, bands: Deadbands): News {
  const keys = new Set([...Object.keys(told), ...Object.keys(known)]);
  const news: News[] = [];
  if (isPoint(told) && isPoint(known)) {
    keys.delete('latitude');
    keys.delete('longitude');
    if (distance_m(told, known) >= bands.location_m) news.push('soon');
  }
  for (const key of keys) news.push(newsOf(key, told[key], known[key], bands));
  return loudest(news);
}

function loudest(news: readonly News[]): News {
  if (news.includes('now')) return 'now';
  return news.includes('soon') ? 'soon' : 'none';
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
