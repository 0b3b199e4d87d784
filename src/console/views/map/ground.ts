/** What shows a person where a map is, where no operator's map does: the graticule, and the nearest towns beyond the picture. */
import { distanceText } from '../../units.ts';
import { bearingOf, roundDown } from '../../world/geo.ts';
import { plain } from '../../world/text.ts';
import { html } from '../parts/html.ts';
import { base, char_px, type Mercator } from './frame.ts';

/** Between two lines of the graticule at most. */
const apart_px = 240;
const step_max = 30;
/** The picture that is wider than this has towns of its own. */
const beyond_from_m_per_px = 25;
const beyond_m = 60_000;
/** A lower picture has no room for their names. */
const high_px_min = 300;
/** Within so many degrees a town of the list is looked for. */
const near_deg = 0.6;
/** Room for what lies over the map there. */
const edge = { side: 8, top: 58, bottom: 76, controls: 224 };

/** Below are the degrees of the meridians, and the scale. */
const foot_px = 44;

/** Draws nothing where the operator's map covers the middle. */
export function ground(frame: Mercator) {
  return isCovered(frame) ? '' : graticule(frame);
}

/** Parallels and meridians with their degrees. */
function graticule({ w, h, center: [lon, lat], zoom, toPicture, toPlace }: Mercator) {
  const degrees_per_px = 360 / (512 * 2 ** zoom);
  const lonStep = stepOf(degrees_per_px);
  const latStep = stepOf(degrees_per_px * Math.cos((lat * Math.PI) / 180));
  const half = (w / 2) * degrees_per_px;
  const xs = multiples(lon - half, lon + half, lonStep).map((at) => ({
    x: Math.round(w / 2 + (at - lon) / degrees_per_px),
    text: degreesText(((((at + 180) % 360) + 360) % 360) - 180, lonStep),
  }));
  const ys = multiples(toPlace(0, h).lat, toPlace(0, 0).lat, latStep).map((at) => ({
    y: Math.round(toPicture({ lat: at, lon })[1]),
    text: degreesText(at, latStep),
  }));
  const lines = [...xs.map(({ x }) => `M${x} 0V${h}`), ...ys.map(({ y }) => `M0 ${y}H${w}`)];
  return html`<g key="graticule" class="graticule">
    <path d=${lines.join('')} />
    ${ys.map(({ y, text }) => y < h - foot_px && html`<text key=${`y ${y}`} class="q" x="6" y=${y - 4}>${text}</text>`)}
    ${xs.map(({ x, text }) => html`<text key=${`x ${x}`} class="q" x=${x + 4} y=${h - 32}>${text}</text>`)}
  </g>`;
}

function stepOf(degrees_per_px: number) {
  return Math.min(step_max, roundDown(apart_px * degrees_per_px));
}

function multiples(from: number, to: number, step: number): readonly number[] {
  const first = Math.ceil(from / step);
  const count = Math.max(0, Math.floor(to / step) - first + 1);
  return Array.from({ length: count }, (_, i) => (first + i) * step);
}

function degreesText(degrees: number, step: number) {
  return `${degrees.toFixed(Math.max(0, -Math.floor(Math.log10(step))))}°`;
}

interface Beyond {
  readonly name: string;
  readonly distance_m: number;
  readonly bearing: number;
}

let found: { readonly key: string; readonly towns: readonly Beyond[] } = { key: '', towns: [] };

/** The nearest town to the north, east, south and west, kept until the middle moves by some hundred metres. */
function nearest({ center: [lon, lat] }: Mercator): readonly Beyond[] {
  const key = `${lon.toFixed(2)} ${lat.toFixed(2)} ${base.towns.length}`;
  if (found.key === key) return found.towns;
  const wide_deg = near_deg / Math.max(0.05, Math.cos((lat * Math.PI) / 180));
  const all = base.towns.flatMap(({ geometry: { coordinates }, properties: { name } }) => {
    const [x, y] = coordinates;
    const isNear = Math.abs(y - lat) < near_deg && Math.abs(((x - lon + 540) % 360) - 180) < wide_deg;
    return isNear ? [{ name, ...bearingOf({ lon, lat }, { lon: x, lat: y }) }] : [];
  });
  const towns = Map.groupBy(
    all.filter(({ distance_m }) => distance_m < beyond_m).sort((a, b) => a.distance_m - b.distance_m),
    ({ bearing }) => quarterOf(bearing),
  );
  found = { key, towns: [...towns.values()].flatMap(([first]) => first ?? []) };
  return found.towns;
}

/** 0: north, clockwise. */
function quarterOf(bearing: number) {
  return Math.round(bearing / 90) % 4;
}

const arrows = ['↑', '→', '↓', '←'];

/** What names them at the edges of the picture, with their distances: the middle of each text. */
export function townsBeyond(
  frame: Mercator,
): readonly { readonly x: number; readonly y: number; readonly text: string }[] {
  if (frame.m_per_px > beyond_from_m_per_px || frame.h < high_px_min || isCovered(frame)) return [];
  const [x0, y0] = [frame.w / 2, frame.h / 2];
  return nearest(frame).flatMap(({ name, distance_m, bearing }) => {
    const angle = (bearing * Math.PI) / 180;
    const [right, down] = [Math.sin(angle), -Math.cos(angle)];
    const far_px = distance_m / frame.m_per_px;
    if (Math.abs(right * far_px) < x0 && Math.abs(down * far_px) < y0) return [];
    const reach_px = Math.min(x0 / Math.abs(right), y0 / Math.abs(down));
    const text = `${arrows[quarterOf(bearing)]} ${plain(name)} ${distanceText(distance_m)}`;
    const half_px = (text.length * char_px) / 2 + edge.side;
    const within = (at: number, from: number, to: number) => Math.max(from, Math.min(to, at));
    const x = within(x0 + right * reach_px, half_px, frame.w - half_px);
    const top = quarterOf(bearing) === 1 ? edge.controls : edge.top;
    return [{ x, y: within(y0 + down * reach_px, top, frame.h - edge.bottom), text }];
  });
}

function isCovered({ center: [lon, lat] }: Mercator) {
  if (!base.bounds) return false;
  const [west, south, east, north] = base.bounds;
  return lon >= west && lon <= east && lat >= south && lat <= north;
}
