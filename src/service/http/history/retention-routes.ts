/** How long the history is kept, as clients read and set it. */
import { createRoute, type OpenAPIHono } from '@hono/zod-openapi';
import { demandScope, type Principal } from '../../access/principal.ts';
import { historyRetention, setRetention } from '../../api/history-resources.ts';
import { RequestProblem } from '../../api/problem.ts';
import type { HistoryRetention } from '../../history/retention.ts';
import { anyProblem, changeProblem, type Env, jsonBody, okJson } from '../context.ts';
import { newRoutes } from '../new-routes.ts';

const path = '/api/history/retention';
const tags = ['history'];

const getRoute = createRoute({
  method: 'get',
  path,
  operationId: 'getRetention',
  summary: 'Get how long the history is kept',
  description:
    'Returns the days and the size after which messages are deleted, and whether the configuration or a client has set them.',
  tags,
  responses: { 200: okJson(historyRetention, 'what is in effect'), ...anyProblem },
});
const putRoute = createRoute({
  method: 'put',
  path,
  operationId: 'setRetention',
  summary: 'Set how long the history is kept',
  description:
    'Replaces the values of the configuration, for all kits and replicas; what is beyond them is deleted within the hour. Needs the scope `history:erase` and a key for all kits.',
  tags,
  request: { body: jsonBody(setRetention) },
  responses: { 200: okJson(historyRetention, 'what is in effect now'), ...changeProblem },
});

/** `retention`: undefined where no history is kept. */
export function retentionRoutes(retention: HistoryRetention | undefined): OpenAPIHono<Env> {
  const routes = newRoutes();
  const kept = (): HistoryRetention => {
    if (retention) return retention;
    throw new RequestProblem('not-found', 'this service keeps no history');
  };
  routes.openapi(getRoute, async (c) => {
    demandScope(c.var.principal, 'read');
    return c.json(resourceOf(await kept().read()), 200);
  });
  routes.openapi(putRoute, async (c) => {
    demandScope(c.var.principal, 'history:erase');
    demandAllKits(c.var.principal);
    const { days, figures_days, kit_max_mb } = c.req.valid('json');
    const kit_bytes_max = kit_max_mb === null ? undefined : kit_max_mb * 1_000_000;
    return c.json(resourceOf(await kept().set({ days, figures_days, kit_bytes_max })), 200);
  });
  return routes;
}

function demandAllKits({ kits }: Principal): void {
  if (kits !== '*') throw new RequestProblem('forbidden', 'this concerns all kits; use a key for all kits');
}

function resourceOf({ retention, source }: Awaited<ReturnType<HistoryRetention['read']>>) {
  const { days, figures_days, kit_bytes_max } = retention;
  const kit_max_mb = kit_bytes_max === undefined ? null : kit_bytes_max / 1_000_000;
  return { days: { ...days }, figures_days, kit_max_mb, source };
}
