/** Queues events for their receivers, in the transaction that stores what happened: neither is there without the other. */
import { z } from 'zod';
import { sql, type Queries, type Row, type SqlValue } from '../sql/database.ts';
import { allSettled, insertRows } from '../sql/many-rows.ts';
import type { WebhookEvent } from './events.ts';
import { texts } from './texts.ts';
import { alarmSeverities, alarmSeverity, type AlarmSeverity } from '../severity.ts';
import type { Secret } from './signature.ts';
import type { Erasure } from '../stored/stored.ts';
import { type WebhookType, isWebhookType } from '../api/webhook-resources.ts';

/** A registered receiver. */
export interface Webhook {
  readonly webhook_id: string;
  readonly label: string;
  readonly url: string;
  readonly types: readonly WebhookType[];
  /** `*`: all of the key. */
  readonly kits: readonly string[] | '*';
  /** Only events of these; `*`: all, those of kits too. */
  readonly assets: readonly string[] | '*';
  /** Of alarms. */
  readonly severity_min: AlarmSeverity;
  /** The key that registered or enabled it last: without a valid one nothing is queued or sent. */
  readonly key_id: string;
  /** Null: it was revoked. */
  readonly key_ends_ms: number | null;
  readonly secrets: readonly Secret[];
  readonly created_ms: number;
  /** Null: it is enabled. */
  readonly disabled_reason: string | null;
  /** Since when no delivery succeeded; null: the last one did. */
  readonly failing_since_ms: number | null;
  /** In a row. */
  readonly failures: number;
  readonly last_fault: string | null;
  readonly delivered_ms: number | null;
  readonly counts: WebhookCounts;
}

/** accepted = delivered + waiting + dead + purged. */
export interface WebhookCounts {
  readonly accepted: number;
  readonly delivered: number;
  readonly waiting: number;
  readonly dead: number;
  /** Deleted from the lists: by a client, with an erasure, or as the oldest of too many dead ones. */
  readonly purged: number;
  /** Came while it was disabled, and were not accepted. */
  readonly missed: number;
}

/** A message for a receiver. */
export interface QueuedMessage extends Omit<WebhookEvent, 'type' | 'unsynced' | 'severity'> {
  /** A later version may have queued one that this version does not know. */
  readonly type: string;
  readonly webhook_id: string;
  /** Begun ones. */
  readonly attempts: number;
  readonly queued_ms: number;
  /** Of a dead one. */
  readonly dead_ms: number | null;
  readonly reason: string | null;
}

/** Messages that wait for one receiver; what is more goes to its dead-letter list at once. */
export const waiting_max = 10_000;
/** Dead messages of one receiver; the oldest ones are deleted beyond. */
export const dead_max = 10_000;

/** Characters of messages on their way to the database at once: of 64 receivers they may be 64 times what a commit brings. */
const sent_chars_max = 4 * 1024 * 1024;

export const webhook_columns = `webhooks.*, (SELECT COALESCE(api_keys.expires_ms, 8640000000000000) FROM api_keys
  WHERE api_keys.key_id = webhooks.key_id) AS key_ends_ms`;

/** Webhooks whose key exists and is not over. */
export const with_valid_key = `EXISTS (SELECT 1 FROM api_keys WHERE api_keys.key_id = webhooks.key_id
  AND (api_keys.expires_ms IS NULL OR api_keys.expires_ms > ?))`;

export async function enqueue(
  queries: Queries,
  events: readonly WebhookEvent[],
  now_ms: number,
): Promise<void> {
  if (events.length === 0) return;
  // In this order, so that two replicas never wait for each other.
  const rows = await queries.all(`SELECT ${webhook_columns} FROM webhooks ORDER BY webhook_id`);
  if (rows.length === 0) return;
  const queues = rows.map(webhookOf).flatMap((webhook): Addition[] => {
    const wanted = events.filter((event) => isFor(webhook, event));
    return wanted.length === 0 ? [] : [{ webhook, events: wanted, now_ms }];
  });
  // Receivers do not wait for each other: over a network 64 of them would hold up a commit for 128 round trips.
  const added: Added[] = [];
  for (const some of groupsOf(queues)) {
    added.push(...(await allSettled(some.map(async (queue) => add(queries, queue)))));
  }
  await allSettled(added.map(async (counts) => count(queries, counts)));
  for (const { webhook_id, dead } of added) if (dead > 0) await limitDead(queries, webhook_id);
}

function isFor({ types, kits, assets, severity_min }: Webhook, event: WebhookEvent): boolean {
  const { type, kit_id, asset_id, severity } = event;
  const isGrave =
    severity === undefined || alarmSeverities.indexOf(severity) >= alarmSeverities.indexOf(severity_min);
  const isOfAsset = assets === '*' || (asset_id !== null && assets.includes(asset_id));
  return types.includes(type) && (kits === '*' || kits.includes(kit_id)) && isOfAsset && isGrave;
}

/** Groups of receivers whose messages are sent to the database at once. */
function* groupsOf(queues: readonly Addition[]): Iterable<readonly Addition[]> {
  let group: Addition[] = [];
  let chars = 0;
  for (const queue of queues) {
    group.push(queue);
    chars += queue.events.reduce((sum, { body }) => sum + body.length, 0);
    if (chars < sent_chars_max) continue;
    yield group;
    group = [];
    chars = 0;
  }
  yield group;
}

