/** Kits, their telemetry and their links. */
import { type OpenAPIHono, type z } from '@hono/zod-openapi';
import { gatewayResource, linkResource, locationResource, speedtestResource } from '../api/kit-resources.ts';
import {
  battery,
  clientList,
  kit,
  kitList,
  kitTelemetrySnapshot,
  linkList,
  queue,
} from '../api/resources.ts';
import { demandScope } from '../principal.ts';
import type { Service } from '../service.ts';
import { changeKit } from '../api/requests.ts';
import {
  changeProblem,
  jsonBody,
  readProblem,
  type Env,
  kitParams,
  linkParams,
  okJson,
  reported,
  routesUnder,
} from './context.ts';
import { newRoutes } from './problems.ts';

const route = routesUnder('kits');

interface Reading<P extends string, S extends z.ZodType> {
  readonly path: P;
  readonly operationId: string;
  readonly summary: string;
  readonly description: string;
  readonly schema: S;
}

/** A read of one part of a kit. */
const readRoute = <P extends string, S extends z.ZodType>({ path, schema, ...about }: Reading<P, S>) =>
  route('get', path, {
    ...about,
    request: { params: kitParams },
    responses: { 200: okJson(schema, about.summary), ...readProblem },
  });

const listKits = route('get', '/api/kits', {
  operationId: 'listKits',
  summary: 'List kits',
  description: 'Returns the kits of the API key with their latest telemetry.',
  responses: { 200: okJson(kitList, 'the kits of the key'), ...readProblem },
});
const getKit = readRoute({
  path: '/api/kits/{kit_id}',
  operationId: 'getKit',
  summary: 'Get a kit',
  description: 'Returns one entry of List kits.',
  schema: kit,
});
const change = route('patch', '/api/kits/{kit_id}', {
  operationId: 'changeKit',
  summary: 'Name a kit, tag it, or set its time zone',
  description:
    'Sets what operators call the kit, the words by which they group kits, and whose days its daily figures have; what the body does not name stays. The kit itself does not learn of it. Needs the scope `assets:write`.',
  request: { params: kitParams, body: jsonBody(changeKit) },
  responses: { 200: okJson(kit, 'the kit after the change'), ...changeProblem },
});
const remove = route('delete', '/api/kits/{kit_id}', {
  operationId: 'removeKit',
  summary: 'Remove a kit for good',
  description:
    'Deletes everything that the service keeps of a kit that is offline: history, alarms, tasks, assets, files; API keys and webhooks that name it lose it. If it sends something itself later, it is a new kit. Take its login at the broker from it, too. 409 while it is online. Needs the scope `history:erase`.',
  request: { params: kitParams },
  responses: { 204: { description: 'removed' }, ...changeProblem },
});
const getTelemetry = readRoute({
  path: '/api/kits/{kit_id}/telemetry',
  operationId: 'getKitTelemetry',
  summary: 'Get the telemetry of a kit',
  description:
    'Returns everything the kit has reported about itself. Check `online` first: the values of an offline kit are the last ones it reported. 503 when it is offline and has reported nothing yet.',
  schema: kitTelemetrySnapshot,
});
const getLinks = readRoute({
  path: '/api/kits/{kit_id}/links',
  operationId: 'listLinks',
  summary: 'List WAN links',
  description: 'Returns one entry for each WAN interface of the kit.',
  schema: linkList,
});
const getLocation = readRoute({
  path: '/api/kits/{kit_id}/location',
  operationId: 'getKitLocation',
  summary: 'Get the location of a kit',
  description: 'Returns the last fix; `stale` when it is older than 30 seconds. 404 before the first one.',
  schema: locationResource,
});
const getBattery = readRoute({
  path: '/api/kits/{kit_id}/battery',
  operationId: 'getKitBattery',
  summary: 'Get the battery of a kit',
  description: 'Returns the charge in percent and whether it is charging; null without a sensor.',
  schema: battery,
});
const getGateway = readRoute({
  path: '/api/kits/{kit_id}/gateway',
  operationId: 'getGateway',
  summary: 'Get the gateway of a kit',
  description: 'Returns name, model, load and uptime of the gateway. 404 before the first report.',
  schema: gatewayResource,
});
const getClients = readRoute({
  path: '/api/kits/{kit_id}/clients',
  operationId: 'listClients',
  summary: 'List local devices',
  description: "Returns the devices on the kit's local network.",
  schema: clientList,
});
const getSpeedtest = readRoute({
  path: '/api/kits/{kit_id}/speedtest',
  operationId: 'getSpeedtest',
  summary: 'Get the last speed test',
  description: 'Returns the result of the last speed test. 404 before the first one.',
  schema: speedtestResource,
});
const getQueue = readRoute({
  path: '/api/kits/{kit_id}/queue',
  operationId: 'getQueue',
  summary: 'Get the backlog of a kit',
  description:
    'Returns what the kit has not delivered yet, as it last reported, and counts of what this service has received from it.',
  schema: queue,
});
const getLink = route('get', '/api/kits/{kit_id}/links/{link_name}', {
  operationId: 'getLink',
  summary: 'Get a WAN link',
  description: 'Returns one link by the name of its interface or by its type, including `usage`.',
  request: { params: linkParams },
  responses: { 200: okJson(linkResource, 'by interface name or type; case does not matter'), ...readProblem },
});

