/** The map of the operator: what it shows, and its file by ranges. */
import { createRoute, type OpenAPIHono, z } from '@hono/zod-openapi';
import type { Context } from 'hono';
import { messageOf } from '../../platform/errors.ts';
import { map_archive_path, mapResource, type MapResource } from '../api/map-resources.ts';
import { RequestProblem } from '../api/problem.ts';
import type { MapFile, MapVersion } from '../map/map-file.ts';
import { asProblem, type Env, okJson, readProblem } from './context.ts';
import { newRoutes } from './problems.ts';
import { texts } from '../texts.ts';

const tags = ['maps'];
const archive_type = 'application/vnd.pmtiles';
/** A browser asks at most once in this time whether a part of the map is still the same. */
const caching = 'private, max-age=600';
const retry_s = 30;

const getMap = createRoute({
  method: 'get',
  path: '/api/map',
  operationId: 'getMap',
  summary: 'Get what the map shows',
  description:
    'Returns bounds, zooms and attribution of the map that the operator installed, and where its file is.',
  tags,
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
const getArchive = createRoute({
  method: 'get',
  path: map_archive_path,
  operationId: 'getMapArchive',
  summary: 'Get parts of the map file',
  description:
    'Returns the PMTiles archive, or the part that the header `Range` names. 404 when no map is configured.',
  tags,
  request: {
    headers: z.object({
      range: z
        .string()
        .optional()
        .openapi({
          param: { name: 'range', in: 'header', description: 'one range of bytes', example: 'bytes=0-16383' },
        }),
    }),
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
  c.header('ETag', tag);
  c.header('Accept-Ranges', 'bytes');
  c.header('Cache-Control', caching);
  if (names(c.req.header('if-none-match'), tag)) return c.body(null, 304);
  // A part of another version would not fit to the parts that the client has (section 13.1.5).
  const since = c.req.header('if-range');
  const range = readRange(since === undefined || since === tag ? c.req.header('range') : undefined, bytes);
  if (range.kind === 'unsatisfiable') {
    throw new RequestProblem('range-not-satisfiable', texts.map_bytes(bytes), { size: bytes });
  }
  const [first, last] = range.kind === 'part' ? [range.first, range.last] : [0, bytes - 1];
  const length = last - first + 1;
  c.header('Content-Type', archive_type);
  c.header('Content-Length', String(length));
  if (range.kind === 'part') c.header('Content-Range', `bytes ${first}-${last}/${bytes}`);
  const status = range.kind === 'part' ? 206 : 200;
  if (c.req.method === 'HEAD' || length === 0) return c.body(null, status);
  return c.body(map.stream(version, first, length), status);
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

/** Compares weakly, as section 13.1.2 has it. */
function names(header: string | undefined, tag: string): boolean {
  if (header === undefined) return false;
  return header.trim() === '*' || [...header.matchAll(/"[^"]*"/gu)].some(([each]) => each === tag);
}

type ByteRange =
  /** The request names no part, or one in a form that may be ignored: the whole file is sent. */
  | { readonly kind: 'whole' }
  | { readonly kind: 'part'; readonly first: number; readonly last: number }
  | { readonly kind: 'unsatisfiable' };

const digits_max = 15;
const form = new RegExp(`^bytes=(\\d{0,${digits_max}})-(\\d{0,${digits_max}})$`, 'iu');

/** Reads a request for a part of a file (RFC 9110, section 14). Several parts in one request are answered with the whole file, which the standard allows. */
export function readRange(header: string | undefined, bytes: number): ByteRange {
  const [, first = '', last = ''] = form.exec(header?.trim() ?? '') ?? [];
  if (first === '' && last === '') return { kind: 'whole' };
  return first === '' ? suffix(Number(last), bytes) : from(Number(first), last, bytes);
}

/** The last bytes of the file. */
function suffix(wanted: number, bytes: number): ByteRange {
  const length = Math.min(wanted, bytes);
  return length === 0 ? { kind: 'unsatisfiable' } : { kind: 'part', first: bytes - length, last: bytes - 1 };
}

/** `last` empty: to the end of the file. */
function from(first: number, last: string, bytes: number): ByteRange {
  if (last !== '' && Number(last) < first) return { kind: 'whole' };
  if (first >= bytes) return { kind: 'unsatisfiable' };
  return { kind: 'part', first, last: last === '' ? bytes - 1 : Math.min(Number(last), bytes - 1) };
}
