/**
 * Writes the outline of the world for the console's map as a module (`npm run docs`): land of Natural Earth 1:110m (public
 * domain), from the package `world-atlas` (ISC), as rings of hundredths of a degree.
 */
import { readFileSync } from 'node:fs';
import { z } from 'zod';

const point = z.tuple([z.number(), z.number()]);
const topology = z.object({
  objects: z.object({
    land: z.object({
      geometries: z.array(
        z.object({ type: z.literal('MultiPolygon'), arcs: z.array(z.array(z.array(z.int()))) }),
      ),
    }),
  }),
  arcs: z.array(z.array(point)),
  transform: z.object({ scale: point, translate: point }),
});
type Topology = z.output<typeof topology>;
type Point = readonly [lon: number, lat: number];

/** About a kilometre: finer than the source. */
const units_per_degree = 100;

/** The module as text: each polygon as one string, its rings separated by `;`, each of a first point and differences. */
export function worldModule(): string {
  const file = new URL(import.meta.resolve('world-atlas/land-110m.json'));
  const world = topology.parse(JSON.parse(readFileSync(file, 'utf8')));
  const polygons = world.objects.land.geometries.flatMap(({ arcs }) =>
    arcs.map((rings) => rings.map((ring) => ringText(pointsOf(world, ring))).join(';')),
  );
  return `/** Land of Natural Earth 1:110m (https://www.naturalearthdata.com), public domain. Written by \`npm run docs\`. */
export const land = [
${polygons.map((text) => `  '${text}',\n`).join('')}];
`;
}

/** The points of a ring of arcs; the complement of an arc's number is that arc backwards. */
function pointsOf(
  { arcs, transform: { scale, translate } }: Topology,
  ring: readonly number[],
): readonly Point[] {
  return ring.flatMap((number, i) => {
    let [x, y] = [0, 0];
    const points = (arcs[number < 0 ? ~number : number] ?? []).map(([dx, dy]): Point => {
      x += dx;
      y += dy;
      return [x * scale[0] + translate[0], y * scale[1] + translate[1]];
    });
    const inOrder = number < 0 ? points.toReversed() : points;
    // Each arc begins where the one before it ended.
    return i === 0 ? inOrder : inOrder.slice(1);
  });
}

function ringText(points: readonly Point[]): string {
  let [x, y] = [0, 0];
  return points
    .map(([lon, lat]) => [Math.round(lon * units_per_degree), Math.round(lat * units_per_degree)] as const)
    .map(([lon, lat]) => {
      const text = `${lon - x} ${lat - y}`;
      x = lon;
      y = lat;
      return text;
    })
    .join(' ');
}
