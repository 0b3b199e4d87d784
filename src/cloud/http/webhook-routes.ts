/** Webhooks: registration, secrets and dead letters. All of it needs the scope `webhooks`. */
import { type OpenAPIHono, z } from '@hono/zod-openapi';
import { demandScope } from '../principal.ts';
import { RequestProblem } from '../api/problem.ts';
import {
  changeWebhook,
  createdWebhook,
  createWebhook,
  dead_ids_max,
  deadLetterList,
  purged,
  replayDead,
  replayed,
  tested,
  webhook,
  webhookList,
  webhookSecret,
} from '../api/webhook-resources.ts';
import { readDeadCursor, type WebhookOperations } from '../webhooks/operations.ts';
import {
  changeProblem,
  createdJson,
  type Env,
  jsonBody,
  okJson,
  optionalBody,
  readProblem,
  webhookParams,
  routesUnder,
} from './context.ts';
import { newRoutes } from './problems.ts';
import { texts } from '../webhooks/texts.ts';

const route = routesUnder('webhooks');
const place = '/api/webhooks';
const one = '/api/webhooks/{webhook_id}';
const dead = '/api/webhooks/{webhook_id}/dead';
const dead_default = 50;

const list = route('get', place, {
  operationId: 'listWebhooks',
  summary: 'List webhooks',
  description: 'Returns the webhooks whose kits the key has. Needs the scope `webhooks`, as all of them do.',
  responses: { 200: okJson(webhookList, 'by time of registration'), ...readProblem },
});
const create = route('post', place, {
  operationId: 'createWebhook',
  summary: 'Register a webhook',
  description:
    'Registers a receiver of events. Deliveries are signed as Standard Webhooks specifies; the secret is shown in this response only. A receiver answers with a 2xx status within the time limit, and ignores a `webhook-id` that it has already: each message is delivered at least once.',
  request: { body: jsonBody(createWebhook) },
  responses: { 201: createdJson(createdWebhook, 'registered'), ...changeProblem },
});
const get = route('get', one, {
  operationId: 'getWebhook',
  summary: 'Get a webhook',
  description: 'Returns the webhook with its counts: accepted = delivered + waiting + dead + purged.',
  request: { params: webhookParams },
  responses: { 200: okJson(webhook, 'the webhook'), ...readProblem },
});
const change = route('patch', one, {
  operationId: 'changeWebhook',
  summary: 'Change a webhook',
  description:
    'Changes what the body names. `enabled: true` enables a webhook that was disabled after failures, and sends its waiting deliveries. The key of the request owns the webhook from then on.',
  request: { params: webhookParams, body: jsonBody(changeWebhook) },
  responses: { 200: okJson(webhook, 'changed'), ...changeProblem },
});
const remove = route('delete', one, {
  operationId: 'deleteWebhook',
  summary: 'Delete a webhook',
  description: 'Deletes the webhook with everything that waits for it and its dead-letter list.',
  request: { params: webhookParams },
  responses: { 204: { description: 'deleted' }, ...changeProblem },
});
const rotate = route('post', `${one}/secret`, {
  operationId: 'rotateWebhookSecret',
  summary: 'Rotate the secret of a webhook',
  description: 'Makes a new secret. For a day deliveries carry the signatures of the new and of the old one.',
  request: { params: webhookParams },
  responses: { 200: okJson(webhookSecret, 'the new secret, shown in this response only'), ...changeProblem },
});
const test = route('post', `${one}/test`, {
  operationId: 'testWebhook',
  summary: 'Send a webhook a test',
  description:
    'Sends one signed delivery of the type `test` now, also while the webhook is disabled, and returns what came of it; its data has the `webhook_id`. Nothing is queued, repeated or counted.',
  request: { params: webhookParams },
  responses: { 200: okJson(tested, 'what came of it'), ...changeProblem },
});
const listDead = route('get', dead, {
  operationId: 'listDeadLetters',
  summary: 'List dead letters',
  description: 'Returns messages that were given up, the newest first, with the reason and their payload.',
  request: {
    params: webhookParams,
    query: z.object({
      limit: z.coerce
        .number()
        .int()
        .min(1)
        .max(dead_ids_max)
        .default(dead_default)
        .openapi({
          param: { name: 'limit', in: 'query', description: 'messages in one response', example: 20 },
        }),
      cursor: z
        .string()
        .max(64)
        .optional()
        .openapi({ param: { name: 'cursor', in: 'query', description: '`next_cursor` of the page before' } }),
    }),
  },
  responses: { 200: okJson(deadLetterList, 'the dead letters'), ...readProblem },
});
const replay = route('post', `${dead}/replay`, {
  operationId: 'replayDeadLetters',
  summary: 'Deliver dead letters again',
  description: 'Queues these dead letters, or all, again, with the same `webhook-id` and all attempts.',
  request: { params: webhookParams, body: optionalBody(replayDead) },
  responses: { 200: okJson(replayed, 'queued again'), ...changeProblem },
});
const purge = route('delete', dead, {
  operationId: 'purgeDeadLetters',
  summary: 'Delete dead letters',
  description: 'Deletes all dead letters of the webhook; they are counted as `purged`.',
  request: { params: webhookParams },
  responses: { 200: okJson(purged, 'deleted'), ...changeProblem },
});

