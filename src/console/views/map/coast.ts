/** The land of the world in SVG, where there is no base map: behind marks that are far apart. */
import { html } from '../parts/html.ts';
import { lazy } from '../parts/lazy.ts';
import type { View } from '../../types.d.ts';
import type { Mercator } from './frame.ts';

/** The outline is too coarse for less. */
const m_per_px_min = 100;
const latitude_max = 85.05;

const outline = lazy(async () => {
  const { worldLand } = await import('./base-style.ts');
  return worldLand().coordinates.flat().map(ringPath).join('');
});

export function coast({ w, h, center: [lon, lat], zoom, m_per_px }: Mercator, { act }: View) {
  if (m_per_px < m_per_px_min) return '';
  outline.load(act);
  const scale = (512 * 2 ** zoom) / 360;
  return html`<rect class="sea" width=${w} height=${h} /> ${[-360, 0, 360].map(
      (turn) =>
        html`<path
          key=${turn}
          class="land"
          d=${outline.now() ?? ''}
          vector-effect="non-scaling-stroke"
          transform=${`translate(${w / 2} ${h / 2}) scale(${scale}) translate(${turn - lon} ${-downOf(lat)})`}
        />`,
    )}`;
}

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

/** How far below the equator a latitude is drawn, in degrees of longitude. */
function downOf(latitude: number) {
  const bounded = (Math.max(-latitude_max, Math.min(latitude_max, latitude)) * Math.PI) / 180;
  return (Math.log(Math.tan(Math.PI / 4 - bounded / 2)) * 180) / Math.PI;
}
