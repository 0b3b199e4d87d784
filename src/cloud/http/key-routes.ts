/** API keys. All of it needs the scope `keys`. */
import { type OpenAPIHono } from '@hono/zod-openapi';
import type { KeyOperations } from '../access/key-operations.ts';
import { changeKey, createdKey, createKey, key, keyList } from '../api/key-resources.ts';
import { demandScope } from '../principal.ts';
import {
  changeProblem,
  createdJson,
  type Env,
  jsonBody,
  keyParams,
  okJson,
  readProblem,
  routesUnder,
} from './context.ts';
import { newRoutes } from './problems.ts';

const route = routesUnder('keys');
const place = '/api/keys';
const one = '/api/keys/{key_id}';

const list = route('get', place, {
  operationId: 'listKeys',
  summary: 'List API keys',
  description:
    'Returns the keys that have no right that the key of the request lacks. Needs the scope `keys`, as all of them do.',
  responses: { 200: okJson(keyList, 'by time of creation'), ...readProblem },
});
const create = route('post', place, {
  operationId: 'createKey',
  summary: 'Create an API key',
  description:
    'Makes a key with some of the rights of the key of the request, which it does not outlive. It is shown in this response only.',
  request: { body: jsonBody(createKey) },
  responses: { 201: createdJson(createdKey, 'created'), ...changeProblem },
});
const get = route('get', one, {
  operationId: 'getKey',
  summary: 'Get an API key',
  description: 'Returns one entry of List API keys.',
  request: { params: keyParams },
  responses: { 200: okJson(key, 'the key'), ...readProblem },
});
const change = route('patch', one, {
  operationId: 'changeKey',
  summary: 'Change an API key',
  description:
    'Changes name, scopes, kits or end of the key, those that are named; its secret stays valid. Its open WebSockets are closed when it loses a right, and know of new kits from their next connection on. Of the key of the request only the name can be changed, else 409.',
  request: { params: keyParams, body: jsonBody(changeKey) },
  responses: { 200: okJson(key, 'the key after the change'), ...changeProblem },
});
const rotate = route('post', `${one}/rotate`, {
  operationId: 'rotateKey',
  summary: 'Rotate an API key',
  description:
    'Makes a new secret for the key, which is shown in this response only. For a day the old one is valid beside it; revoke a key that has leaked.',
  request: { params: keyParams },
  responses: { 200: okJson(createdKey, 'rotated'), ...changeProblem },
});
const revoke = route('delete', one, {
  operationId: 'revokeKey',
  summary: 'Revoke an API key',
  description:
    'Ends the key and its sessions at once, on other replicas and for WebSockets within five seconds. The key of the request is 409.',
  request: { params: keyParams },
  responses: { 204: { description: 'revoked' }, ...changeProblem },
});

export function keyRoutes(keys: KeyOperations): OpenAPIHono<Env> {
  const routes = newRoutes();
  routes.use('/api/keys/*', async (c, next) => {
    demandScope(c.var.principal, 'keys');
    await next();
  });
  routes.openapi(list, async (c) => c.json({ keys: await keys.list(c.var.principal) }, 200));
  routes.openapi(create, async (c) => {
    const made = await keys.create(c.var.principal, c.req.valid('json'));
    return c.json(made, 201, { Location: `${place}/${made.id}` });
  });
  routes.openapi(get, async (c) => c.json(await keys.get(c.var.principal, c.req.valid('param').key_id), 200));
  routes.openapi(change, async (c) =>
    c.json(await keys.change(c.var.principal, c.req.valid('param').key_id, c.req.valid('json')), 200),
  );
  routes.openapi(rotate, async (c) =>
    c.json(await keys.rotate(c.var.principal, c.req.valid('param').key_id), 200),
  );
  routes.openapi(revoke, async (c) => {
    await keys.revoke(c.var.principal, c.req.valid('param').key_id);
    return c.body(null, 204);
  });
  return routes;
}
