/** Where the kits are, beside their list: the outline of the world, and a mark for each kit or for kits that are close together. */
import { addressOf } from '../../world/route.ts';
import { plain } from '../../world/text.ts';
import { t } from '../../words/words.ts';
import { html } from '../parts/html.ts';
import { lazy } from '../parts/lazy.ts';
import type { View } from '../../types.d.ts';
import type { Entry } from './kit-rows.ts';

interface Mark {
  readonly x: number;
  readonly y: number;
  readonly entries: readonly Entry[];
}

const [w, h] = [340, 600];
/** Degrees that the map shows at least. */
const span_min = 6;
/** Share of the picture that the marks take. */
const filled = 0.7;
/** Marks that are closer become one. */
const near_px = 26;
const latitude_max = 84;
/** About that of a letter and a line of a label; room at the edges, which may be cut off. */
const letter_px = 7.5;
const line_px = 15;
const margin_px = 24;
const worst = ['offline', 'attention', 'none', 'online'] as const;
const shapes = { online: 'on', attention: 'warn', offline: 'off', none: 'ring' };

const outline = lazy(async () => {
  const { worldLand } = await import('../map/base-style.ts');
  return worldLand().coordinates.flat().map(ringPath).join('');
});

/**
 * A ring that crosses the date line continues beyond it, around its middle.
 * @param ring of longitude and latitude
 */
function ringPath(ring: readonly (readonly number[])[]) {
  let turn = 0;
  let before = ring[0]?.[0] ?? 0;
  const points = ring.map(([lon = 0, lat = 0]) => {
    if (Math.abs(lon - before) > 180) turn += lon < before ? 360 : -360;
    before = lon;
    return [lon + turn, lat];
  });
  const all = points.map(([x = 0]) => x);
  const shift = -360 * Math.round((Math.min(...all) + Math.max(...all)) / 720);
  return `M${points.map(([x = 0, lat = 0]) => `${(x + shift).toFixed(2)} ${downOf(lat).toFixed(2)}`).join('L')}Z`;
}

export function fleetMap(entries: readonly Entry[], view: View) {
  const placed = entries.flatMap((entry) => {
    const { latitude, longitude } = entry.kit.live?.location ?? {};
    return typeof latitude === 'number' && typeof longitude === 'number'
      ? [{ entry, x: longitude, y: downOf(latitude) }]
      : [];
  });
  if (placed.length === 0) return '';
  outline.load(view.act);
  const [left, right] = [Math.min(...placed.map(({ x }) => x)), Math.max(...placed.map(({ x }) => x))];
  const [upper, lower] = [Math.min(...placed.map(({ y }) => y)), Math.max(...placed.map(({ y }) => y))];
  const scale =
    filled * Math.min(w / Math.max(span_min, right - left), h / Math.max(span_min, lower - upper));
  const [middle_x, middle_y] = [(left + right) / 2, (upper + lower) / 2];
  const marks: Map<string, { x: number; y: number; entries: Entry[] }> = new Map();
  for (const { entry, x, y } of placed) {
    const at = { x: w / 2 + (x - middle_x) * scale, y: h / 2 + (y - middle_y) * scale };
    const key = `${Math.round(at.x / near_px)} ${Math.round(at.y / near_px)}`;
    const mark = marks.get(key);
    if (mark) mark.entries.push(entry);
    else marks.set(key, { ...at, entries: [entry] });
  }
  return html`<section key="map" class="fleet-map" aria-label=${t.nav.map}>
    <svg viewBox="0 0 ${w} ${h}" preserveAspectRatio="xMidYMid slice">
      <g transform=${`translate(${w / 2} ${h / 2}) scale(${scale}) translate(${-middle_x} ${-middle_y})`}>
        <path class="land" d=${outline.now() ?? ''} vector-effect="non-scaling-stroke" />
      </g>
      ${withSides([...marks]).map(([key, mark, side]) => markView(key, mark, side))}
    </svg>
  </section>`;
}

function labelOf({ entries }: Mark) {
  const [first] = entries;
  return entries.length === 1 ? plain(first?.kit.name ?? '') : t.kits.together(entries.length);
}

/** Where the label ends or begins at its mark; undefined: there is no room for it. */
type Side = 'end' | 'start' | undefined;

/** Gives each mark the side of its label, so that no label lies over another one or a mark. */
function withSides(
  marks: readonly (readonly [key: string, mark: Mark])[],
): readonly (readonly [key: string, mark: Mark, side: Side])[] {
  const taken = marks.map(([, { x, y }]) => ({ left: x - 8, right: x + 8, y }));
  return marks.map(([key, mark], i) => {
    const wide = labelOf(mark).length * letter_px;
    const sides = (['start', 'end'] as const).map((side) => ({
      side,
      left: side === 'start' ? mark.x + 12 : mark.x - 12 - wide,
      right: side === 'start' ? mark.x + 12 + wide : mark.x - 12,
      y: mark.y,
    }));
    const free = sides.find(
      (box) =>
        box.left > margin_px &&
        box.right < w - margin_px &&
        taken.every(
          (other, j) =>
            j === i ||
            other.right < box.left ||
            other.left > box.right ||
            Math.abs(other.y - box.y) > line_px,
        ),
    );
    if (free) taken.push(free);
    return [key, mark, free?.side];
  });
}

function markView(key: string, mark: Mark, side: Side) {
  const { x, y, entries } = mark;
  const [first] = entries;
  const word = worst.find((each) => entries.some(({ judged }) => judged.state === each)) ?? 'none';
  const label = labelOf(mark);
  const content = html`<use
      class=${`mark-${word}`}
      href=${`#s-${shapes[word]}`}
      x="-8"
      y="-8"
      width="16"
      height="16"
    />
    ${side && html`<text x=${side === 'end' ? -12 : 12} y="4" text-anchor=${side}>${label}</text>`}`;
  const transform = `translate(${x.toFixed(1)} ${y.toFixed(1)})`;
  return entries.length === 1 && first
    ? html`<a
        key=${key}
        transform=${transform}
        href=${addressOf('overview', first.kit.id)}
        aria-label=${`${label}: ${t.state[word]}`}
        >${content}</a
      >`
    : html`<g key=${key} transform=${transform}>${content}</g>`;
}

/** How far below the equator a latitude is drawn, in degrees of longitude, as on common maps. */
function downOf(latitude: number) {
  const bounded = (Math.max(-latitude_max, Math.min(latitude_max, latitude)) * Math.PI) / 180;
  return (Math.log(Math.tan(Math.PI / 4 - bounded / 2)) * 180) / Math.PI;
}
