/** The assets of the fleet as a layer that a GIS or an earth viewer shows and asks for again and again. */
import { type OpenAPIHono, z } from '@hono/zod-openapi';
import { examples } from '../api/examples.ts';
import { type AssetFeature, assetLayer } from '../api/layer-resources.ts';
import { layerKml, linkKml } from '../api/kml.ts';
import { byType } from '../api/views.ts';
import { compareText } from '../history/reading/page.ts';
import { RequestProblem } from '../api/problem.ts';
import type { Principal } from '../principal.ts';
import type { Service } from '../service.ts';
import type { Store } from '../store/sql-store.ts';
import type { PlacedAsset } from '../stored/stored.ts';
import { texts } from '../texts.ts';
import type { Gate } from '../access/gate.ts';
import { anyProblem, asProblem, type Env, readProblem, responseHeaders, routesUnder } from './context.ts';
import { askerOf } from './guards.ts';
import { ids, list, query } from './history/query.ts';
import { newRoutes } from './problems.ts';

const route = routesUnder('assets');
const media_type = 'application/geo+json';
const kml_type = 'application/vnd.google-earth.kml+xml';
const features_max = 20_000;
/** ATAK asks every 10 s at most (AndroidTacticalAssaultKit-CIV PR 13). */
const refresh_limits_s = { min: 5, max: 86_400 };

const filters = z.object({
  kits: query('kits', ids.optional(), 'only of these kits, separated by commas'),
  tags: query('tags', list.optional(), 'only of kits with one of these tags, separated by commas', 'alps'),
  types: query('types', list.optional(), 'only assets of these types, separated by commas', 'drone,vehicle'),
});
const problems = {
  ...readProblem,
  ...anyProblem,
  413: asProblem(413, 'the fleet has more assets'),
};

const getLayer = route('get', '/api/assets.geojson', {
  operationId: 'getAssetLayer',
  summary: 'Get the positions of assets',
  description: `Returns the assets with a position as GeoJSON points: the newest fix of the feed \`gps\`, or of a partner, else the fixed position. ${features_max} at most, else 413. Ask again with \`If-None-Match\`: 304 while nothing has moved.`,
  request: { query: filters },
  responses: {
    200: {
      description: 'by kit, type and name',
      content: { [media_type]: { schema: assetLayer, example: examples.get(assetLayer) } },
    },
    ...problems,
  },
});

const getKml = route('get', '/api/assets.kml', {
  operationId: 'getAssetKml',
  summary: 'Get the positions of assets for an earth viewer',
  description:
    'Returns what Get the positions of assets returns as KML 2.2, a folder for each kit. With `refresh_s`, a small file for Google Earth, ATAK and the like, which asks for the positions again and again. These programs send no header of their own: this path takes the API key as the password of HTTP Basic, too, with any user name.',
  request: {
    query: filters.extend({
      refresh_s: query(
        'refresh_s',
        z.coerce.number().int().min(refresh_limits_s.min).max(refresh_limits_s.max).optional(),
        'a network link that is refreshed at this interval, in seconds, in place of the positions',
        10,
      ),
    }),
  },
  responses: {
    200: {
      description: 'by kit, type and name',
      content: { [kml_type]: { schema: z.string(), example: '<kml/>' } },
    },
    ...problems,
    401: asProblem(401, 'no API key, or not a valid one', responseHeaders.password),
  },
});

export function layerRoutes(
  service: Service,
  store: Pick<Store, 'placedAssets'>,
  gate: Pick<Gate, 'originFor'>,
): OpenAPIHono<Env> {
  const routes = newRoutes();
  const featuresFor = async (
    principal: Principal,
    { kits, tags, types }: z.output<typeof filters>,
  ): Promise<readonly AssetFeature[]> => {
    const known = new Map((await service.kits(principal)).map((kit) => [kit.id, kit]));
    const foreign = kits?.find((id) => !known.has(id));
    if (foreign !== undefined) throw new RequestProblem('not-found', texts.no_kit(foreign));
    const wanted = [...known.values()].filter(
      (kit) =>
        (kits === undefined || kits.includes(kit.id)) &&
        (tags === undefined || tags.some((tag) => kit.tags?.includes(tag))),
    );
    const placed = await store.placedAssets(wanted.map(({ id }) => id));
    const features = placed
      .toSorted((a, b) => compareText(a.kit_id, b.kit_id) || byType(a.asset, b.asset))
      .filter(({ asset }) => types === undefined || types.includes(asset.type))
      .flatMap((each) => featureOf(each, known.get(each.kit_id)?.name ?? each.kit_id));
    if (features.length > features_max)
      throw new RequestProblem('too-large', texts.layer_too_large(features.length, features_max));
    return features;
  };
  routes.openapi(getLayer, async (c) => {
    const features = await featuresFor(c.var.principal, c.req.valid('query'));
    const layer = { type: 'FeatureCollection', features };
    return c.body(JSON.stringify(layer), 200, { 'content-type': media_type });
  });
  routes.openapi(getKml, async (c) => {
    const { refresh_s, ...wanted } = c.req.valid('query');
    const features = await featuresFor(c.var.principal, wanted);
    if (refresh_s === undefined) return c.body(layerKml(features), 200, { 'content-type': kml_type });
    const url = new URL(c.req.url);
    url.searchParams.delete('refresh_s');
    const href = `${gate.originFor(askerOf(c))}${url.pathname}${url.search}`;
    return c.body(linkKml(href, refresh_s), 200, {
      'content-type': kml_type,
      'content-disposition': 'attachment; filename="kits.kml"',
    });
  });
  return routes;
}

/** What has no position is no feature: many readers refuse one without a geometry. */
function featureOf({ kit_id, asset, fix }: PlacedAsset, kit_name: string): AssetFeature[] {
  const { id, name, type, status, last_seen_at } = asset;
  const { lat, lon, alt_m } = fix ?? asset;
  if (lat === null || lon === null) return [];
  const height = alt_m === null || alt_m === undefined ? [] : [alt_m];
  const about = { id, kit_id, kit_name, name, type, status, last_seen_at };
  const positioned_at = fix ? new Date(fix.time_ms).toISOString() : null;
  return [
    {
      type: 'Feature',
      id,
      geometry: { type: 'Point', coordinates: [lon, lat, ...height] },
      properties: { ...about, positioned_at, heading: fix?.heading ?? null },
    },
  ];
}
