/** Writes the icons of the console as a module (`npm run docs`): the shapes of Lucide (ISC) that it uses, as data. */
import { readFileSync } from 'node:fs';
import { z } from 'zod';

/** Names of Lucide icons. */
const names = (
  'activity arrow-left battery battery-low bell box cctv chevron-down chevron-right cloud copy cpu download drone ellipsis ' +
  'ethernet-port gauge house layers layout-grid list locate-fixed map maximize minus moon plus radio-tower ' +
  'satellite-dish search server settings signal sun target thermometer truck users video wifi x'
).split(' ');

const nodes = z.record(
  z.string(),
  z.array(z.tuple([z.string(), z.record(z.string(), z.union([z.string(), z.number()]))])),
);

type Attributes = Readonly<Record<string, string | number>>;

/** The module as text: by name, the icon as one SVG path in a square of 24. */
export function iconsModule(): string {
  const file = new URL(import.meta.resolve('lucide-static/icon-nodes.json'));
  const all = nodes.parse(JSON.parse(readFileSync(file, 'utf8')));
  const lines = names.map((name) => {
    const shapes = all[name];
    if (!shapes) throw new Error(`lucide-static has no icon ${name}`);
    const key = /^\w+$/u.test(name) ? name : `'${name}'`;
    const path = shapes.map(([tag, attributes]) => pathOf(tag, attributes)).join('');
    return `${key}:${key.length > 4 && key.length + path.length > 103 ? '\n   ' : ''} '${path}',`;
  });
  return `/** Icons of Lucide (https://lucide.dev), ISC licence. Written by \`npm run docs\`. */
export const icons = {
${lines.map((line) => `  ${line}\n`).join('')}};
`;
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
