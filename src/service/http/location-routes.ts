/** Locations that partners push: a single fix, or fixes of many assets in one request. */
import { createRoute, type OpenAPIHono } from '@hono/zod-openapi';
import { demandScope } from '../access/principal.ts';
import { pushLocation, pushLocations } from '../api/requests.ts';
import type { Service } from '../service.ts';
import { assetParams, changeProblem, type Env, jsonBody, kitParams } from './context.ts';
import { newRoutes } from './new-routes.ts';

const tags = ['assets'];

const push = createRoute({
  method: 'post',
  path: '/api/kits/{kit_id}/assets/{asset_id}/location',
  operationId: 'pushLocation',
  summary: 'Push the location of a partner asset',
  description:
    'Stores the fix as a message of the `gps` feed and as the position of the asset, and sends it to the subscribed WebSockets at once. With a `timestamp` that is older than that of the newest fix it goes to the history only. 409 for an asset that the kit announces.',
  tags,
  request: { params: assetParams, body: jsonBody(pushLocation) },
  responses: { 204: { description: 'stored, and sent to the subscribed sockets' }, ...changeProblem },
});
const pushMany = createRoute({
  method: 'post',
  path: '/api/kits/{kit_id}/locations',
  operationId: 'pushLocations',
  summary: 'Push the locations of many partner assets',
  description:
    'As Push Location, for up to 256 fixes: all are stored, or none. Of several fixes of one asset without a `timestamp` the last one is the newest. Counts as one request.',
  tags,
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