/** `webhooks` undefined: they are switched off, and every request is 404. */
export function webhookRoutes(webhooks: WebhookOperations | undefined): OpenAPIHono<Env> {
  const routes = newRoutes();
  const operations = (): WebhookOperations => {
    if (webhooks) return webhooks;
    throw new RequestProblem('not-found', texts.switched_off);
  };
  routes.use('/api/webhooks/*', async (c, next) => {
    demandScope(c.var.principal, 'webhooks');
    await next();
  });
  addRegistration(routes, operations);
  addDead(routes, operations);
  return routes;
}

function addRegistration(routes: OpenAPIHono<Env>, operations: () => WebhookOperations): void {
  routes.openapi(list, async (c) =>
    c.json({ webhooks: [...(await operations().list(c.var.principal))] }, 200),
  );
  routes.openapi(create, async (c) => {
    const made = await operations().create(c.var.principal, c.req.valid('json'));
    return c.json(made, 201, { Location: `${place}/${made.id}` });
  });
  routes.openapi(get, async (c) =>
    c.json(await operations().get(c.var.principal, c.req.valid('param').webhook_id), 200),
  );
  routes.openapi(change, async (c) => {
    const { webhook_id } = c.req.valid('param');
    return c.json(await operations().change(c.var.principal, webhook_id, c.req.valid('json')), 200);
  });
  routes.openapi(remove, async (c) => {
    await operations().remove(c.var.principal, c.req.valid('param').webhook_id);
    return c.body(null, 204);
  });
  routes.openapi(test, async (c) =>
    c.json(await operations().test(c.var.principal, c.req.valid('param').webhook_id), 200),
  );
  routes.openapi(rotate, async (c) =>
    c.json(await operations().rotate(c.var.principal, c.req.valid('param').webhook_id), 200),
  );
}

function addDead(routes: OpenAPIHono<Env>, operations: () => WebhookOperations): void {
  routes.openapi(listDead, async (c) => {
    const { webhook_id } = c.req.valid('param');
    const { limit, cursor } = c.req.valid('query');
    const after = cursor === undefined ? undefined : readDeadCursor(cursor);
    if (cursor !== undefined && !after) {
      throw new RequestProblem('bad-request', texts.cursor_of_page);
    }
    return c.json(await operations().dead(c.var.principal, { webhook_id, limit, after }), 200);
  });
  routes.openapi(replay, async (c) => {
    const { webhook_id } = c.req.valid('param');
    // A request without a body names no ids either.
    const { ids = '*' } = replayDead.catch({}).parse(c.req.valid('json'));
    return c.json({ replayed: await operations().replay(c.var.principal, webhook_id, ids) }, 200);
  });
  routes.openapi(purge, async (c) =>
    c.json({ purged: await operations().purge(c.var.principal, c.req.valid('param').webhook_id, '*') }, 200),
  );
}
