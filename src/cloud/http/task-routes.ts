/** Commands, and the tasks that they become. */
import { type OpenAPIHono } from '@hono/zod-openapi';
import { sendCommand } from '../api/requests.ts';
import { commandListResource, task, taskList } from '../api/resources.ts';
import { demandScope } from '../principal.ts';
import type { Service } from '../service.ts';
import {
  readProblem,
  assetParams,
  changeProblem,
  commandParams,
  createdJson,
  type Env,
  kitParams,
  okJson,
  optionalBody,
  taskParams,
  taskQuery,
  routesUnder,
} from './context.ts';
import { newRoutes } from './problems.ts';
import { type AnswerStore, idempotencyHeaders, once } from './repeatable.ts';

const route = routesUnder('tasks');

const listCommands = route('get', '/api/kits/{kit_id}/assets/{asset_id}/commands', {
  operationId: 'listCommands',
  summary: 'List commands',
  description:
    'Returns the commands of the asset that are enabled on its kit, each with the JSON Schema of its payload.',
  request: { params: assetParams },
  responses: { 200: okJson(commandListResource, 'the enabled ones'), ...readProblem },
});
const send = route('post', '/api/kits/{kit_id}/assets/{asset_id}/commands/{command_name}', {
  operationId: 'sendCommand',
  summary: 'Send a command',
  description:
    'Creates a task and dispatches it to the kit. The task is always `pending` here: poll it, or subscribe to the WebSocket, for its outcome. The body may be left out when the command has no parameters.',
  request: {
    params: commandParams,
    headers: idempotencyHeaders,
    body: optionalBody(sendCommand),
  },
  responses: { 202: createdJson(task, 'pending; on its way to the kit'), ...changeProblem },
});
const listTasks = route('get', '/api/kits/{kit_id}/tasks', {
  operationId: 'listTasks',
  summary: 'List tasks of a kit',
  description:
    'Returns the tasks of the kit, newest first. `next_cursor` leads to the next page; tasks that are created meanwhile do not shift it.',
  request: { params: kitParams, query: taskQuery },
  responses: { 200: okJson(taskList, 'newest first'), ...readProblem },
});
const listAssetTasks = route('get', '/api/kits/{kit_id}/assets/{asset_id}/tasks', {
  operationId: 'listAssetTasks',
  summary: 'List tasks of an asset',
  description: 'Returns the tasks of one asset, newest first, in pages as List tasks of a kit.',
  request: { params: assetParams, query: taskQuery },
  responses: { 200: okJson(taskList, 'newest first'), ...readProblem },
});
const getTask = route('get', '/api/kits/{kit_id}/tasks/{task_id}', {
  operationId: 'getTask',
  summary: 'Get a task',
  description: 'Returns the task as the kit last reported it. `completed` and `failed` are final.',
  request: { params: taskParams },
  responses: { 200: okJson(task, 'as the kit last reported it'), ...readProblem },
});
const cancel = route('post', '/api/kits/{kit_id}/tasks/{task_id}/cancel', {
  operationId: 'cancelTask',
  summary: 'Cancel a task',
  description: 'Asks the kit to cancel the task; the outcome is in the task. 409 when it is final already.',
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
    return c.json({ commands: await service.commands(c.var.principal, kit_id, asset_id) }, 200);
  });
  routes.openapi(send, async (c) => {
    demandScope(c.var.principal, 'commands');
    const { kit_id, asset_id, command_name } = c.req.valid('param');
    // A request without a body has no payload either.
    const payload = sendCommand.catch({}).parse(c.req.valid('json')).payload ?? {};
    const order = { asset_id, command_name, payload };
    const sent = await once(c, { store, schema: task, body: payload }, async () =>
      service.sendCommand(c.var.principal, kit_id, order),
    );
    c.header('Location', `/api/kits/${kit_id}/tasks/${sent.id}`);
    return c.json(sent, 202);
  });
  routes.openapi(listTasks, async (c) => {
    const { cursor: after, ...query } = c.req.valid('query');
    const { kit_id } = c.req.valid('param');
    return c.json(await service.tasks(c.var.principal, kit_id, { ...query, after }), 200);
  });
  routes.openapi(listAssetTasks, async (c) => {
    const { kit_id, asset_id } = c.req.valid('param');
    const { cursor: after, ...query } = c.req.valid('query');
    return c.json(await service.tasks(c.var.principal, kit_id, { ...query, after, asset_id }), 200);
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
