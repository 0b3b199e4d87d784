/** Alarms: lists of a kit and of a fleet, and what people note on them. */
import { type OpenAPIHono, z } from '@hono/zod-openapi';
import { alarm, alarmList, alarmState, changeAlarm } from '../api/alarm-resources.ts';
import { alarmSeverity } from '../severity.ts';
import { demandScope } from '../principal.ts';
import type { AlarmOperations } from '../alarms/operations.ts';
import {
  alarmParams,
  changeProblem,
  type Env,
  jsonBody,
  kitParams,
  okJson,
  readProblem,
  routesUnder,
} from './context.ts';
import { ids, limitOf, list, listOf, query } from './history/query.ts';
import { newRoutes } from './problems.ts';

const route = routesUnder('alarms');

const kitQuery = z.object({
  state: query(
    'state',
    listOf(alarmState).optional(),
    'only alarms in these states, separated by commas; all but the closed ones when left out',
    'open,acknowledged',
  ),
  severity: query(
    'severity',
    listOf(alarmSeverity).optional(),
    'only these, separated by commas',
    'critical',
  ),
  what: query('what', list.optional(), 'only alarms about this, separated by commas', 'offline,link'),
  assets: query('assets', ids.optional(), 'only alarms of these assets, separated by commas'),
  limit: limitOf(1_000, 100),
  cursor: query('cursor', z.string().max(128).optional(), '`next` of the page before, with the same query'),
});
const fleetQuery = kitQuery.extend({
  kits: query('kits', ids.optional(), 'only these kits, separated by commas; all of the key when left out'),
});

const listFleet = route('get', '/api/alarms', {
  operationId: 'listAlarms',
  summary: 'List alarms',
  description: 'Returns the alarms of all kits of the key, those that began last first.',
  request: { query: fleetQuery },
  responses: { 200: okJson(alarmList, 'those that began last first'), ...readProblem },
});
const listOfKit = route('get', '/api/kits/{kit_id}/alarms', {
  operationId: 'listKitAlarms',
  summary: 'List alarms of a kit',
  description: 'As List alarms, of one kit.',
  request: { params: kitParams, query: kitQuery },
  responses: { 200: okJson(alarmList, 'those that began last first'), ...readProblem },
});
const get = route('get', '/api/kits/{kit_id}/alarms/{alarm_id}', {
  operationId: 'getAlarm',
  summary: 'Get an alarm',
  description: 'Returns one entry of List alarms, also of a closed alarm, which is kept for 90 days.',
  request: { params: alarmParams },
  responses: { 200: okJson(alarm, 'the alarm'), ...readProblem },
});
const change = route('patch', '/api/kits/{kit_id}/alarms/{alarm_id}', {
  operationId: 'changeAlarm',
  summary: 'Acknowledge or mute an alarm, or note something on it',
  description:
    'Changes what the body names; the rest stays. An acknowledged alarm that comes back within ten minutes stays so, unless it is graver. Scope `alarms`.',
  request: { params: alarmParams, body: jsonBody(changeAlarm) },
  responses: { 200: okJson(alarm, 'the alarm after the change'), ...changeProblem },
});

export function alarmRoutes(alarms: AlarmOperations): OpenAPIHono<Env> {
  const routes = newRoutes();
  routes.openapi(listFleet, async (c) => {
    const { kits, ...filter } = c.req.valid('query');
    return c.json(await alarms.list(c.var.principal, kits, filter), 200);
  });
  routes.openapi(listOfKit, async (c) => {
    const { kit_id } = c.req.valid('param');
    return c.json(await alarms.list(c.var.principal, [kit_id], c.req.valid('query')), 200);
  });
  routes.openapi(get, async (c) => {
    const { kit_id, alarm_id } = c.req.valid('param');
    return c.json(await alarms.get(c.var.principal, kit_id, alarm_id), 200);
  });
  routes.openapi(change, async (c) => {
    demandScope(c.var.principal, 'alarms');
    const { kit_id, alarm_id } = c.req.valid('param');
    const body = c.req.valid('json');
    return c.json(await alarms.change(c.var.principal, { kit_id, alarm_id }, body), 200);
  });
  return routes;
}
