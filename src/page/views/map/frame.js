/** Which part of the Earth a map shows, and where in it a place is drawn. */
import { offset, project } from '../../world/geo.js';
import { placeOfAsset, placeOfKit } from '../../world/places.js';
import { trackNow } from '../../world/history/track.js';

/** @import { Place } from '../../world/geo.js' */
/** @import { LiveAsset, View } from '../../types.d.ts' */

/**
 * @typedef {object} Frame
 * @property {number} w pixels
 * @property {number} h
 * @property {number} m_per_px metres for one pixel, in the middle
 * @property {(place: Place) => readonly [x: number, y: number]} toPicture
 * @property {(x: number, y: number) => Place} toPlace
 */

const range_min_m = 50;
/** The range uses round numbers, so that the scale does not change with each fix. */
const range_steps = [1, 1.5, 2, 3, 4, 6, 8, 10];
/** Share of the half of the shorter side that the range takes. */
const filled = 0.78;

/**
 * The section that a map shows: everything by default, else what was chosen.
 * @param {View} view
 * @param {{ readonly w: number, readonly h: number, readonly asset: LiveAsset | undefined }} about
 * @returns {{ readonly center: Place, readonly range_m: number } | undefined} undefined: no position is known
 */
export function sectionOf(view, { asset }) {
  const { zoom, center: followed_id, pan } = view.choices.map;
  const shown = shownOn(view, asset);
  const middle = placeOf(followed_id, view) ?? shown[0];
  const center = pan ?? middle;
  if (!center) return undefined;
  const far_m = farthest(middle ?? center, shown);
  const power = 10 ** Math.floor(Math.log10(far_m));
  const fitted = range_steps.find((step) => step * power >= far_m) ?? 10;
  return { center, range_m: (fitted * power) / 2 ** zoom };
}

/**
 * The places that a map shows, that in its middle first: of one asset, its way and the kit, or of the kit and all assets.
 * @param {View} view
 * @param {LiveAsset | undefined} asset
 * @returns {readonly Place[]}
 */
function shownOn(view, asset) {
  const place = placeOfKit(view);
  const kit = place ? [place] : [];
  const own = asset && placeOfAsset(asset, view);
  if (asset && own) return [own, ...kit, ...wayOf(asset, view)];
  return [...kit, ...[...view.world.assets.values()].flatMap((each) => placeOfAsset(each, view) ?? [])];
}

/**
 * @param {LiveAsset} asset
 * @param {View} view
 */
function wayOf(asset, view) {
  return (trackNow(asset, view)?.track ?? []).flat();
}

/**
 * @param {Place} middle
 * @param {readonly Place[]} places
 */
function farthest(middle, places) {
  return places.reduce((most, place) => Math.max(most, Math.hypot(...project(middle, place))), range_min_m);
}

/**
 * @param {string | null} asset_id
 * @param {View} view
 */
function placeOf(asset_id, view) {
  const asset = asset_id === null ? undefined : view.world.assets.get(asset_id);
  return asset && placeOfAsset(asset, view);
}

/**
 * The plane around the centre, without any library.
 * @param {{ readonly center: Place, readonly range_m: number }} section
 * @param {number} w
 * @param {number} h
 * @returns {Frame}
 */
export function planeFrame({ center, range_m }, w, h) {
  const m_per_px = range_m / ((Math.min(w, h) / 2) * filled);
  return {
    w,
    h,
    m_per_px,
    toPicture: (place) => {
      const [east, north] = project(center, place);
      return [round(w / 2 + east / m_per_px), round(h / 2 - north / m_per_px)];
    },
    toPlace: (x, y) => offset(center, (x - w / 2) * m_per_px, (h / 2 - y) * m_per_px),
  };
}

/** @typedef {Frame & { readonly center: [lon: number, lat: number], readonly zoom: number }} Mercator */

/** Radius of the map's sphere, metres. */
const mercator_m = 6_378_137;
const tile_px = 512;
const rad = Math.PI / 180;
const lat_max = 85.05;
const zoom_max = 20;

/**
 * The section as the base map shows it, in the projection of Mercator.
 * @param {{ readonly center: Place, readonly range_m: number }} section
 * @param {number} w
 * @param {number} h
 * @returns {Mercator}
 */
export function mercatorFrame({ center, range_m }, w, h) {
  const round_m = 2 * Math.PI * mercator_m * Math.cos(center.lat * rad);
  const wanted_m = range_m / ((Math.min(w, h) / 2) * filled);
  const zoom = Math.min(zoom_max, Math.max(0, Math.log2(round_m / wanted_m / tile_px)));
  const world_px = tile_px * 2 ** zoom;
  const xOf = (/** @type {number} */ lon) => (lon / 360) * world_px;
  const yOf = (/** @type {number} */ lat) => {
    const bounded = Math.min(lat_max, Math.max(-lat_max, lat)) * rad;
    return (-Math.asinh(Math.tan(bounded)) / (2 * Math.PI)) * world_px;
  };
  const [x0, y0] = [xOf(center.lon), yOf(center.lat)];
  return {
    w,
    h,
    center: [center.lon, center.lat],
    zoom,
    m_per_px: round_m / world_px,
    toPicture: ({ lat, lon }) => {
      // By the shorter way round the Earth.
      const dx = xOf(lon) - x0;
      return [round(w / 2 + dx - Math.round(dx / world_px) * world_px), round(h / 2 + yOf(lat) - y0)];
    },
    toPlace: (x, y) => {
      const lon = ((x - w / 2 + x0) / world_px) * 360;
      const lat = Math.atan(Math.sinh((-(y - h / 2 + y0) / world_px) * 2 * Math.PI)) / rad;
      return { lat, lon: ((((lon + 180) % 360) + 360) % 360) - 180 };
    },
  };
}

/** @param {number} x */
function round(x) {
  return Math.round(x * 10) / 10;
}
