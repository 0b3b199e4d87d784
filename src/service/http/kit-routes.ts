/** Kits, their telemetry and their links. */
import { createRoute, type OpenAPIHono, z } from '@hono/zod-openapi';
import { kit, kitTelemetrySnapshot, linkList, queue } from '../api/resources.ts';
import {
  clientResource,
  gatewayResource,
  linkResource,
  locationResource,
  speedtestResource,
} from '../api/kit-resources.ts';
import type { Service } from '../service.ts';
import { anyProblem, type Env, kitParams, linkParams, okJson, reported } from './context.ts';
import { newRoutes } from './new-routes.ts';

const tags = ['kits'];
const battery = kitTelemetrySnapshot.pick({ battery: true, battery_charging: true });
const clients = z.strictObject({ clients: z.array(clientResource) });

/** A read of one part of a kit. */
const readRoute = <P extends string, S extends z.ZodType>(path: P, schema: S, description: string) =>
  createRoute({
    method: 'get',
    path,
    tags,
    request: { params: kitParams },
    responses: { 200: okJson(schema, description), ...anyProblem },
  });

const listKits = createRoute({
  method: 'get',
  path: '/api/kits',
  tags,
  responses: { 200: okJson(z.array(kit), 'the kits of the key'), ...anyProblem },
});
const getKit = readRoute('/api/kits/{kit_id}', kit, 'the kit');
const getTelemetry = readRoute(
  '/api/kits/{kit_id}/telemetry',
  kitTelemetrySnapshot,
  'all telemetry in one response',
);
const getLinks = readRoute('/api/kits/{kit_id}/links', linkList, 'one entry for each interface');
const getLocation = readRoute('/api/kits/{kit_id}/location', locationResource, 'where the kit is');
const getBattery = readRoute('/api/kits/{kit_id}/battery', battery, 'null: no sensor');
const getGateway = readRoute('/api/kits/{kit_id}/gateway', gatewayResource, 'the gateway');
const getClients = readRoute('/api/kits/{kit_id}/clients', clients, 'devices on the local network');
const getSpeedtest = readRoute('/api/kits/{kit_id}/speedtest', speedtestResource, 'the last result');
const getQueue = readRoute('/api/kits/{kit_id}/queue', queue, 'messages that the kit has not delivered yet');
const getLink = createRoute({
  method: 'get',
  path: '/api/kits/{kit_id}/links/{link_name}',
  tags,
  request: { params: linkParams },
  responses: { 200: okJson(linkResource, 'by interface name or type; case does not matter'), ...anyProblem },
});

export function kitRoutes(service: Service): OpenAPIHono<Env> {
  const routes = newRoutes();
  routes.openapi(listKits, async (c) => c.json(await service.kits(c.var.principal), 200));
  routes.openapi(getKit, async (c) =>
    c.json(await service.kit(c.var.principal, c.req.valid('param').kit_id), 200),
  );
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
