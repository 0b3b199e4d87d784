/** Webhooks, as clients read and write them. */
import { z } from '@hono/zod-openapi';
import { jsonObject } from '../../contract/json.ts';
import { alarmSeverity } from '../severity.ts';
import { alarm } from './alarm-resources.ts';
import { fileResource } from './file-resources.ts';
import { label } from './requests.ts';
import { task } from './resources.ts';

export const webhookTypes = [
  'task.ended',
  'alarm',
  'file',
  'asset',
  'link',
  'battery',
  'queue',
  'kit.degraded',
  'kit.online',
  'kit.offline',
] as const;
export type WebhookType = (typeof webhookTypes)[number];

/** A later version beside this one may have more of them. */
export function isWebhookType(type: string): type is WebhookType {
  const known: readonly string[] = webhookTypes;
  return known.includes(type);
}

/** Receivers accept so much at least; a larger event leaves out what can be read from the API. */
export const body_bytes_max = 64 * 1024;

/** The secret before a rotation stays valid for so long, so that the receiver can take the new one. */
export const old_secret_ms = 24 * 3_600_000;

const timestamp = z.iso.datetime();
const count = z.int().nonnegative();
const types_text =
  'task.ended: a task completed or failed; alarm: an event of an asset began or ended, such as motion; file: the content of a file is here, such as the still of an alarm; asset, link: went offline or came back; battery: low; queue: messages wait, or were dropped or refused; kit.degraded: the kit, or its position; kit.online, kit.offline: its presence changed';
const kits_max = 1_000;
export const dead_ids_max = 100;

const types = z.array(z.enum(webhookTypes)).min(1).max(webhookTypes.length).describe(types_text);
const kits = z
  .union([z.literal('*'), z.array(z.uuid().toLowerCase()).min(1).max(kits_max)])
  .describe('ids of kits of the key, or `*` for a key of all kits');

const filters = {
  assets: z
    .union([z.literal('*'), z.array(z.uuid().toLowerCase()).min(1).max(kits_max)])
    .describe('only events of these assets, and none of a kit as a whole; `*`: all'),
  severity_min: alarmSeverity.describe('of alarms: only those that are as grave, or graver'),
};

const books = z
  .strictObject({
    accepted: count.describe('delivered + waiting + dead + purged'),
    delivered: count,
    waiting: count,
    dead: count.describe('given up; in the dead-letter list'),
    purged: count.describe(
      'deleted from the lists: by a client, by an erasure, or as the oldest of too many',
    ),
    missed: count.describe('came while the webhook was disabled; not accepted'),
  })
  .openapi('WebhookCounts');

export const webhook = z
  .strictObject({
    id: z.uuid(),
    label: z.string(),
    url: z.string(),
    types,
    kits,
    ...filters,
    status: z.enum(['enabled', 'disabled']),
    disabled_reason: z.string().optional(),
    failing_since: timestamp.optional().describe('no delivery has succeeded since; absent while they do'),
    last_fault: z.string().optional(),
    last_delivered_at: timestamp.optional(),
    created_at: timestamp,
    counts: books,
  })
  .openapi('Webhook');
export type WebhookResource = z.output<typeof webhook>;

const secret = z
  .string()
  .describe('key of the signatures, `whsec_` and base64 (Standard Webhooks); shown only once');
export const createdWebhook = webhook.extend({ secret }).openapi('CreatedWebhook');
export const webhookList = z.strictObject({ webhooks: z.array(webhook) }).openapi('WebhookList');
export const webhookSecret = z
  .strictObject({
    secret,
    old_secret_expires_at: timestamp.describe(`${old_secret_ms / 3_600_000} h: until then both secrets sign`),
  })
  .openapi('WebhookSecret');

const address = z.string().min(1).max(2_048).describe('https address of the receiver');
export const createWebhook = z
  .strictObject({
    label,
    url: address,
    types: types.optional().describe('left out: all'),
    kits: kits.optional().describe('left out: those of the key'),
    assets: filters.assets.optional(),
    severity_min: filters.severity_min.optional(),
  })
  .openapi('CreateWebhook');
export const changeWebhook = z
  .strictObject({
    label: label.optional(),
    url: address.optional(),
    types: types.optional(),
    kits: kits.optional(),
    assets: filters.assets.optional(),
    severity_min: filters.severity_min.optional(),
    enabled: z.boolean().optional().describe('true: waiting deliveries are tried again, too'),
  })
  .refine((change) => Object.keys(change).length > 0, 'send at least one field')
  .openapi('ChangeWebhook', { minProperties: 1 });

