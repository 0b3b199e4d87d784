/** Packs coasts and borders of Natural Earth 1:10m (npm package world-atlas, public domain) into world.bin: `node src/tools/pack-world.ts`. */
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';

const world_file = fileURLToPath(new URL('../console/views/map/world.bin', import.meta.url));
/** About 200 m: what the source is exact to. */
const units_per_degree = 500;
/** A point nearer to the line between its neighbours is left out: 300 m. */
const tolerance_deg = 0.003;
const ring_points_min = 4;

const rings = z.array(z.array(z.int()));
const geometry = z.discriminatedUnion('type', [
  z.object({ type: z.literal('Polygon'), arcs: rings }),
  z.object({ type: z.literal('MultiPolygon'), arcs: z.array(rings) }),
]);
const point = z.tuple([z.number(), z.number()]);
const layer = z.object({ geometries: z.array(geometry) });
const topology = z.object({
  objects: z.object({ countries: layer, land: layer }),
  arcs: z.array(z.array(point)),
  transform: z.object({ scale: point, translate: point }),
});
type Point = readonly [lon: number, lat: number];

/** Numbers of 7 bits a byte, the signed ones folded; lines as differences. */
class Writer {
  readonly #bytes: number[] = [];

  count(n: number): void {
    let rest = n;
    while (rest > 127) {
      this.#bytes.push((rest & 127) | 128);
      rest >>>= 7;
    }
    this.#bytes.push(rest);
  }

  line(points: readonly Point[]): void {
    this.count(points.length);
    let [x, y] = [0, 0];
    for (const [lon, lat] of points) {
      for (const step of [lon - x, lat - y]) this.count(step < 0 ? -2 * step - 1 : 2 * step);
      [x, y] = [lon, lat];
    }
  }

  get bytes(): Buffer {
    return Buffer.from(this.#bytes);
  }
}

export function packWorld(): Buffer {
  const file = new URL(import.meta.resolve('world-atlas/countries-10m.json'));
  const { objects, arcs, transform } = topology.parse(JSON.parse(readFileSync(file, 'utf8')));
  const lines = arcs.map((arc) => simplified(pointsOf(arc, transform)));
  const ringOf = (numbers: readonly number[]): readonly Point[] =>
    numbers.flatMap((number, i) => {
      const line = number < 0 ? (lines[~number] ?? []).toReversed() : (lines[number] ?? []);
      // Each arc begins where the one before it ended.
      return i === 0 ? line : line.slice(1);
    });
  const polygons = objects.land.geometries
    .flatMap((each) => (each.type === 'Polygon' ? [each.arcs] : each.arcs))
    .map((polygon) =>
      polygon.map((ring) => unwrapped(ringOf(ring))).filter((ring) => ring.length >= ring_points_min),
    )
    .filter((polygon) => polygon.length > 0);
  const writer = new Writer();
  writer.count(polygons.length);
  for (const polygon of polygons) {
    writer.count(polygon.length);
    for (const ring of polygon) writer.line(ring);
  }
  const borders = bordersOf(objects.countries.geometries.map((each) => each.arcs.flat(2)));
  writer.count(borders.length);
  for (const number of borders) writer.line(lines[number] ?? []);
  return writer.bytes;
}

/** A ring across the date line goes on beyond it; one around the pole is closed there. */
function unwrapped(ring: readonly Point[]): readonly Point[] {
  const turn_units = 360 * units_per_degree;
  let turn = 0;
  const points = ring.map(([x, y], i): Point => {
    const step = x - (ring[i - 1]?.[0] ?? x);
    if (Math.abs(step) > turn_units / 2) turn -= Math.sign(step) * turn_units;
    return [x + turn, y];
  });
  const [first, last] = [points[0], points.at(-1)];
  if (!first || !last || first[0] === last[0]) return points;
  const pole = -90 * units_per_degree;
  return [...points, [last[0], pole], [first[0], pole], first];
}

/** Arcs that two countries share. */
function bordersOf(countries: readonly (readonly number[])[]): readonly number[] {
  const users = new Map<number, number>();
  for (const country of countries)
    for (const arc of new Set(country.map((number) => (number < 0 ? ~number : number))))
      users.set(arc, (users.get(arc) ?? 0) + 1);
  return [...users].filter(([, n]) => n > 1).map(([arc]) => arc);
}

function pointsOf(
  arc: readonly Point[],
  { scale, translate }: z.output<typeof topology>['transform'],
): readonly Point[] {
  let [x, y] = [0, 0];
  return arc.map(([dx, dy]) => {
    [x, y] = [x + dx, y + dy];
    return [x * scale[0] + translate[0], y * scale[1] + translate[1]];
  });
}

/** Douglas and Peucker; both ends stay. In units of the file, without repeated points. */
function simplified(points: readonly Point[]): readonly Point[] {
  const kept = new Set([0, points.length - 1]);
  const open: [from: number, to: number][] = [[0, points.length - 1]];
  for (let part = open.pop(); part; part = open.pop()) {
    const [from, to] = part;
    let [far, at] = [tolerance_deg, -1];
    for (let i = from + 1; i < to; i += 1) {
      const off = distance(points[i], points[from], points[to]);
      if (off > far) [far, at] = [off, i];
    }
    if (at < 0) continue;
    kept.add(at);
    open.push([from, at], [at, to]);
  }
  return points
    .filter((_, i) => kept.has(i))
    .map(([lon, lat]): Point => [Math.round(lon * units_per_degree), Math.round(lat * units_per_degree)])
    .filter(([x, y], i, all) => i === 0 || x !== all[i - 1]?.[0] || y !== all[i - 1]?.[1]);
}

/** Of a point to the line through two others; degrees of longitude count as wide as they are there. */
function distance(point_: Point = [0, 0], from: Point = [0, 0], to: Point = [0, 0]): number {
  const wide = Math.cos((point_[1] * Math.PI) / 180);
  const [x, y] = [(point_[0] - from[0]) * wide, point_[1] - from[1]];
  const [dx, dy] = [(to[0] - from[0]) * wide, to[1] - from[1]];
  const long = Math.hypot(dx, dy);
  return long === 0 ? Math.hypot(x, y) : Math.abs(x * dy - y * dx) / long;
}

if (import.meta.main) writeFileSync(world_file, packWorld());
