/** The map of the operator: what it shows, and its file by ranges. */
import { type OpenAPIHono, z } from '@hono/zod-openapi';
import type { Context } from 'hono';
import { messageOf } from '../../platform/errors.ts';
import { map_archive_path, mapResource, type MapResource } from '../api/map-resources.ts';
import { RequestProblem } from '../api/problem.ts';
import type { MapFile, MapVersion } from '../map/map-file.ts';
import { asProblem, type Env, okJson, readProblem, routesUnder } from './context.ts';
import { newRoutes } from './problems.ts';
import { rangeHeaders, sendBytes } from './ranges.ts';
import { texts } from '../texts.ts';

const route = routesUnder('maps');
const archive_type = 'application/vnd.pmtiles';
/** A browser asks at most once in this time whether a part of the map is still the same. */
const caching = 'private, max-age=600';
const retry_s = 30;

const getMap = route('get', '/api/map', {
  operationId: 'getMap',
  summary: 'Get what the map shows',
  description:
    'Returns bounds, zooms and attribution of the map that the operator installed, and where its file is.',
  responses: { 200: okJson(mapResource, 'the map'), ...readProblem },
});

const part = { [archive_type]: { schema: z.string().openapi({ format: 'binary' }), example: 'PMTiles' } };
const fileHeaders = z.object({
  'Accept-Ranges': z.string().describe('always `bytes`'),
  ETag: z.string().describe('strong; for `If-Range` and `If-None-Match`'),
});
const partHeaders = fileHeaders.extend({
  'Content-Range': z.string().describe('`bytes FIRST-LAST/SIZE`'),
});
const unsatisfiable = z.object({ 'Content-Range': z.string().describe('`bytes */SIZE`') });
const getArchive = route('get', map_archive_path, {
  operationId: 'getMapArchive',
  summary: 'Get parts of the map file',
  description:
    'Returns the PMTiles archive, or the part that the header `Range` names. 404 when no map is configured.',
  request: {
    headers: rangeHeaders,
  },
  responses: {
    200: { description: 'the whole file', headers: fileHeaders, content: part },
    206: { description: 'the part', headers: partHeaders, content: part },
    ...readProblem,
    416: asProblem(416, 'the range begins behind the end of the file', unsatisfiable),
  },
});

/** `map` undefined: none is configured. */
export function mapRoutes(map: MapFile | undefined): OpenAPIHono<Env> {
  const routes = newRoutes();
  routes.openapi(getMap, async (c) => c.json(await describe(map), 200));
  routes.openapi(getArchive, async (c) => {
    if (!map) throw new RequestProblem('not-found', texts.no_map);
    return send(c, map);
  });
  return routes;
}

async function describe(map: MapFile | undefined): Promise<MapResource> {
  if (!map) return { archive: null };
  try {
    const { tag, bounds, ...info } = await map.info();
    return { archive: { url: map_archive_path, etag: tag, bounds: [...bounds], ...info } };
  } catch (error) {
    return { archive: null, fault: messageOf(error) };
  }
}

async function send(c: Context<Env>, map: MapFile): Promise<Response> {
  const version = await versionOf(map);
  const { tag, bytes } = version;
  c.header('Cache-Control', caching);
  return sendBytes(c, {
    tag,
    bytes,
    content_type: archive_type,
    stream: (first, length) => map.stream(version, first, length),
  });
}

async function versionOf(map: MapFile): Promise<MapVersion> {
  try {
    return await map.version();
  } catch (error) {
    throw new RequestProblem('unavailable', texts.map_unreadable(messageOf(error)), {
      retry_after_s: retry_s,
    });
  }
}
