/** Commands, and the tasks that they become. */
import { createRoute, type OpenAPIHono } from '@hono/zod-openapi';
import { sendCommand } from '../api/requests.ts';
import { commandListResource, task, taskList } from '../api/resources.ts';
import { demandScope } from '../access/principal.ts';
import type { Service } from '../service.ts';
import {
  anyProblem,
  assetParams,
  changeProblem,
  commandParams,
  type Env,
  kitParams,
  okJson,
  taskParams,
  taskQuery,
} from './context.ts';
import { newRoutes } from './new-routes.ts';
import { type AnswerStore, idempotencyHeaders, once } from './repeatable.ts';

const tags = ['tasks'];

const listCommands = createRoute({
  method: 'get',
  path: '/api/kits/{kit_id}/assets/{asset_id}/commands',
  tags,
  request: { params: assetParams },
  responses: { 200: okJson(commandListResource, 'the enabled ones'), ...anyProblem },
});
const send = createRoute({
  method: 'post',
  path: '/api/kits/{kit_id}/assets/{asset_id}/commands/{command_name}',
  tags,
  request: {
    params: commandParams,
    headers: idempotencyHeaders,
    body: { required: false, content: { 'application/json': { schema: sendCommand } } },
  },
  responses: { 202: okJson(task, 'pending; on its way to the kit'), ...changeProblem },
});
const listTasks = createRoute({
  method: 'get',
  path: '/api/kits/{kit_id}/tasks',
  tags,
  request: { params: kitParams, query: taskQuery },
  responses: { 200: okJson(taskList, 'newest first'), ...anyProblem },
});
const listAssetTasks = createRoute({
  method: 'get',
  path: '/api/kits/{kit_id}/assets/{asset_id}/tasks',
  tags,
  request: { params: assetParams, query: taskQuery },
  responses: { 200: okJson(taskList, 'newest first'), ...anyProblem },
});
const getTask = createRoute({
  method: 'get',
  path: '/api/kits/{kit_id}/tasks/{task_id}',
  tags,
  request: { params: taskParams },
  responses: { 200: okJson(task, 'as the kit last reported it'), ...anyProblem },
});
const cancel = createRoute({
  method: 'post',
  path: '/api/kits/{kit_id}/tasks/{task_id}/cancel',
  tags,
  request: { params: taskParams },
  responses: {
    202: okJson(task, 'cancellation sent to the kit; the task shows the outcome'),
    ...changeProblem,
  },
});

export function taskRoutes(service: Service, store: AnswerStore): OpenAPIHono<Env> {
  const routes = newRoutes();
  routes.openapi(listCommands, async (c) => {
    const { kit_id, asset_id } = c.req.valid('param');
    return c.json({ commands: [...(await service.commands(c.var.principal, kit_id, asset_id))] }, 200);
  });
  routes.openapi(send, async (c) => {
    demandScope(c.var.principal, 'commands');
    const { kit_id, asset_id, command_name } = c.req.valid('param');
    // A request without a body has no payload either.
    const { payload = {} } = sendCommand.catch({}).parse(c.req.valid('json'));
    const order = { asset_id, command_name, payload };
    const sent = await once(c, { store, schema: task, body: payload }, async () =>
      service.sendCommand(c.var.principal, kit_id, order),
    );
    c.header('Location', `/api/kits/${kit_id}/tasks/${sent.id}`);
    return c.json(sent, 202);
  });
  routes.openapi(listTasks, async (c) => {
    const query = c.req.valid('query');
    return c.json({ tasks: await service.tasks(c.var.principal, c.req.valid('param').kit_id, query) }, 200);
  });
  routes.openapi(listAssetTasks, async (c) => {
    const { kit_id, asset_id } = c.req.valid('param');
    const query = { ...c.req.valid('query'), asset_id };
    return c.json({ tasks: await service.tasks(c.var.principal, kit_id, query) }, 200);
  });
  routes.openapi(getTask, async (c) => {
    const { kit_id, task_id } = c.req.valid('param');
    return c.json(await service.task(c.var.principal, kit_id, task_id), 200);
  });
  routes.openapi(cancel, async (c) => {
    demandScope(c.var.principal, 'commands');
    const { kit_id, task_id } = c.req.valid('param');
    return c.json(await service.cancelTask(c.var.principal, kit_id, task_id), 202);
  });
  return routes;
}
