/** Writes the documents that are generated from the sources: `npm run docs`. They are checked in; a test finds drift. */
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { drivers } from '../../drivers/index.ts';
import {
  configJsonSchema,
  fileJsonSchema,
  optionsJsonSchema,
  configReference,
} from '../kit/config/reference.ts';
import { asyncApi } from '../contract/asyncapi/document.ts';
import { roomsTable } from './rooms.ts';

interface GeneratedDocument {
  readonly file: string;
  /** An object is written as JSON, a text as it is. */
  readonly build: () => object | string;
}

const builtIn = await Promise.all(drivers.map(async ({ load }) => load()));

const readme = fileURLToPath(new URL('../README.md', import.meta.url));

export const documents: readonly GeneratedDocument[] = [
  { file: fileURLToPath(new URL('../contract/asyncapi.json', import.meta.url)), build: asyncApi },
  {
    file: fileURLToPath(new URL('../kit/config/config.schema.json', import.meta.url)),
    build: () => configJsonSchema(builtIn),
  },
  {
    file: fileURLToPath(new URL('../kit/config/README.md', import.meta.url)),
    build: () =>
      configReference(
        fileJsonSchema(),
        new Map(builtIn.map((driver) => [driver.name, optionsJsonSchema(driver)])),
      ),
  },
  { file: fileURLToPath(new URL('../console/views/parts/icons.ts', import.meta.url)), build: iconsModule },
  { file: fileURLToPath(new URL('../console/views/map/world.ts', import.meta.url)), build: worldModule },
  { file: readme, build: () => withRooms(readFileSync(readme, 'utf8')) },
];

/** The table of rooms stands between two marks. */
function withRooms(text: string): string {
  return text.replace(/(?<=<!-- rooms -->\n).*?(?=\n<!-- end of rooms -->)/s, roomsTable());
}

/** The text of the document as it is checked in. */
export function documentText({ build }: GeneratedDocument): string {
  const content = build();
  return typeof content === 'string' ? content : `${JSON.stringify(content, undefined, 2)}\n`;
}

/** Names of Lucide icons. */
const icon_names = (
  'activity arrow-left battery battery-low bell bell-ring box cctv chevron-down chevron-right cloud copy cpu download drone ellipsis ' +
  'ethernet-port gauge house layers layout-grid list locate-fixed logs map maximize minus moon plus radio-tower ' +
  'satellite-dish search server settings signal sun target thermometer truck users video wifi wrench x'
).split(' ');

const iconSet = z.object({ icons: z.record(z.string(), z.object({ body: z.string() })) });

type Attributes = Readonly<Record<string, string>>;

/** The module as text: by name, the icon as one SVG path in a square of 24. */
function iconsModule(): string {
  const file = new URL(import.meta.resolve('@iconify-json/lucide/icons.json'));
  const { icons } = iconSet.parse(JSON.parse(readFileSync(file, 'utf8')));
  const lines = icon_names.map((name) => {
    const icon = icons[name];
    if (!icon) throw new Error(`@iconify-json/lucide has no icon ${name}`);
    const key = /^\w+$/u.test(name) ? name : `'${name}'`;
    const path = [...icon.body.matchAll(/<(\w+)([^<>]*)\/>/gu)]
      .map(([, tag = '', attributes = '']) => pathOf(tag, attributesOf(attributes)))
      .join('');
    return `${key}:${key.length > 4 && key.length + path.length > 103 ? '\n   ' : ''} '${path}',`;
  });
  return `/** Icons of Lucide (https://lucide.dev), ISC licence. Written by \`npm run docs\`. */
export const icons = {
${lines.map((line) => `  ${line}\n`).join('')}};
`;
}

function attributesOf(text: string): Attributes {
  return Object.fromEntries(
    [...text.matchAll(/([\w-]+)="([^"]*)"/gu)].map(([, name = '', value = '']) => [name, value]),
  );
}

/** An element of an icon as path data. */
function pathOf(tag: string, attributes: Attributes): string {
  const number = (name: string): number => Number(attributes[name] ?? 0);
  if (tag === 'path') return absolute(String(attributes['d']));
  if (tag === 'line') return `M${number('x1')} ${number('y1')}L${number('x2')} ${number('y2')}`;
  if (tag === 'polyline') return `M${String(attributes['points'])}`;
  if (tag === 'polygon') return `M${String(attributes['points'])}Z`;
  if (tag === 'circle') {
    const r = number('r');
    return `M${number('cx') - r} ${number('cy')}a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0`;
  }
  if (tag !== 'rect') throw new Error(`icons with <${tag}> are not supported`);
  const [w, h, r] = [number('width'), number('height'), number('rx')];
  const corner = (dx: number, dy: number): string => (r === 0 ? '' : `a${r} ${r} 0 0 1 ${dx} ${dy}`);
  return [
    `M${number('x') + r} ${number('y')}h${w - 2 * r}${corner(r, r)}v${h - 2 * r}${corner(-r, r)}`,
    `h${2 * r - w}${corner(-r, -r)}v${2 * r - h}${corner(r, -r)}z`,
  ].join('');
}

/** Makes the first point absolute: after another path a small `m` would count from where that one ended. */
function absolute(d: string): string {
  const [all = '', x, y] = /^m\s*(-?\d*\.?\d+)[\s,]*(-?\d*\.?\d+)\s*/u.exec(d) ?? [];
  if (all === '') return d;
  const rest = d.slice(all.length);
  return `M${x} ${y}${/^[-\d.]/u.test(rest) ? 'l' : ''}${rest}`;
}

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
function worldModule(): string {
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

if (import.meta.main) {
  for (const document of documents) writeFileSync(document.file, documentText(document));
}
