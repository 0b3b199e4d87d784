/** The map: no tiles and no network; the kit in the middle, distance rings, trails, and the heading of each asset. */
import { assetState, duration } from '../world/age.js';
import { distanceText, placeText, project, roundDown } from '../world/geo.js';
import { html } from './html.js';
import { section } from './marks.js';
import { headingOf, placeOfAsset, placeOfKit } from '../world/places.js';
import { plain } from '../world/text.js';
import { fixOf } from '../world/world.js';

/** @import { Place } from '../world/geo.js' */
/** @import { KnownPlace } from '../world/places.js' */
/** @import { Fix, LiveAsset, View } from '../types.d.ts' */

/** Half the side of the picture, and the radius that the range takes, in its own units. */
const half = 200;
const radius = 170;
const range_min_m = 50;
/** The range uses round numbers, so that the scale does not change with each fix. */
const range_steps = [1, 1.5, 2, 3, 4, 6, 8, 10];
const rings_max = 5;
/** Beyond this a label would leave the map. */
const label_x_max = 110;
const label_y_max = 150;
const first_strong_isolate = String.fromCodePoint(0x20_68);
const pop_isolate = String.fromCodePoint(0x20_69);
const label_chars_max = 14;
const zoom_min = -4;
const zoom_max = 8;

/** @typedef {{ readonly center: Place, readonly range_m: number }} Frame */

/** @param {View} view */
export function mapView(view) {
  const kit = placeOfKit(view);
  const located = [...view.world.assets.values()].flatMap((asset) => {
    const place = placeOfAsset(asset, view);
    return place ? [{ asset, place }] : [];
  });
  if (!kit && located.length === 0) return section('map', 'Map', html`<p>No position reported yet</p>`);
  const frame = frameOf(
    view,
    kit,
    located.map(({ place }) => place),
  );
  const summary = `Plan map. ${kit ? 'Kit' : 'No kit position'}, ${located.length} assets; the asset list shows distance and bearing of each.`;
  return section(
    'map',
    'Map',
    html`<svg
        class="map"
        viewBox="${-half} ${-half} ${2 * half} ${2 * half}"
        role="img"
        aria-label=${summary}
      >
        ${rings(frame.range_m)}
        <text class="north" x="0" y=${-half + 16} text-anchor="middle">N ▲</text>
        ${located.map(({ asset }) => trail(asset, frame, view))} ${kit && kitMark(kit, frame)}
        ${located.map(({ asset, place }) => assetMark(asset, place, frame, view))} ${scaleBar(frame.range_m)}
      </svg>
      ${controls(view)}
      <p class="place">Middle: ${placeText(frame.center)}${kit ? '' : ' (kit position unknown)'}</p>`,
  );
}

/**
 * Returns the section that the map shows: everything by default, at the chosen zoom otherwise.
 * @param {View} view
 * @param {KnownPlace | undefined} kit
 * @param {readonly Place[]} places
 * @returns {Frame}
 */
function frameOf(view, kit, places) {
  const { zoom, center: chosen } = view.choices.map;
  const followed = chosen === null ? undefined : view.world.assets.get(chosen);
  const center = (followed && placeOfAsset(followed, view)) ?? kit ?? places[0] ?? { lat: 0, lon: 0 };
  const far_m = Math.max(range_min_m, ...places.map((place) => Math.hypot(...project(center, place))));
  const power = 10 ** Math.floor(Math.log10(far_m));
  const fitted = range_steps.find((step) => step * power >= far_m) ?? 10;
  return { center, range_m: (fitted * power) / 2 ** zoom };
}

/**
 * @param {Frame} frame
 * @param {Place} place
 * @returns {readonly [x: number, y: number]}
 */
function toPicture({ center, range_m }, place) {
  const [east, north] = project(center, place);
  return [round((east / range_m) * radius), round((-north / range_m) * radius)];
}

/** @param {number} x */
function round(x) {
  return Math.round(x * 10) / 10;
}

/** @param {number} range_m */
function rings(range_m) {
  const step_m = roundDown(range_m / 2);
  const all = Array.from({ length: rings_max }, (_, i) => step_m * (i + 1)).filter(
    (m) => m <= range_m * 1.16,
  );
  return all.map((m) => {
    const r = round((m / range_m) * radius);
    return html`<g key=${`ring ${m}`} class="ring"
      ><circle r=${r} /><text x="4" y=${r - 4}>${distanceText(m)}</text></g
    >`;
  });
}

