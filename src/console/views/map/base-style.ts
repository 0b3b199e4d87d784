/** The style of the base map in the colours of the theme: the world's land, then the operator's tiles. */
import { field } from '../../json.ts';
import { land } from './world.ts';
import type { Detail } from './detail.ts';
import type { Bounds } from './frame.ts';
import type { ExpressionSpecification, FilterSpecification, StyleSpecification } from 'maplibre-gl';

type Layer = StyleSpecification['layers'][number];

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
 * @param archive of `/api/map`, or of a file on this device; undefined: there is none
 * @param detail undefined: until it is loaded, the outline of the world
 * @param bounds of the archive
 */
export function styleOf(
  archive: unknown,
  detail: Detail | undefined,
  bounds: Bounds | undefined,
): StyleSpecification {
  const isVector = field(archive, 'tile_type') === 'mvt';
  const area = areaOf(field(archive, 'url'), isVector);
  return {
    version: 8,
    sources: {
      world: { type: 'geojson', data: detail?.land ?? worldLand() },
      ...(detail && {
        borders: { type: 'geojson', data: detail.borders },
        towns: { type: 'geojson', data: detail.towns },
      }),
      ...(area && { area }),
    },
    layers: [
      { id: 'sea', type: 'background', paint: { 'background-color': color('map-water') } },
      { id: 'land', type: 'fill', source: 'world', paint: { 'fill-color': color('map-land') } },
      {
        id: 'coast',
        type: 'line',
        source: 'world',
        paint: { 'line-color': color('map-contour'), 'line-width': 0.8 },
      },
      ...(detail ? [bordersLayer()] : []),
      ...(area ? (isVector ? vectorLayers() : [rasterLayer()]) : []),
      // An operator's map has names of its own.
      ...(detail ? townLayers(area && bounds) : []),
    ],
  };
}

/** @param url an address of the service, or the name of a file on this device */
function areaOf(url: unknown, isVector: boolean) {
  if (typeof url !== 'string') return undefined;
  const address = `pmtiles://${url.startsWith('/') ? location.origin : ''}${url}`;
  return isVector
    ? { type: 'vector' as const, url: address }
    : { type: 'raster' as const, url: address, tileSize: raster_tile_px };
}

/**
 * A colour of the theme.
 * @param name of the token
 */
function color(name: string) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

function bordersLayer(): Layer {
  return {
    id: 'borders',
    type: 'line',
    source: 'borders',
    paint: {
      'line-color': color('map-ink'),
      'line-opacity': 0.4,
      'line-width': 1.2,
      'line-dasharray': [4, 2],
    },
  };
}

/** From which zoom places of so much influence are named: the index keeps it in twentieths of a kilometre. */
const town_zooms: readonly (readonly [size_min: number, zoom: number])[] = [
  [160, 0],
  [95, 3],
  [48, 5],
  [30, 6],
  [19, 8],
  [0, 9],
];

function townLayers(without: Bounds | undefined): Layer[] {
  const outside: ExpressionSpecification[] = without ? [['!', ['within', boxOf(without)]]] : [];
  return town_zooms.map(([size_min, zoom], i) => ({
    id: `towns ${zoom}`,
    type: 'symbol',
    source: 'towns',
    minzoom: zoom,
    filter: [
      'all',
      ['>=', ['get', 'size'], size_min],
      ['<', ['get', 'size'], town_zooms[i - 1]?.[0] ?? 256],
      ...outside,
    ],
    layout: {
      'text-field': ['get', 'name'],
      'text-size': 14 - i / 2,
      'symbol-sort-key': ['-', ['get', 'size']],
      'text-padding': 6,
    },
    paint: { 'text-color': color('map-ink'), 'text-halo-color': color('map-land'), 'text-halo-width': 1.5 },
  }));
}

function boxOf([west, south, east, north]: Bounds) {
  const corners = [
    [west, south],
    [east, south],
    [east, north],
    [west, north],
    [west, south],
  ];
  return { type: 'Polygon' as const, coordinates: [corners] };
}

function rasterLayer(): Layer {
  return { id: 'area', type: 'raster', source: 'area' };
}

function vectorLayers(): Layer[] {
  const water = color('map-water');
  const roads = color('map-road');
  const text: Layer[] = layers.places.map((name) => ({
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

const woodFilter: FilterSpecification = [
  'in',
  ['coalesce', ['get', 'kind'], ['get', 'class'], ''],
  ['literal', woods],
];

/** @param name of the layer of the tiles */
function fill(name: string, paint: string): Extract<Layer, { type: 'fill' }> {
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
 * @param name of the layer of the tiles
 * @param about `px`: its width at zoom 10
 */
function line(
  name: string,
  { id, paint, px }: { readonly id: string; readonly paint: string; readonly px: number },
): Layer {
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
    type: 'MultiPolygon' as const,
    coordinates: land.map((polygon) => polygon.split(';').map(ringOf)),
  };
}

function ringOf(text: string) {
  const numbers = text.split(' ').map(Number);
  const points: number[][] = [];
  let x = 0;
  let y = 0;
  for (let i = 0; i + 1 < numbers.length; i += 2) {
    x += numbers[i] ?? 0;
    y += numbers[i + 1] ?? 0;
    points.push([x / units_per_degree, y / units_per_degree]);
  }
  return points;
}
