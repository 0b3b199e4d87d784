/** Describes the deliveries of webhooks in the OpenAPI document (its section `webhooks`). */
import type { OpenAPIHono } from '@hono/zod-openapi';
import { z } from 'zod';
import { webhookBodies } from '../api/webhook-events.ts';
import { type Env, jsonBody } from './context.ts';

const headers = z.object({
  'webhook-id': z
    .string()
    .describe('the same at every attempt: ignore an id that was already received')
    .openapi({ example: 'msg_0aZ3kQ9xR1tY7uI5oP2sD4fG6hJ' }),
  'webhook-timestamp': z
    .string()
    .describe('of this attempt, seconds since 1970')
    .openapi({ example: '1795255200' }),
  'webhook-signature': z
    .string()
    .describe('`v1,` and HMAC-SHA256 of "id.timestamp.body" in base64; two for a day after a rotation')
    .openapi({ example: 'v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=' }),
});

const deliveries = [
  {
    type: 'task.ended',
    operationId: 'taskEnded',
    summary: 'A task ended',
    description:
      'A task completed or failed; again when a late report replaces a failure without an answer. `data.task` is as Get a task returns it.',
  },
  {
    type: 'alarm',
    operationId: 'alarm',
    summary: 'An asset raised an alarm',
    description: 'An event of an asset, such as motion: its begin and its end. Changes of status are none.',
  },
  {
    type: 'kit.online',
    operationId: 'kitOnline',
    summary: 'A kit came online',
    description: 'The kit reported that it is connected, or a kit that had fallen silent sends again.',
  },
  {
    type: 'kit.offline',
    operationId: 'kitOffline',
    summary: 'A kit went offline',
    description:
      'The kit reported it, the broker lost its connection, or nothing came from it for 65 minutes (`reason`: `silent`).',
  },
] as const;

export function describeWebhooks(app: OpenAPIHono<Env>): void {
  for (const { type, ...about } of deliveries) {
    app.openAPIRegistry.registerWebhook({
      method: 'post',
      path: type,
      ...about,
      tags: ['webhooks'],
      security: [],
      request: { headers, body: jsonBody(webhookBodies[type]) },
      responses: {
        204: { description: 'taken; any status of 200 to 299 is a success' },
        410: { description: 'gone: the webhook is disabled' },
        '5XX': { description: 'not taken, as any other status: the delivery is repeated' },
      },
    });
  }
}
