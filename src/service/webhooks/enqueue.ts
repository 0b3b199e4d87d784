/** Queues events for their receivers, in the transaction that stores what happened: neither is there without the other. */
import { isOfErased, readErased } from '../history/erasure.ts';
import type { Queries, SqlValue } from '../store/sql/database.ts';
import { places, portions } from '../store/sql/many-rows.ts';
import type { WebhookEvent } from './events.ts';
import { texts } from './texts.ts';
import type { Webhook } from './webhook-store.ts';
import { webhookOf } from './webhook-rows.ts';

/** Messages that wait for one receiver; what is more goes to its dead-letter list at once. */
export const waiting_max = 10_000;
/** Dead messages of one receiver; the oldest ones are deleted beyond. */
export const dead_max = 10_000;

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
  const rows = await queries.all(
    `SELECT * FROM webhooks WHERE ${with_valid_key} ORDER BY webhook_id`,
    now_ms,
  );
  if (rows.length === 0) return;
  const erased = await readErased(
    queries,
    events.map(({ kit_id }) => kit_id),
  );
  const announced = events.filter((event) => !isOfErased(erased, event));
  for (const webhook of rows.map(webhookOf)) {
    const wanted = announced.filter((event) => isFor(webhook, event));
    if (wanted.length === 0) continue;
    if (webhook.disabled_reason === null) await add(queries, webhook, { events: wanted, now_ms });
    else await miss(queries, webhook, wanted.length);
  }
}

function isFor({ types, kits }: Webhook, { type, kit_id }: WebhookEvent): boolean {
  return types.includes(type) && (kits === '*' || kits.includes(kit_id));
}

async function miss(queries: Queries, { webhook_id }: Webhook, missed: number): Promise<void> {
  await queries.all('UPDATE webhooks SET missed = missed + ? WHERE webhook_id = ?', missed, webhook_id);
}

interface Addition {
  readonly events: readonly WebhookEvent[];
  readonly now_ms: number;
}

async function add(queries: Queries, { webhook_id, counts }: Webhook, { events, now_ms }: Addition) {
  const room = Math.max(0, waiting_max - counts.waiting);
  let accepted = 0;
  let dead = 0;
  for (const some of portions(events.map((event, n) => ({ event, waits: n < room })))) {
    const added = await queries.all(
      `INSERT INTO webhook_messages (webhook_id, id, type, kit_id, asset_id, time_ms, body, state, queued_ms, next_ms, dead_ms,
         reason)
       VALUES ${places(some, '(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)')} ON CONFLICT (webhook_id, id) DO NOTHING RETURNING state`,
      ...some.flatMap(({ event, waits }): SqlValue[] => [
        webhook_id,
        event.id,
        event.type,
        event.kit_id,
        event.asset_id,
        event.time_ms,
        event.body,
        waits ? 'waiting' : 'dead',
        now_ms,
        now_ms,
        waits ? null : now_ms,
        waits ? null : texts.queue_full,
      ]),
    );
    accepted += added.length;
    dead += added.filter(({ state }) => state === 'dead').length;
  }
  await queries.all(
    'UPDATE webhooks SET accepted = accepted + ?, dead = dead + ? WHERE webhook_id = ?',
    accepted,
    dead,
    webhook_id,
  );
  if (dead > 0) await limitDead(queries, webhook_id);
}

/** Deletes the oldest dead messages beyond the limit. */
export async function limitDead(queries: Queries, webhook_id: string): Promise<void> {
  const [row] = await queries.all('SELECT dead FROM webhooks WHERE webhook_id = ?', webhook_id);
  const excess = Number(row?.['dead'] ?? 0) - dead_max;
  if (excess <= 0) return;
  const gone = await queries.all(
    `DELETE FROM webhook_messages WHERE webhook_id = ? AND state = 'dead' AND id IN (
       SELECT id FROM webhook_messages WHERE webhook_id = ? AND state = 'dead' ORDER BY dead_ms, id LIMIT ?) RETURNING id`,
    webhook_id,
    webhook_id,
    excess,
  );
  await countPurged(queries, webhook_id, { dead: gone.length, waiting: 0 });
}

/** Counts deleted messages. */
export async function countPurged(
  queries: Queries,
  webhook_id: string,
  { dead, waiting }: { readonly dead: number; readonly waiting: number },
): Promise<void> {
  await queries.all(
    'UPDATE webhooks SET dead = dead - ?, purged = purged + ? WHERE webhook_id = ?',
    dead,
    dead + waiting,
    webhook_id,
  );
}
