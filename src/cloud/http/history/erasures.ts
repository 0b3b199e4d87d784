/** What leaves the history of a kit: erasures that clients ask for and that are in force, and how long messages are kept. */
import { type OpenAPIHono } from '@hono/zod-openapi';
import { demandScope, type Principal } from '../../principal.ts';
import { erasureList, erasureResource, historyRetention, setRetention } from '../../api/history-resources.ts';
import { RequestProblem } from '../../api/problem.ts';
import type { Changes } from '../../changes.ts';
import type { HistoryOperations } from '../../history/reading/operations.ts';
import type { Service } from '../../service.ts';
import type { ServiceLog } from '../../service-log.ts';
import { texts } from '../../texts.ts';
import {
  anyProblem,
  asProblem,
  assetParams,
  changeProblem,
  type Env,
  jsonBody,
  kitParams,
  okJson,
  routesUnder,
} from '../context.ts';
import { newRoutes } from '../problems.ts';
import { eraseQuery, erasuresQuery } from './query.ts';
import type { HistoryRetention } from '../../history/retention.ts';

const route = routesUnder('history');
/** How far the clock of a client may be ahead: what it calls now is then now. */
const ahead_ms_max = 60_000;

const erasing = (
  path: '/api/kits/{kit_id}/history' | '/api/kits/{kit_id}/assets/{asset_id}/history',
  what: string,
) =>
  route('delete', path, {
    operationId: path.includes('asset_id') ? 'eraseAssetHistory' : 'eraseHistory',
    summary: `Erase the history of ${what}`,
    description: `Erases what was observed of ${what} before a time, also what arrives later of that time; an erasure before an earlier time changes nothing. Newest values and tasks stay. Needs the scope \`history:erase\`. Backups of the database keep it.`,
    request: { params: path.includes('asset_id') ? assetParams : kitParams, query: eraseQuery },
    responses: {
      204: { description: 'erased' },
      ...anyProblem,
      422: asProblem(422, 'the time is ahead of the clock of the service'),
    },
  });
const eraseKit = erasing('/api/kits/{kit_id}/history', 'a kit');
const eraseAsset = erasing('/api/kits/{kit_id}/assets/{asset_id}/history', 'an asset');
const listErasures = route('get', '/api/kits/{kit_id}/history/erasures', {
  operationId: 'listErasures',
  summary: 'List erasures in force',
  description:
    'Returns the erasures of the history of the kit, that of the whole kit first, then those of its assets by their ids.',
  request: { params: kitParams, query: erasuresQuery },
  responses: { 200: okJson(erasureList, 'the erasures in force'), ...anyProblem },
});

interface Parts {
  readonly service: Service;
  readonly history: HistoryOperations;
  readonly changes: Changes;
  readonly log: ServiceLog;
}

export function erasureRoutes({ service, history, changes, log }: Parts): OpenAPIHono<Env> {
  const routes = newRoutes();
  const erase = async (principal: Principal, erasure: Asked): Promise<void> => {
    demandScope(principal, 'history:erase');
    const { kit_id, asset_id } = erasure;
    await service.kit(principal, kit_id);
    const now_ms = Date.now();
    const before_ms = boundOf(erasure.before, now_ms);
    if (asset_id !== undefined) await history.demandErasable(kit_id, asset_id);
    changes.publish(await history.erase({ kit_id, asset_id, before_ms }, now_ms));
    const facts = erasureResource({ kit_id, asset_id, before_ms, erased_ms: now_ms });
    log.info(
      { kit_id, ...facts, requested_by_name: principal.label, key_id: principal.key_id },
      texts.log_erased,
    );
  };
  routes.openapi(eraseKit, async (c) => {
    const { before } = c.req.valid('query');
    await erase(c.var.principal, { kit_id: c.req.valid('param').kit_id, asset_id: undefined, before });
    return c.body(null, 204);
  });
  routes.openapi(eraseAsset, async (c) => {
    const { before } = c.req.valid('query');
    await erase(c.var.principal, { ...assetParams.parse(c.req.valid('param')), before });
    return c.body(null, 204);
  });
  routes.openapi(listErasures, async (c) => {
    const { kit_id } = c.req.valid('param');
    await service.kit(c.var.principal, kit_id);
    const { limit, cursor } = c.req.valid('query');
    return c.json(await history.erasures({ kit_id, limit, after: cursor }), 200);
  });
  return routes;
}

interface Asked {
  readonly kit_id: string;
  readonly asset_id: string | undefined;
  readonly before: number;
}

/** An erasure concerns what was there when it was asked for. */
function boundOf(before_ms: number, now_ms: number): number {
  if (before_ms <= now_ms + ahead_ms_max) return Math.min(before_ms, now_ms);
  const [before, now] = [before_ms, now_ms].map((ms) => new Date(ms).toISOString());
  throw new RequestProblem('out-of-range', texts.erased_ahead(before ?? '', now ?? ''));
}

const path = '/api/history/retention';

const getRoute = route('get', path, {
  operationId: 'getRetention',
  summary: 'Get how long the history is kept',
  description:
    'Returns the days and the size after which messages are deleted, and whether the configuration or a client has set them.',
  responses: { 200: okJson(historyRetention, 'what is in effect'), ...anyProblem },
});
const putRoute = route('put', path, {
  operationId: 'setRetention',
  summary: 'Set how long the history is kept',
  description:
    'Replaces the values of the configuration, for all kits and replicas; what is beyond them is deleted within the hour. Needs the scope `history:erase` and a key for all kits.',
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
