/** Which part of the Earth a map shows, and where in it a place is drawn. */
import { offset, project } from '../../world/geo.js';
import { placeOfAsset, placeOfKit } from '../../world/places.js';

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
  const kit = placeOfKit(view);
  const own = asset && placeOfAsset(asset, view);
  const { zoom, center: followed_id, pan } = view.choices.map;
  const all = [...view.world.assets.values()].flatMap((each) => placeOfAsset(each, view) ?? []);
  const chosen = placeOf(followed_id, view);
  const center = pan ?? chosen ?? own ?? kit ?? all[0];
  if (!center) return undefined;
  const shown = own ? [own, ...(kit ? [kit] : [])] : [...all, ...(kit ? [kit] : [])];
  const far_m = Math.max(
    range_min_m,
    ...shown.map((place) => Math.hypot(...project(chosen ?? own ?? kit ?? center, place))),
  );
  const power = 10 ** Math.floor(Math.log10(far_m));
  const fitted = range_steps.find((step) => step * power >= far_m) ?? 10;
  return { center, range_m: (fitted * power) / 2 ** zoom };
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

/** @param {number} x */
function round(x) {
  return Math.round(x * 10) / 10;
}
