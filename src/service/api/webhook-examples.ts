/** Examples of webhooks for the OpenAPI document. */
import type { z } from 'zod';
import type { WebhookType } from '../webhooks/events.ts';
import { webhookBodies } from './webhook-events.ts';
import {
  changeWebhook,
  createdWebhook,
  createWebhook,
  deadLetterList,
  purged,
  replayDead,
  replayed,
  webhook,
  webhookList,
  type WebhookResource,
  webhookSecret,
} from './webhook-resources.ts';

const time = '2026-11-21T10:00:00.000Z';
const kit_id = '0f8c1a52-6d1e-4b7a-9c3d-1f2e3d4c5b6a';
const asset_id = 'b3d0c1de-55c1-5d0e-8a44-0c6f8a2f5a11';
const secret = 'whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=';
const message_id = 'msg_0aZ3kQ9xR1tY7uI5oP2sD4fG6hJ';

const aWebhook: WebhookResource = {
  id: '2f6b8a10-3c4d-4e5f-8a90-b1c2d3e4f506',
  label: 'dispatch centre',
  url: 'https://app.example.com/hooks/kits',
  types: ['alarm', 'kit.offline'],
  kits: [kit_id],
  status: 'enabled',
  last_delivered_at: time,
  created_at: time,
  counts: { accepted: 120, delivered: 117, waiting: 2, dead: 1, purged: 0, missed: 0 },
};

const event = (type: WebhookType, data: object) => ({ type, timestamp: time, data: { kit_id, ...data } });

export const webhookExamples: readonly (readonly [z.ZodType, unknown])[] = [
  [
    webhookBodies['task.ended'],
    event('task.ended', {
      task: {
        id: '7d3b2c10-55aa-4c1e-8f00-0a1b2c3d4e5f',
        asset_id,
        command_name: 'return_home',
        payload: {},
        status: 'completed',
        result: { flight_mode: 'RTL' },
        requested_by: '0c6f8a2f-5a11-4d0e-8a44-b3d0c1de55c1',
        requested_by_name: 'dispatch centre',
        created_at: time,
        updated_at: time,
      },
    }),
  ],
  [webhookBodies.alarm, event('alarm', { asset_id, feed: 'motion', message: { detected: true } })],
  [webhookBodies['kit.online'], event('kit.online', { reason: null })],
  [webhookBodies['kit.offline'], event('kit.offline', { reason: 'connection lost' })],
  [webhook, aWebhook],
  [webhookList, { webhooks: [aWebhook] }],
  [createdWebhook, { ...aWebhook, secret }],
  [createWebhook, { label: aWebhook.label, url: aWebhook.url, types: aWebhook.types }],
  [changeWebhook, { enabled: true }],
  [webhookSecret, { secret, old_secret_expires_at: '2026-11-22T10:00:00.000Z' }],
  [
    deadLetterList,
    {
      messages: [
        {
          id: message_id,
          type: 'alarm',
          kit_id,
          observed_at: time,
          queued_at: time,
          dead_at: '2026-11-24T14:00:00.000Z',
          attempts: 10,
          reason: 'gave up after 10 attempts: answered with status 500',
          payload: {
            type: 'alarm',
            timestamp: time,
            data: { kit_id, asset_id, feed: 'motion', message: { detected: true } },
          },
        },
      ],
    },
  ],
  [replayDead, { ids: [message_id] }],
  [replayed, { replayed: 1 }],
  [purged, { purged: 1 }],
];
