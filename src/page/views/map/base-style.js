/** The style of the base map in the colours of the theme: the world's land, then the operator's tiles. */
import { field } from '../../world/json.js';
import { land } from './world.js';

/** @import { StyleSpecification } from '../../maplibre-gl.js' */

/** @typedef {StyleSpecification['layers'][number]} Layer */

const units_per_degree = 100;
const raster_tile_px = 256;
/** The names of one kind of thing in the schemas of Protomaps and OpenMapTiles. */
const layers = {
  earth: ['earth'],
  wood: ['landcover', 'landuse', 'park'],
  water: ['water'],
  roads: ['roads', 'transportation'],
  buildings: ['buildings', 'building'],
  borders: ['boundaries', 'boundary'],
  places: ['places', 'place'],
};
const woods = ['forest', 'wood', 'park', 'nature_reserve', 'grass', 'grassland', 'scrub', 'meadow'];

/**
 * @param {unknown} archive of `/api/map`; undefined: the outline of the world only
 * @returns {StyleSpecification}
 */
export function styleOf(archive) {
  const url = field(archive, 'url');
  const isVector = field(archive, 'tile_type') === 'mvt';
  const area =
    typeof url !== 'string'
      ? undefined
      : isVector
        ? { type: /** @type {const} */ ('vector'), url: `pmtiles://${location.origin}${url}` }
        : {
            type: /** @type {const} */ ('raster'),
            url: `pmtiles://${location.origin}${url}`,
            tileSize: raster_tile_px,
          };
  return {
    version: 8,
    sources: {
      world: { type: 'geojson', data: worldLand() },
      ...(area && { area }),
    },
    layers: [
      { id: 'sea', type: 'background', paint: { 'background-color': color('map-water') } },
      { id: 'land', type: 'fill', source: 'world', paint: { 'fill-color': color('map-land') } },
      ...(area ? (isVector ? vectorLayers() : [rasterLayer()]) : []),
    ],
  };
}

/**
 * A colour of the theme.
 * @param {string} name of the token
 */
function color(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

/** @returns {Layer} */
function rasterLayer() {
  return { id: 'area', type: 'raster', source: 'area' };
}

/** @returns {Layer[]} */
function vectorLayers() {
  const water = color('map-water');
  const roads = color('map-road');
  /** @type {Layer[]} */
  const text = layers.places.map((name) => ({
    id: `${name} names`,
    type: 'symbol',
    source: 'area',
    'source-layer': name,
    layout: { 'text-field': ['get', 'name'], 'text-size': 13 },
    paint: { 'text-color': color('map-ink'), 'text-halo-color': color('map-land'), 'text-halo-width': 1.5 },
  }));
  return [
    ...layers.earth.map((name) => fill(name, color('map-land'))),
    ...layers.wood.map((name) => ({ ...fill(name, color('map-wood')), filter: woodFilter })),
    ...layers.water.map((name) => fill(name, water)),
    ...layers.roads.map((name) => line(name, { id: 'edge', paint: color('map-road-edge'), px: 1.6 })),
    ...layers.roads.map((name) => line(name, { id: 'way', paint: roads, px: 1 })),
    ...layers.buildings.map((name) => fill(name, color('map-contour'))),
    ...layers.borders.map((name) => line(name, { id: 'border', paint: color('map-contour'), px: 0.6 })),
    ...text,
  ];
}

/** @type {import('../../maplibre-gl.js').FilterSpecification} */
const woodFilter = ['in', ['coalesce', ['get', 'kind'], ['get', 'class'], ''], ['literal', woods]];

/**
 * @param {string} name of the layer of the tiles
 * @param {string} paint
 * @returns {Extract<Layer, { type: 'fill' }>}
 */
function fill(name, paint) {
  return {
    id: name,
    type: 'fill',
    source: 'area',
    'source-layer': name,
    filter: ['==', ['geometry-type'], 'Polygon'],
    paint: { 'fill-color': paint },
  };
}

/**
 * A line that grows with the zoom.
 * @param {string} name of the layer of the tiles
 * @param {{ readonly id: string, readonly paint: string, readonly px: number }} about `px`: its width at zoom 10
 * @returns {Layer}
 */
function line(name, { id, paint, px }) {
  return {
    id: `${name} ${id}`,
    type: 'line',
    source: 'area',
    'source-layer': name,
    layout: { 'line-cap': 'round', 'line-join': 'round' },
    paint: {
      'line-color': paint,
      'line-width': ['interpolate', ['exponential', 1.5], ['zoom'], 6, px / 2, 10, px, 18, px * 9],
    },
  };
}

/** The land as GeoJSON: strings of differences in hundredths of a degree. */
export function worldLand() {
  return {
    type: /** @type {const} */ ('MultiPolygon'),
    coordinates: land.map((polygon) => polygon.split(';').map(ringOf)),
  };
}

/** @param {string} text */
function ringOf(text) {
  const numbers = text.split(' ').map(Number);
  /** @type {number[][]} */
  const points = [];
  let x = 0;
  let y = 0;
  for (let i = 0; i + 1 < numbers.length; i += 2) {
    x += numbers[i] ?? 0;
    y += numbers[i + 1] ?? 0;
    points.push([x / units_per_degree, y / units_per_degree]);
  }
  return points;
}
