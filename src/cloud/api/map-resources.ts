/** The map of the operator, as clients read it. */
import { z } from '@hono/zod-openapi';
import { compressions, tileTypes } from '../map/pmtiles.ts';

export const map_archive_path = '/api/map/archive.pmtiles';

const longitude = z.number().min(-180).max(180);
const latitude = z.number().min(-90).max(90);

const mapArchive = z
  .strictObject({
    url: z.literal(map_archive_path).describe('path of the archive, which is read by ranges'),
    etag: z.string().describe('strong ETag of the archive; another one when the file was replaced'),
    bytes: z.int().nonnegative(),
    tile_type: z.enum(tileTypes).describe('form of the tiles; mvt: vector tiles of Mapbox'),
    tile_compression: z.enum(compressions),
    min_zoom: z.int(),
    max_zoom: z.int(),
    bounds: z.array(longitude).length(4).describe('west, south, east, north'),
    center: z.strictObject({ lat: latitude, lon: longitude, zoom: z.int() }),
    name: z.string().optional(),
    description: z.string().optional(),
    attribution: z
      .string()
      .optional()
      .describe('must be shown with the map; may contain HTML: do not insert it as such'),
    vector_layers: z.array(z.string()).optional().describe('ids of the layers of vector tiles'),
  })
  .openapi('MapArchive');

export const mapResource = z
  .strictObject({
    archive: mapArchive.nullable().describe('null: no map is configured, or its file cannot be read'),
    fault: z.string().optional().describe('why the configured file cannot be read'),
  })
  .openapi('Map');
export type MapResource = z.output<typeof mapResource>;
