/** Assets and their feeds, and the locations that partners push: a single fix, or fixes of many assets in one request. */
import { type OpenAPIHono } from '@hono/zod-openapi';
import type { Context } from 'hono';
import { changeAsset, createAsset, pushLocation, pushLocations } from '../api/requests.ts';
import { assetDetails, assetFeeds, assetList, createdAsset } from '../api/resources.ts';
import { demandScope } from '../principal.ts';
import type { Service } from '../service.ts';
import type { Gate } from '../access/gate.ts';
import { askerOf } from './guards.ts';
import {
  assetParams,
  assetQuery,
  changeProblem,
  createdJson,
  type Env,
  jsonBody,
  kitParams,
  okJson,
  readProblem,
  routesUnder,
} from './context.ts';
import { newRoutes } from './problems.ts';
import { type AnswerStore, idempotencyHeaders, once, toJson } from './repeatable.ts';

const route = routesUnder('assets');

const listAssets = route('get', '/api/kits/{kit_id}/assets', {
  operationId: 'listAssets',
  summary: 'List assets',
  description:
    'Returns the assets of the kit, by type, then by name: assets that the kit announces and assets of partners.',
  request: { params: kitParams, query: assetQuery },
  responses: { 200: okJson(assetList, 'by type, then by name'), ...readProblem },
});
const addAsset = route('post', '/api/kits/{kit_id}/assets', {
  operationId: 'createAsset',
  summary: 'Register a partner asset',
  description:
    'Registers an asset that a partner manages. Its `gps` feed is registered too, so that locations can be pushed at once.',
  request: { params: kitParams, headers: idempotencyHeaders, body: jsonBody(createAsset) },
  responses: { 201: createdJson(createdAsset, 'registered; its gps feed too'), ...changeProblem },
});
const getAsset = route('get', '/api/kits/{kit_id}/assets/{asset_id}', {
  operationId: 'getAsset',
  summary: 'Get an asset',
  description: 'Returns one entry of List assets; of a partner asset also its metadata.',
  request: { params: assetParams },
  responses: { 200: okJson(assetDetails, 'the asset'), ...readProblem },
});
const patchAsset = route('patch', '/api/kits/{kit_id}/assets/{asset_id}', {
  operationId: 'changeAsset',
  summary: 'Change a partner asset',
  description:
    'Replaces the metadata as a whole, the name, or both; as `application/merge-patch+json` (RFC 7396) it changes the members of the metadata that it names, and null removes one. What the body leaves out stays. 409 for an asset that the kit announces.',
  request: { params: assetParams, body: jsonBody(changeAsset) },
  responses: { 200: okJson(assetDetails, 'the asset after the change'), ...changeProblem },
});
const removeAsset = route('delete', '/api/kits/{kit_id}/assets/{asset_id}', {
  operationId: 'deleteAsset',
  summary: 'Remove a partner asset',
  description:
    'Removes an asset that was registered here, with its feeds. 409 for an asset that the kit announces.',
  request: { params: assetParams },
  responses: { 204: { description: 'removed' }, ...changeProblem },
});
const getFeeds = route('get', '/api/kits/{kit_id}/assets/{asset_id}/telemetry', {
  operationId: 'getAssetFeeds',
  summary: 'Get the feeds of an asset',
  description: 'Returns the newest message of each feed that has one, by name of the feed.',
  request: { params: assetParams },
  responses: { 200: okJson(assetFeeds, 'the newest message of each feed that has one'), ...readProblem },
});
export function assetRoutes(service: Service, store: AnswerStore, gate: Gate): OpenAPIHono<Env> {
  const routes = newRoutes();
  /** Where this client finds the video: a path is one of this service. */
  const addressed = <A extends { readonly whep_url: string | null }>(c: Context<Env>, asset: A): A =>
    asset.whep_url?.startsWith('/')
      ? { ...asset, whep_url: new URL(asset.whep_url, gate.originFor(askerOf(c))).href }
      : asset;
  routes.openapi(listAssets, async (c) => {
    const { kit_id } = c.req.valid('param');
    const { degraded } = c.req.valid('query');
    const assets = await service.assets(c.var.principal, kit_id, degraded);
    return c.json({ assets: assets.map((asset) => addressed(c, asset)) }, 200);
  });
  routes.openapi(addAsset, async (c) => {
    demandScope(c.var.principal, 'assets:write');
    const { kit_id } = c.req.valid('param');
    const body = c.req.valid('json');
    const created = await once(c, { store, schema: createdAsset, body: toJson(body) }, async () =>
      service.createAsset(c.var.principal, kit_id, body),
    );
    c.header('Location', `/api/kits/${kit_id}/assets/${created.id}`);
    return c.json(created, 201);
  });
  routes.openapi(getAsset, async (c) => {
    const { kit_id, asset_id } = c.req.valid('param');
    return c.json(addressed(c, await service.asset(c.var.principal, kit_id, asset_id)), 200);
  });
  routes.openapi(patchAsset, async (c) => {
    demandScope(c.var.principal, 'assets:write');
    const { kit_id, asset_id } = c.req.valid('param');
    const change = { asset_id, merges: c.var.merges === true, ...c.req.valid('json') };
    return c.json(await service.changeAsset(c.var.principal, kit_id, change), 200);
  });
  routes.openapi(removeAsset, async (c) => {
    demandScope(c.var.principal, 'assets:write');
    const { kit_id, asset_id } = c.req.valid('param');
    await service.removeAsset(c.var.principal, kit_id, asset_id);
    return c.body(null, 204);
  });
  routes.openapi(getFeeds, async (c) => {
    const { kit_id, asset_id } = c.req.valid('param');
    return c.json(await service.feeds(c.var.principal, kit_id, asset_id), 200);
  });
  return routes;
}

const push = route('post', '/api/kits/{kit_id}/assets/{asset_id}/location', {
  operationId: 'pushLocation',
  summary: 'Push the location of a partner asset',
  description:
    'Stores the fix as a message of the `gps` feed and as the position of the asset, and sends it to the subscribed WebSockets at once. With a `timestamp` that is older than that of the newest fix it goes to the history only. 409 for an asset that the kit announces.',
  request: { params: assetParams, body: jsonBody(pushLocation) },
  responses: { 204: { description: 'stored, and sent to the subscribed sockets' }, ...changeProblem },
});
const pushMany = route('post', '/api/kits/{kit_id}/locations', {
  operationId: 'pushLocations',
  summary: 'Push the locations of many partner assets',
  description:
    'As Push Location, for up to 256 fixes: all are stored, or none. Of several fixes of one asset without a `timestamp` the last one is the newest. Counts as one request.',
  request: { params: kitParams, body: jsonBody(pushLocations) },
  responses: { 204: { description: 'all are stored, and sent to the subscribed sockets' }, ...changeProblem },
});

export function locationRoutes(service: Service): OpenAPIHono<Env> {
  const routes = newRoutes();
  routes.openapi(push, async (c) => {
    demandScope(c.var.principal, 'assets:write');
    const { kit_id, asset_id } = c.req.valid('param');
    await service.pushLocation(c.var.principal, kit_id, { asset_id, ...c.req.valid('json') });
    return c.body(null, 204);
  });
  routes.openapi(pushMany, async (c) => {
    demandScope(c.var.principal, 'assets:write');
    const { kit_id } = c.req.valid('param');
    await service.pushLocations(c.var.principal, kit_id, c.req.valid('json').locations);
    return c.body(null, 204);
  });
  return routes;
}
