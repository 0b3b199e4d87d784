/** Rows of the tables of webhooks as values. What stands in the tables was checked on its way in. */
import { z } from 'zod';
import type { Row } from '../store/sql/database.ts';
import { isWebhookType } from './events.ts';
import type { QueuedMessage, Webhook } from './webhook-store.ts';

const text = z.string();
const jsonText = text.transform((written): unknown => JSON.parse(written));
const number = z.coerce.number();
const numberOrNull = z.union([z.null(), number]);

const webhookRow = z.object({
  webhook_id: text,
  label: text,
  url: text,
  types: jsonText.pipe(z.array(text)).transform((types) => types.filter(isWebhookType)),
  kits: jsonText.pipe(z.union([z.literal('*'), z.array(text)])),
  key_id: text,
  secrets: jsonText.pipe(z.array(z.object({ text, expires_ms: z.number().nullable() }))),
  created_ms: number,
  disabled_reason: text.nullable(),
  failing_since_ms: numberOrNull,
  failures: number,
  last_fault: text.nullable(),
  delivered_ms: numberOrNull,
});
const countsRow = z.object({
  accepted: number,
  delivered: number,
  dead: number,
  purged: number,
  missed: number,
});

export function webhookOf(row: Row): Webhook {
  const counts = countsRow.parse(row);
  const { accepted, delivered, dead, purged } = counts;
  return { ...webhookRow.parse(row), counts: { ...counts, waiting: accepted - delivered - dead - purged } };
}

const messageRow = z.object({
  webhook_id: text,
  id: text,
  type: text,
  kit_id: text,
  asset_id: text.nullable(),
  time_ms: number,
  body: text,
  attempts: number,
  queued_ms: number,
  dead_ms: numberOrNull,
  reason: text.nullable(),
});

export function messageOf(row: Row): QueuedMessage {
  return messageRow.parse(row);
}
