/** The page's session: a key is typed once, and a cookie that no script can read stands for it. */
import { type OpenAPIHono } from '@hono/zod-openapi';
import { openSession } from '../api/requests.ts';
import { session } from '../api/resources.ts';
import type { Gate } from '../access/gate.ts';
import { RequestProblem } from '../api/problem.ts';
import type { Service } from '../service.ts';
import { readProblem, changeProblem, type Env, jsonBody, okJson, routesUnder } from './context.ts';
import { askerOf } from './guards.ts';
import { newRoutes } from './problems.ts';
import { texts } from '../texts.ts';

const route = routesUnder('session');

const open = route('post', '/api/session', {
  operationId: 'openSession',
  summary: 'Open a session of the console',
  description:
    'Exchanges an API key for a cookie that lasts 12 hours. For the console in a browser; programs send the key with each request.',
  security: [],
  request: { body: jsonBody(openSession) },
  responses: { 204: { description: 'the cookie is set, for 12 hours' }, ...changeProblem },
});
const look = route('get', '/api/session', {
  operationId: 'getSession',
  summary: 'Get the rights of the key',
  description: 'Returns the kits and the scopes of the API key.',
  responses: { 200: okJson(session, 'what the key may do'), ...readProblem },
});
const end = route('delete', '/api/session', {
  operationId: 'closeSession',
  summary: 'Close a session of the console',
  description: 'Ends the session of the cookie.',
  responses: { 204: { description: 'the session is over' }, ...changeProblem },
});

export function sessionRoutes(gate: Gate, service: Service): OpenAPIHono<Env> {
  const routes = newRoutes();
  routes.openapi(open, async (c) => {
    const asker = askerOf(c);
    if (!gate.isOwnPage(asker)) {
      throw new RequestProblem('forbidden', texts.foreign_origin(asker.headers));
    }
    c.header('Set-Cookie', await gate.openSession(c.req.valid('json').api_key, asker));
    return c.body(null, 204);
  });
  routes.openapi(look, async (c) => {
    const { principal } = c.var;
    const kits = await service.kits(principal);
    return c.json({ kits: kits.map(({ id }) => id), scopes: [...principal.scopes] }, 200);
  });
  routes.openapi(end, async (c) => {
    c.header('Set-Cookie', await gate.closeSession(askerOf(c)));
    return c.body(null, 204);
  });
  return routes;
}