interface Addition {
  readonly webhook: Webhook;
  readonly events: readonly WebhookEvent[];
  readonly now_ms: number;
}

interface Added {
  readonly webhook_id: string;
  readonly accepted: number;
  readonly dead: number;
  readonly missed: number;
}

/** Why nothing is queued; null: it is enabled, and its key is valid. */
export function faultOf(
  { disabled_reason, key_ends_ms }: Pick<Webhook, 'disabled_reason' | 'key_ends_ms'>,
  now_ms: number,
): string | null {
  if (disabled_reason !== null) return disabled_reason;
  if (key_ends_ms === null) return texts.key_revoked;
  return key_ends_ms > now_ms ? null : texts.key_expired(new Date(key_ends_ms).toISOString());
}

/** Queues the events for one receiver. A disabled one misses them. */
async function add(queries: Queries, { webhook, events, now_ms }: Addition): Promise<Added> {
  const { webhook_id, counts } = webhook;
  if (faultOf(webhook, now_ms) !== null) return { webhook_id, accepted: 0, dead: 0, missed: events.length };
  const room = Math.max(0, waiting_max - counts.waiting);
  const times = { queued_ms: now_ms, next_ms: now_ms };
  const messages = events.map(({ id, type, kit_id, asset_id, time_ms, body }, n) => {
    const event = { webhook_id, id, type, kit_id, asset_id, time_ms, body, ...times };
    return n < room
      ? { ...event, state: 'waiting', dead_ms: null, reason: null }
      : { ...event, state: 'dead', dead_ms: now_ms, reason: texts.queue_full };
  });
  const clauses = 'ON CONFLICT (webhook_id, id) DO NOTHING RETURNING state';
  const added = await insertRows(queries, 'webhook_messages', messages, clauses);
  const dead = added.filter(({ state }) => state === 'dead').length;
  return { webhook_id, accepted: added.length, dead, missed: 0 };
}

async function count(queries: Queries, { webhook_id, accepted, dead, missed }: Added): Promise<void> {
  await sql(queries)`UPDATE webhooks SET accepted = accepted + ${accepted}, dead = dead + ${dead},
    missed = missed + ${missed} WHERE webhook_id = ${webhook_id}`;
}

/** Deletes the oldest dead messages beyond the limit. */
export async function limitDead(queries: Queries, webhook_id: string): Promise<void> {
  const [row] = await queries.all('SELECT dead FROM webhooks WHERE webhook_id = ?', webhook_id);
  const excess = Number(row?.['dead'] ?? 0) - dead_max;
  if (excess <= 0) return;
  const gone = await sql(queries)`DELETE FROM webhook_messages WHERE webhook_id = ${webhook_id}
    AND state = 'dead' AND id IN (
    SELECT id FROM webhook_messages WHERE webhook_id = ${webhook_id} AND state = 'dead'
      ORDER BY dead_ms, id LIMIT ${excess}) RETURNING id`;
  await countPurged(queries, webhook_id, { dead: gone.length, waiting: 0 });
}

/** Counts deleted messages. */
export async function countPurged(
  queries: Queries,
  webhook_id: string,
  { dead, waiting }: { readonly dead: number; readonly waiting: number },
): Promise<void> {
  await sql(queries)`UPDATE webhooks SET dead = dead - ${dead}, purged = purged + ${dead + waiting}
    WHERE webhook_id = ${webhook_id}`;
}

/** Deletes alarms that wait for webhooks, or were given up, and are erased. */
export async function eraseMessages(
  queries: Queries,
  { kit_id, asset_id, before_ms }: Erasure,
): Promise<void> {
  await purgeMessages(
    queries,
    `type = 'alarm' AND kit_id = ? AND time_ms < ? ${asset_id === undefined ? '' : 'AND asset_id = ?'}`,
    kit_id,
    before_ms,
    ...(asset_id === undefined ? [] : [asset_id]),
  );
}

/** Deletes those messages, and counts them as purged. */
export async function purgeMessages(
  queries: Queries,
  where: string,
  ...values: readonly SqlValue[]
): Promise<void> {
  const rows = await queries.all(
    `DELETE FROM webhook_messages WHERE ${where} RETURNING webhook_id, state`,
    ...values,
  );
  const byWebhook = Map.groupBy(rows, (row) => String(row['webhook_id']));
  for (const webhook_id of [...byWebhook.keys()].sort()) {
    const gone = byWebhook.get(webhook_id) ?? [];
    const dead = gone.filter(({ state }) => state === 'dead').length;
    await countPurged(queries, webhook_id, { dead, waiting: gone.length - dead });
  }
}

// Rows of the tables of webhooks as values. What stands in the tables was checked on its way in.
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
  assets: z
    .string()
    .nullable()
    .transform((written): unknown => JSON.parse(written ?? '"*"'))
    .pipe(z.union([z.literal('*'), z.array(text)])),
  severity_min: alarmSeverity.nullable().transform((least) => least ?? 'info'),
  key_id: text,
  key_ends_ms: numberOrNull,
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
