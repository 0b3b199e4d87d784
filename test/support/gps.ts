/** Positions of drones that fly a random walk: the telemetry that campaigns and measurements send. */
import type { JsonObject } from '../../src/contract/json.ts';
import { monotonic_us } from './witness.ts';

/** Bytes of the JSON text of a message that is to weigh what a typical one does. */
export const data_bytes = 200;

/** The kit and its drones in all campaigns and measurements. */
export const test_kit = '6f1c2d8a-0b7e-4a55-9c1e-1a2b3c4d5e6f';
export const test_drones = [
  '0b2e6a41-5f5d-5d0e-8c54-3f1f1f6c9b01',
  '1c3f7b52-6a6e-5e1f-9d65-4a2a2a7d0c12',
  '2d4a8c63-7b7f-5f2a-8e76-5b3b3b8e1d23',
  '3e5b9d74-8c8a-5a3b-9f87-6c4c4c9f2e34',
] as const;

/** Height of the geoid and of the home position above the ellipsoid where they fly. */
const geoid_m = 47.6;
const home_m = 401.2;

/** Yields `gps` data; the numbers repeat from run to run so that two sides of a comparison carry the same. */
export function* flight(): Generator<JsonObject, never> {
  const random = repeatable(7);
  let [lat, lon, alt_m, heading, speed] = [47.376887, 8.541694, 431, 90, 11];
  for (;;) {
    heading = (heading + (random() - 0.5) * 8 + 360) % 360;
    speed = Math.max(0, speed + random() - 0.5);
    lat += Math.cos((heading * Math.PI) / 180) * speed * 9e-6;
    lon += Math.sin((heading * Math.PI) / 180) * speed * 1.3e-5;
    alt_m += (random() - 0.5) * 0.8;
    yield {
      lat: round(lat, 7),
      lon: round(lon, 7),
      alt_m: round(alt_m, 2),
      ground_speed: round(speed, 2),
      heading: round(heading, 1),
      alt_amsl_m: round(alt_m - geoid_m, 2),
      relative_alt_m: round(alt_m - home_m, 2),
    };
  }
}

/** The same with the time it was made, filled up to `data_bytes` of JSON. `sent_us` 0 keeps it out of the latencies. */
export function stamped(data: JsonObject, sent_us = monotonic_us()): JsonObject {
  const timed = { ...data, sent_us, filler: '' };
  return { ...timed, filler: 'k'.repeat(Math.max(0, data_bytes - JSON.stringify(timed).length)) };
}

function round(value: number, digits: number): number {
  return Number(value.toFixed(digits));
}

/** A linear congruential generator (the constants of C's rand). */
function repeatable(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff;
    return state / 0x7fffffff;
  };
}
