/** The bodies of deliveries, as receivers read them. */
import { z } from '@hono/zod-openapi';
import { jsonObject } from '../../contract/json.ts';
import type { WebhookType } from '../webhooks/events.ts';
import { task } from './resources.ts';

const timestamp = z.iso
  .datetime()
  .describe(
    'time of observation, of a lost kit when the service noticed it; events that a kit buffered come late',
  );
const kit_id = z.uuid();
const shortened = z.literal(true).optional().describe('what would not fit is left out; read it from the API');

const taskEnded = z
  .strictObject({
    type: z.literal('task.ended' satisfies WebhookType),
    timestamp,
    data: z.strictObject({ kit_id, task, shortened }),
  })
  .openapi('TaskEndedEvent');
const alarm = z
  .strictObject({
    type: z.literal('alarm' satisfies WebhookType),
    timestamp,
    data: z.strictObject({
      kit_id,
      asset_id: z.uuid(),
      feed: z.string(),
      message: jsonObject.optional(),
      time_quality: z.literal('unsynced').optional().describe('the clock of the kit was not set'),
      shortened,
    }),
  })
  .openapi('AlarmEvent');
const presence = z.strictObject({
  kit_id,
  reason: z.string().nullable().describe('why it is offline, such as connection lost or silent'),
});
const kitOnline = z
  .strictObject({ type: z.literal('kit.online' satisfies WebhookType), timestamp, data: presence })
  .openapi('KitOnlineEvent');
const kitOffline = z
  .strictObject({ type: z.literal('kit.offline' satisfies WebhookType), timestamp, data: presence })
  .openapi('KitOfflineEvent');

/** The schema of the body for each type. */
export const webhookBodies = {
  'task.ended': taskEnded,
  alarm,
  'kit.online': kitOnline,
  'kit.offline': kitOffline,
} as const satisfies Record<WebhookType, z.ZodType>;
