/** Queues events for their receivers, in the transaction that stores what happened: neither is there without the other. */
import { z } from 'zod';
import {
  jsonText,
  number,
  numberOrNull,
  text,
  textOrNull,
  texts as textList,
  textsOrAll,
} from '../sql/columns.ts';
import { type Clause, clause, nothing, raw, sql, type Queries, type Row } from '../sql/database.ts';
import { allSettled, insertRows } from '../sql/many-rows.ts';
import type { WebhookEvent } from './events.ts';
import { texts } from './texts.ts';
import { alarmSeverities, alarmSeverity } from '../severity.ts';
import type { Erasure } from '../stored/stored.ts';
import { isWebhookType } from '../api/webhook-resources.ts';

/** Messages that wait for one receiver; what is more goes to its dead-letter list at once. */
export const waiting_max = 10_000;
/** Dead messages of one receiver; the oldest ones are deleted beyond. */
export const dead_max = 10_000;

/** Characters of messages on their way to the database at once: of 64 receivers they may be 64 times what a commit brings. */
const sent_chars_max = 4 * 1024 * 1024;

const webhook_columns = raw(`webhooks.*, (SELECT COALESCE(api_keys.expires_ms, 8640000000000000) FROM api_keys
  WHERE api_keys.key_id = webhooks.key_id) AS key_ends_ms`);

/** Those for which the rest of the statement holds, in its order. */
export async function readWebhooks(queries: Queries, rest: Clause): Promise<readonly Webhook[]> {
  return (await sql(queries)`SELECT ${webhook_columns} FROM webhooks ${rest}`).map(webhookOf);
}

export async function enqueue(
  queries: Queries,
  events: readonly WebhookEvent[],
  now_ms: number,
): Promise<void> {
  if (events.length === 0) return;
  // In this order, so that two replicas never wait for each other.
  const queues = (await readWebhooks(queries, clause`ORDER BY webhook_id`)).flatMap((webhook): Addition[] => {
    const wanted = events.filter((event) => isFor(webhook, event));
    return wanted.length === 0 ? [] : [{ webhook, events: wanted, now_ms }];
  });
  // Receivers do not wait for each other: over a network 64 of them would hold up a commit for 128 round trips.
  const added: Awaited<ReturnType<typeof add>>[] = [];
  for (const some of groupsOf(queues)) {
    added.push(...(await allSettled(some.map(async (queue) => add(queries, queue)))));
  }
  await allSettled(
    added.map(
      async ({ webhook_id, accepted, dead, missed }) => sql(queries)`UPDATE webhooks
        SET accepted = accepted + ${accepted}, dead = dead + ${dead}, missed = missed + ${missed}
        WHERE webhook_id = ${webhook_id}`,
    ),
  );
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
async function add(queries: Queries, { webhook, events, now_ms }: Addition) {
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

/** Deletes the oldest dead messages beyond the limit. */
export async function limitDead(queries: Queries, webhook_id: string): Promise<void> {
  const [row] = await sql(queries)`SELECT dead FROM webhooks WHERE webhook_id = ${webhook_id}`;
  const excess = Number(row?.['dead'] ?? 0) - dead_max;
  if (excess <= 0) return;
  await purgeMessages(
    queries,
    clause`webhook_id = ${webhook_id} AND state = 'dead' AND id IN (SELECT id FROM webhook_messages
      WHERE webhook_id = ${webhook_id} AND state = 'dead' ORDER BY dead_ms, id LIMIT ${excess})`,
  );
}

/** Deletes alarms that wait for webhooks, or were given up, and are erased. */
export async function eraseMessages(
  queries: Queries,
  { kit_id, asset_id, before_ms }: Erasure,
): Promise<void> {
  const of_asset = asset_id === undefined ? nothing : clause`AND asset_id = ${asset_id}`;
  await purgeMessages(
    queries,
    clause`type = 'alarm' AND kit_id = ${kit_id} AND time_ms < ${before_ms} ${of_asset}`,
  );
}

/** Deletes those messages, and counts them as purged. Returns how many. */
export async function purgeMessages(queries: Queries, where: Clause): Promise<number> {
  const rows = await sql(queries)`DELETE FROM webhook_messages WHERE ${where} RETURNING webhook_id, state`;
  const byWebhook = Map.groupBy(rows, (row) => String(row['webhook_id']));
  for (const webhook_id of [...byWebhook.keys()].sort()) {
    const gone = byWebhook.get(webhook_id) ?? [];
    const dead = gone.filter(({ state }) => state === 'dead').length;
    await sql(queries)`UPDATE webhooks SET dead = dead - ${dead}, purged = purged + ${gone.length}
      WHERE webhook_id = ${webhook_id}`;
  }
  return rows.length;
}

const webhookRow = z
  .object({
    webhook_id: text,
    label: text,
    url: text,
    types: textList.transform((types) => types.filter(isWebhookType)).readonly(),
    /** `*`: all of the key. */
    kits: textsOrAll,
    /** Only events of these; `*`: all, those of kits too. */
    assets: textsOrAll.nullable().transform((some) => some ?? '*'),
    /** Of alarms. */
    severity_min: alarmSeverity.nullable().transform((least) => least ?? 'info'),
    /** The key that registered or enabled it last: without a valid one nothing is queued or sent. */
    key_id: text,
    /** Null: it was revoked. */
    key_ends_ms: numberOrNull,
    secrets: jsonText.pipe(z.array(z.object({ text, expires_ms: z.number().nullable() })).readonly()),
    created_ms: number,
    /** Null: it is enabled. */
    disabled_reason: textOrNull,
    /** Since when no delivery succeeded; null: the last one did. */
    failing_since_ms: numberOrNull,
    /** In a row. */
    failures: number,
    last_fault: textOrNull,
    delivered_ms: numberOrNull,
    accepted: number,
    delivered: number,
    dead: number,
    /** Deleted from the lists: by a client, with an erasure, or as the oldest of too many dead ones. */
    purged: number,
    /** Came while it was disabled, and were not accepted. */
    missed: number,
  })
  .transform(({ accepted, delivered, dead, purged, missed, ...webhook }) => {
    const waiting = accepted - delivered - dead - purged;
    return { ...webhook, counts: { accepted, delivered, waiting, dead, purged, missed } };
  });
/** A registered receiver. */
export type Webhook = Readonly<z.output<typeof webhookRow>>;

export function webhookOf(row: Row): Webhook {
  return webhookRow.parse(row);
}

const messageRow = z.object({
  webhook_id: text,
  id: text,
  /** A later version may have queued one that this version does not know. */
  type: text,
  kit_id: text,
  asset_id: textOrNull,
  time_ms: number,
  body: text,
  /** Begun ones. */
  attempts: number,
  queued_ms: number,
  /** Of a dead one. */
  dead_ms: numberOrNull,
  reason: textOrNull,
});
/** A message for a receiver. */
export type QueuedMessage = Readonly<z.output<typeof messageRow>>;

export function messageOf(row: Row): QueuedMessage {
  return messageRow.parse(row);
}