export function kitRoutes(service: Service): OpenAPIHono<Env> {
  const routes = newRoutes();
  routes.openapi(listKits, async (c) => c.json(await service.kits(c.var.principal), 200));
  routes.openapi(getKit, async (c) =>
    c.json(await service.kit(c.var.principal, c.req.valid('param').kit_id), 200),
  );
  routes.openapi(change, async (c) => {
    const { principal } = c.var;
    demandScope(principal, 'assets:write');
    return c.json(await service.changeKit(principal, c.req.valid('param').kit_id, c.req.valid('json')), 200);
  });
  routes.openapi(remove, async (c) => {
    const { principal } = c.var;
    demandScope(principal, 'history:erase');
    await service.removeKit(principal, c.req.valid('param').kit_id);
    return c.body(null, 204);
  });
  routes.openapi(getQueue, async (c) =>
    c.json(await service.queue(c.var.principal, c.req.valid('param').kit_id), 200),
  );
  routes.openapi(getLink, async (c) => {
    const { kit_id, link_name } = c.req.valid('param');
    return c.json(await service.link(c.var.principal, kit_id, link_name), 200);
  });
  addParts(routes, service);
  return routes;
}

/** Single parts of the telemetry. */
function addParts(routes: OpenAPIHono<Env>, service: Service): void {
  routes.openapi(getTelemetry, async (c) =>
    c.json(await service.telemetry(c.var.principal, c.req.valid('param').kit_id), 200),
  );
  routes.openapi(getLinks, async (c) => {
    return c.json({ links: await service.links(c.var.principal, c.req.valid('param').kit_id) }, 200);
  });
  routes.openapi(getLocation, async (c) => {
    const telemetry = await service.telemetry(c.var.principal, c.req.valid('param').kit_id);
    return c.json(reported(telemetry.location, 'a location'), 200);
  });
  routes.openapi(getBattery, async (c) => {
    const telemetry = await service.telemetry(c.var.principal, c.req.valid('param').kit_id);
    return c.json({ battery: telemetry.battery, battery_charging: telemetry.battery_charging }, 200);
  });
  routes.openapi(getGateway, async (c) => {
    const telemetry = await service.telemetry(c.var.principal, c.req.valid('param').kit_id);
    return c.json(reported(telemetry.gateway, 'its gateway'), 200);
  });
  routes.openapi(getClients, async (c) => {
    const telemetry = await service.telemetry(c.var.principal, c.req.valid('param').kit_id);
    return c.json({ clients: telemetry.clients }, 200);
  });
  routes.openapi(getSpeedtest, async (c) => {
    const telemetry = await service.telemetry(c.var.principal, c.req.valid('param').kit_id);
    return c.json(reported(telemetry.speedtest, 'a speed test'), 200);
  });
}
