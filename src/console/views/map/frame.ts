/** Which part of the Earth a map shows, and where in it a place is drawn. */
import { project, type Place } from '../../world/geo.ts';
import { placeOfAsset, placeOfKit } from '../../world/places.ts';
import { trackNow } from '../../world/history/track.ts';
import type { LiveAsset, View } from '../../types.d.ts';
import type { Detail } from './detail.ts';

export interface Frame {
  /** Pixels. */
  w: number;
  h: number;
  /** Metres for one pixel, in the middle. */
  m_per_px: number;
  toPicture: (place: Place) => readonly [x: number, y: number];
  toPlace: (x: number, y: number) => Place;
}

/** The width of a character of a label, about. */
export const char_px = 7.2;
const range_min_m = 50;
/** What a person may zoom to: some metres, and the whole Earth. */
export const range_limits_m = { min: 15, max: 12_000_000 };
/** The range uses round numbers, so that the scale does not change with each fix. */
const range_steps = [1, 1.5, 2, 3, 4, 6, 8, 10];
/** Share of the half of the shorter side that the range takes. */
const filled = 0.78;

export interface Section {
  readonly center: Place;
  /** From the centre to the nearer edges, about. */
  readonly range_m: number;
}

/**
 * The section that a map of the kit or of an asset shows: everything by default, else what was chosen.
 * @returns undefined: no position is known
 */
export function sectionOf(view: View, asset?: LiveAsset): Section | undefined {
  const shown = shownOn(view, asset);
  return sectionAround(placeOf(view.choices.map.center, view) ?? shown[0], shown, view);
}

/** @param middle of the map until it is moved */
export function sectionAround(
  middle: Place | undefined,
  shown: readonly Place[],
  { choices: { map } }: View,
): Section | undefined {
  const center = map.pan ?? middle;
  if (!center) return undefined;
  const far_m = farthest(middle ?? center, shown);
  const power = 10 ** Math.floor(Math.log10(far_m));
  const fitted = range_steps.find((step) => step * power >= far_m) ?? 10;
  return { center, range_m: (fitted * power) / 2 ** map.zoom };
}

/** The places that a map shows, that in its middle first: of one asset, its way and the kit, or of the kit and all assets. */
function shownOn(view: View, asset: LiveAsset | undefined): readonly Place[] {
  const place = placeOfKit(view);
  const kit = place ? [place] : [];
  const own = asset && placeOfAsset(asset, view);
  if (asset && own) return [own, ...kit, ...wayOf(asset, view)];
  return [...kit, ...[...view.world.assets.values()].flatMap((each) => placeOfAsset(each, view) ?? [])];
}

function wayOf(asset: LiveAsset, view: View) {
  return (trackNow(asset, view)?.track ?? []).flat();
}

function farthest(middle: Place, places: readonly Place[]) {
  return places.reduce((most, place) => Math.max(most, Math.hypot(...project(middle, place))), range_min_m);
}

function placeOf(asset_id: string | null, view: View) {
  const asset = asset_id === null ? undefined : view.world.assets.get(asset_id);
  return asset && placeOfAsset(asset, view);
}

export type Mercator = Frame & { readonly center: [lon: number, lat: number]; readonly zoom: number };

/** Radius of the map's sphere, metres. */
const mercator_m = 6_378_137;
const tile_px = 512;
const rad = Math.PI / 180;
const lat_max = 85.05;
const zoom_max = 20;

/** The section in the projection of Mercator, as the base map shows it: never beyond the poles. */
export function mercatorFrame({ center, range_m }: Section, w: number, h: number): Mercator {
  const wanted_m = range_m / ((Math.min(w, h) / 2) * filled);
  const around_m = 2 * Math.PI * mercator_m;
  const zoom_min = Math.max(0, Math.log2(h / tile_px));
  const zoom = Math.min(
    zoom_max,
    Math.max(zoom_min, Math.log2((around_m * Math.cos(center.lat * rad)) / wanted_m / tile_px)),
  );
  const world_px = tile_px * 2 ** zoom;
  const xOf = (lon: number) => (lon / 360) * world_px;
  const yOf = (lat: number) => {
    const bounded = Math.min(lat_max, Math.max(-lat_max, lat)) * rad;
    return (-Math.asinh(Math.tan(bounded)) / (2 * Math.PI)) * world_px;
  };
  const latOf = (y: number) => Math.atan(Math.sinh((-y / world_px) * 2 * Math.PI)) / rad;
  const room_px = (world_px - h) / 2;
  const x0 = xOf(center.lon);
  const y0 = Math.min(room_px, Math.max(-room_px, yOf(center.lat)));
  return {
    w,
    h,
    center: [center.lon, latOf(y0)],
    zoom,
    m_per_px: (around_m * Math.cos(latOf(y0) * rad)) / world_px,
    toPicture: ({ lat, lon }) => {
      // By the shorter way round the Earth.
      const dx = xOf(lon) - x0;
      return [round(w / 2 + dx - Math.round(dx / world_px) * world_px), round(h / 2 + yOf(lat) - y0)];
    },
    toPlace: (x, y) => {
      const lon = ((x - w / 2 + x0) / world_px) * 360;
      return { lat: latOf(y - h / 2 + y0), lon: ((((lon + 180) % 360) + 360) % 360) - 180 };
    },
  };
}

function round(x: number) {
  return Math.round(x * 10) / 10;
}

export type Bounds = readonly [west: number, south: number, east: number, north: number];

/** What is known about the base map of this browser: it is not part of the choices, it belongs to the device. */
export const base: {
  /** `missing`: without WebGL. */
  state: 'none' | 'ready' | 'missing';
  attribution: string;
  fault: string;
  /** Where the operator's map is; undefined: there is none. */
  bounds: Bounds | undefined;
  /** Empty until they are loaded. */
  towns: Detail['towns']['features'];
} = { state: 'none', attribution: '', fault: '', bounds: undefined, towns: [] };
