/** The assets of the fleet as a layer that a GIS shows and asks for again and again. */
import { createRoute, type OpenAPIHono, z } from '@hono/zod-openapi';
import { examples } from '../api/examples.ts';
import { type AssetFeature, assetLayer } from '../api/layer-resources.ts';
import { byType } from '../api/views.ts';
import { compareText } from '../history/reading/page.ts';
import { RequestProblem } from '../api/problem.ts';
import type { Service } from '../service.ts';
import type { Store } from '../store/sql-store.ts';
import type { PlacedAsset } from '../stored/stored.ts';
import { texts } from '../texts.ts';
import { anyProblem, asProblem, type Env, readProblem } from './context.ts';
import { ids, list, query } from './history/query.ts';
import { newRoutes } from './problems.ts';

const media_type = 'application/geo+json';
const features_max = 20_000;

const getLayer = createRoute({
  method: 'get',
  path: '/api/assets.geojson',
  operationId: 'getAssetLayer',
  summary: 'Get the positions of assets',
  description: `Returns the assets with a position as GeoJSON points: the newest fix of the feed \`gps\`, or of a partner, else the fixed position. ${features_max} at most, else 413. Ask again with \`If-None-Match\`: 304 while nothing has moved.`,
  tags: ['assets'],
  request: {
    query: z.object({
      kits: query('kits', ids.optional(), 'only of these kits, separated by commas'),
      tags: query(
        'tags',
        list.optional(),
        'only of kits with one of these tags, separated by commas',
        'alps',
      ),
      types: query(
        'types',
        list.optional(),
        'only assets of these types, separated by commas',
        'drone,vehicle',
      ),
    }),
  },
  responses: {
    200: {
      description: 'by kit, type and name',
      content: { [media_type]: { schema: assetLayer, example: examples.get(assetLayer) } },
    },
    ...readProblem,
    ...anyProblem,
    413: asProblem(413, 'the fleet has more assets'),
  },
});

export function layerRoutes(service: Service, store: Pick<Store, 'placedAssets'>): OpenAPIHono<Env> {
  const routes = newRoutes();
  routes.openapi(getLayer, async (c) => {
    const { kits, tags, types } = c.req.valid('query');
    const known = new Map((await service.kits(c.var.principal)).map((kit) => [kit.id, kit]));
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
    const layer = { type: 'FeatureCollection', features };
    return c.body(JSON.stringify(layer), 200, { 'content-type': media_type });
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