/** @param {number} range_m */
function scaleBar(range_m) {
  const m = roundDown(range_m / 2);
  const width = round((m / range_m) * radius);
  const y = half - 10;
  return html`<g class="scale">
    <path d="M${-half + 8} ${y - 6} V${y} H${-half + 8 + width} V${y - 6}" /><text x=${-half + 12} y=${y - 6}
      >${distanceText(m)}</text
    >
  </g>`;
}

/**
 * The path of the last minutes, thicker where it is newer.
 * @param {LiveAsset} asset
 * @param {Frame} frame
 * @param {View} view
 */
function trail(asset, frame, view) {
  const newest = fixOf(view.world.feeds.get(asset.id)?.['gps']);
  const fixes = [...(view.world.trails.get(asset.id) ?? []), ...(newest ? [newest] : [])];
  if (fixes.length < 2) return '';
  const third = Math.ceil(fixes.length / 3);
  return html`<g key=${`trail ${asset.id}`} class="trail">
    ${[0, 1, 2].map((i) => html`<polyline class=${`part-${i}`} points=${line(fixes.slice(i * third, (i + 1) * third + 1), frame)} />`)}
  </g>`;
}

/**
 * @param {readonly Fix[]} fixes
 * @param {Frame} frame
 */
function line(fixes, frame) {
  return fixes.map((fix) => toPicture(frame, fix).join(',')).join(' ');
}

/**
 * @param {KnownPlace} kit
 * @param {Frame} frame
 */
function kitMark(kit, frame) {
  const [x, y] = toPicture(frame, kit);
  return html`<g key="kit" class=${kit.isOld ? 'mark old' : 'mark'} transform="translate(${x} ${y})">
    <rect x="-8" y="-8" width="16" height="16" /><text x="12" y="-8">KIT${oldText(kit)}</text>
  </g>`;
}

/**
 * A hollow mark: offline, or its position is old. It is never removed.
 * @param {LiveAsset} asset
 * @param {KnownPlace} place
 * @param {Frame} frame
 * @param {View} view
 */
function assetMark(asset, place, frame, view) {
  const [x, y] = toPicture(frame, place);
  const isHollow = place.isOld || assetState(asset, view) !== 'online';
  const heading = headingOf(asset, view);
  const text = plain(asset.name);
  const short = text.length > label_chars_max ? `${text.slice(0, label_chars_max - 1)}…` : text;
  const choose = () => {
    view.choices.open_asset = asset.id;
    view.act.changed();
  };
  return html`<g
    key=${asset.id}
    class=${isHollow ? 'mark old' : 'mark'}
    transform="translate(${x} ${y})"
    onClick=${choose}
  >
    <circle class="target" r="24" />
    ${heading !== undefined && html`<path class="heading" d="M-7 -9 L0 -26 L7 -9" transform="rotate(${round(heading)})" />`}
    <circle r="8" />
    <text y=${y > label_y_max ? -30 : 26} text-anchor=${anchorOf(x)}>
      <tspan x="0">${isolated(short)}</tspan><tspan x="0" dy="16">${oldText(place)}</tspan>
    </text>
  </g>`;
}

/** @param {number} x */
function anchorOf(x) {
  if (x > label_x_max) return 'end';
  return x < -label_x_max ? 'start' : 'middle';
}

/** @param {KnownPlace} place */
function oldText({ isOld, age_ms }) {
  return isOld ? ` OLD ${age_ms === null ? '' : duration(age_ms)}` : '';
}

/** @param {View} view */
function controls({ choices, act, world }) {
  /** @param {number} by */
  const zoom = (by) => () => {
    choices.map.zoom = Math.min(zoom_max, Math.max(zoom_min, choices.map.zoom + by));
    act.changed();
  };
  const fit = () => {
    choices.map.zoom = 0;
    choices.map.center = null;
    act.changed();
  };
  const open = choices.open_asset === null ? undefined : world.assets.get(choices.open_asset);
  const isFollowing = open !== undefined && choices.map.center === open.id;
  const follow = () => {
    choices.map.center = isFollowing || !open ? null : open.id;
    act.changed();
  };
  return html`<div class="filters" role="group" aria-label="Map">
    <button type="button" onClick=${zoom(1)} aria-label="Nearer">+</button>
    <button type="button" onClick=${zoom(-1)} aria-label="Farther">−</button>
    <button type="button" onClick=${fit}>Fit all</button>
    <button
      type="button"
      onClick=${follow}
      aria-pressed=${String(isFollowing)}
      aria-disabled=${String(!open)}
    >
      Follow the opened asset
    </button>
  </div>`;
}

/**
 * Isolates the text direction of a name; SVG has no element for it.
 * @param {string} text
 */
function isolated(text) {
  return `${first_strong_isolate}${text}${pop_isolate}`;
}