const deadLetter = z
  .strictObject({
    id: z.string().describe('`webhook-id` of the message'),
    type: z.enum(webhookTypes),
    kit_id: z.uuid(),
    observed_at: timestamp,
    queued_at: timestamp,
    dead_at: timestamp,
    attempts: count,
    reason: z.string(),
    payload: jsonObject.describe(`body of the delivery, at most ${body_bytes_max} bytes`),
  })
  .openapi('DeadLetter');
export const deadLetterList = z
  .strictObject({
    messages: z.array(deadLetter),
    next_cursor: z
      .string()
      .optional()
      .describe('send it as `cursor` for the next page; absent: this is the last'),
  })
  .openapi('DeadLetterList');

const messageId = z.string().length(31).startsWith('msg_');
export const replayDead = z
  .strictObject({
    ids: z.array(messageId).min(1).max(dead_ids_max).optional().describe('left out: all'),
  })
  .openapi('ReplayDeadLetters');
export const replayed = z.strictObject({ replayed: count }).openapi('ReplayedDeadLetters');
export const tested = z
  .strictObject({
    delivered: z.boolean(),
    status: z.int().optional().describe('of the answer; absent: there was none'),
    reason: z.string().optional().describe('why it was not delivered'),
    duration_ms: z.int().nonnegative(),
  })
  .openapi('TestedWebhook');
export const purged = z.strictObject({ purged: count }).openapi('PurgedDeadLetters');

/* The bodies of deliveries, as receivers read them. */
const observed_at = z.iso
  .datetime()
  .describe(
    'time of observation, of a lost kit when the service noticed it; events that a kit buffered come late',
  );
const kit_id = z.uuid();
const shortened = z.literal(true).optional().describe('what would not fit is left out; read it from the API');

const taskEnded = z
  .strictObject({
    type: z.literal('task.ended' satisfies WebhookType),
    timestamp: observed_at,
    data: z.strictObject({ kit_id, task, shortened }),
  })
  .openapi('TaskEndedEvent');
const assetAlarm = z
  .strictObject({
    type: z.literal('alarm' satisfies WebhookType),
    timestamp: observed_at,
    data: z.strictObject({
      kit_id,
      asset_id: z.uuid(),
      feed: z.string(),
      severity: alarmSeverity,
      late: z
        .literal(true)
        .optional()
        .describe('from the buffer of the kit, or five minutes old: no alarm of now'),
      message: jsonObject.optional(),
      time_quality: z.literal('unsynced').optional().describe('the clock of the kit was not set'),
      shortened,
    }),
  })
  .openapi('AlarmEvent');
const fileHere = z
  .strictObject({
    type: z.literal('file' satisfies WebhookType),
    timestamp: observed_at,
    data: z.strictObject({
      kit_id,
      file: fileResource,
      alarms: z.array(z.uuid()).describe('ids of alarms that it shows'),
      shortened,
    }),
  })
  .openapi('FileEvent');
const ofKit = <T extends WebhookType>(type: T, name: string) =>
  z
    .strictObject({
      type: z.literal(type),
      timestamp: observed_at,
      data: z.strictObject({
        kit_id,
        change: z.enum(['opened', 'raised', 'closed']).describe('raised: it became graver'),
        alarm,
        shortened,
      }),
    })
    .openapi(name);
const presence = z.strictObject({
  kit_id,
  reason: z.string().nullable().describe('why it is offline, such as connection lost or silent'),
});
const kitOnline = z
  .strictObject({
    type: z.literal('kit.online' satisfies WebhookType),
    timestamp: observed_at,
    data: presence,
  })
  .openapi('KitOnlineEvent');
const kitOffline = z
  .strictObject({
    type: z.literal('kit.offline' satisfies WebhookType),
    timestamp: observed_at,
    data: presence,
  })
  .openapi('KitOfflineEvent');

/** The schema of the body for each type. */
export const webhookBodies = {
  'task.ended': taskEnded,
  alarm: assetAlarm,
  file: fileHere,
  asset: ofKit('asset', 'AssetEvent'),
  link: ofKit('link', 'LinkEvent'),
  battery: ofKit('battery', 'BatteryEvent'),
  queue: ofKit('queue', 'QueueEvent'),
  'kit.degraded': ofKit('kit.degraded', 'KitDegradedEvent'),
  'kit.online': kitOnline,
  'kit.offline': kitOffline,
} as const satisfies Record<WebhookType, z.ZodType>;
