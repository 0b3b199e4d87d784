/** Webhooks and their messages on an SQL database. */
import { sql, type Queries, type Row, type SqlValue } from '../sql/database.ts';
import { allSettled } from '../sql/many-rows.ts';
import type { AlarmSeverity } from '../severity.ts';
import type { StoreContext } from '../stored/stored.ts';
import {
  countPurged,
  enqueue,
  limitDead,
  messageOf,
  type QueuedMessage,
  type Webhook,
  webhookOf,
  webhook_columns,
  with_valid_key,
} from './enqueue.ts';
import type { Secret } from './signature.ts';
import type { WebhookType } from '../api/webhook-resources.ts';
import { isOnline, silent_after_ms } from '../api/views.ts';
import { stateOf } from '../stored/rows.ts';
import { silenceOf, type WebhookEvent } from './events.ts';

/**
 * Queues `kit.offline` for kits that fell silent, though their presence at the broker is online, and `kit.online` when they send
 * again: the rule by which List Kits shows them offline, as events. Runs inside a transaction. Returns whether there were any.
 * The column `silent_ms` has the start of the silence that was announced.
 */
async function noteSilences(queries: Queries, now_ms: number): Promise<boolean> {
  const events = [...(await begun(queries, now_ms)), ...(await ended(queries, now_ms))];
  await enqueue(queries, events, now_ms);
  return events.length > 0;
}

async function begun(queries: Queries, now_ms: number): Promise<readonly WebhookEvent[]> {
  const rows = await sql(queries)`SELECT kit_id, state, heard_ms, vouched_ms FROM kits
    WHERE silent_ms IS NULL AND state IS NOT NULL
      AND COALESCE(heard_ms, 0) <= ${now_ms - silent_after_ms}
      AND COALESCE(vouched_ms, 0) <= ${now_ms - silent_after_ms} ORDER BY kit_id`;
  const events: WebhookEvent[] = [];
  for (const { kit_id, state, heard_ms, vouched_ms } of rows) {
    if (!stateOf.parse(state).online) continue;
    const present_ms = Math.max(Number(heard_ms ?? 0), Number(vouched_ms ?? 0));
    const [mine] = await sql(queries)`UPDATE kits SET silent_ms = ${present_ms}
      WHERE kit_id = ${String(kit_id)} AND silent_ms IS NULL RETURNING kit_id`;
    if (mine) events.push(silenceOf(String(kit_id), { online: false, present_ms, time_ms: now_ms }));
  }
  return events;
}

async function ended(queries: Queries, now_ms: number): Promise<readonly WebhookEvent[]> {
  const rows = await queries.all(
    `SELECT kit_id, state, heard_ms, vouched_ms, since_ms, silent_ms FROM kits
     WHERE silent_ms IS NOT NULL AND (heard_ms > silent_ms OR vouched_ms > silent_ms) ORDER BY kit_id`,
  );
  const events: WebhookEvent[] = [];
  for (const { kit_id, state, heard_ms, vouched_ms, since_ms, silent_ms } of rows) {
    const present_ms = Math.max(Number(heard_ms ?? 0), Number(vouched_ms ?? 0));
    const [mine] = await sql(queries)`UPDATE kits SET silent_ms = NULL
      WHERE kit_id = ${String(kit_id)} AND silent_ms = ${Number(silent_ms)} RETURNING kit_id`;
    const presence = { state: stateOf.parse(state), heard_ms: present_ms, vouched_ms: present_ms };
    // A change of its presence meanwhile was an event itself.
    const isAnnounced = Number(since_ms ?? 0) > Number(silent_ms);
    if (!mine || isAnnounced || !isOnline(presence, now_ms)) continue;
    events.push(silenceOf(String(kit_id), { online: true, present_ms, time_ms: present_ms }));
  }
  return events;
}

/** Receivers of a service. */
export const webhooks_max = 64;

/** Due messages among which the next ones are chosen. */
const window_max = 64;

const isDue = `state = 'waiting' AND next_ms <= ? AND lease_ms <= ?`;

export interface WebhookEdit {
  readonly label?: string | undefined;
  readonly url?: string | undefined;
  readonly types?: readonly WebhookType[] | undefined;
  readonly kits?: readonly string[] | '*' | undefined;
  readonly assets?: readonly string[] | '*' | undefined;
  readonly severity_min?: AlarmSeverity | undefined;
  readonly secrets?: readonly Secret[] | undefined;
  /** Undefined: stays; null: enabled, by this key. */
  readonly disabled_reason?: string | null | undefined;
  readonly key_id?: string | undefined;
}

export interface ClaimRequest {
  readonly webhook_id: string;
  readonly limit: number;
  readonly now_ms: number;
  /** Another replica may claim it after this. */
  readonly lease_ms: number;
  /** Names this claim. */
  readonly lease: string;
}

/** How an attempt ended. */
export type Settlement = { readonly webhook_id: string; readonly id: string; readonly lease: string } & (
  | { readonly kind: 'delivered'; readonly now_ms: number }
  /** Nothing is known of it: it is claimed again at once. */
  | { readonly kind: 'released' }
  | {
      readonly kind: 'failed';
      readonly now_ms: number;
      readonly reason: string;
      /** Null: given up. */
      readonly retry_ms: number | null;
      /** No attempt at this receiver before. */
      readonly pause_until_ms: number;
      /** The receiver is disabled for this reason, when it has failed since this time or longer. */
      readonly disable?: { readonly reason: string; readonly failing_since_ms: number };
    }
);

export interface DeadQuery {
  readonly webhook_id: string;
  /** The one after this in the order of the list: newest first. */
  readonly after?: { readonly dead_ms: number; readonly id: string } | undefined;
  readonly limit: number;
}

/** Every method may reject with `StorageUnavailable`. */
export type WebhookStore = ReturnType<typeof webhookRegistry> & ReturnType<typeof webhookQueue>;

/** The receivers. */
export function webhookRegistry({ database }: StoreContext) {
  const webhook = async (webhook_id: string): Promise<Webhook | undefined> => {
    const [row] = await database.all(
      `SELECT ${webhook_columns} FROM webhooks WHERE webhook_id = ?`,
      webhook_id,
    );
    return row && webhookOf(row);
  };
  return {
    async webhooks(): Promise<readonly Webhook[]> {
      return (
        await database.all(`SELECT ${webhook_columns} FROM webhooks ORDER BY created_ms, webhook_id`)
      ).map(webhookOf);
    },

    webhook,

    /** False: there are as many as there may be. */
    async addWebhook(webhook: Omit<Webhook, 'counts' | 'key_ends_ms'>): Promise<boolean> {
      const added = await database.all(
        `INSERT INTO webhooks (webhook_id, label, url, types, kits, key_id, secrets, created_ms, assets, severity_min)
         SELECT new.column1, new.column2, new.column3, new.column4, new.column5, new.column6, new.column7, new.column8, new.column9,
           new.column10 FROM (VALUES (?, ?, ?, ?, ?, ?, ?, CAST(? AS BIGINT), ?, ?)) AS new
         WHERE (SELECT COUNT(*) FROM webhooks) < ${webhooks_max} RETURNING webhook_id`,
        webhook.webhook_id,
        webhook.label,
        webhook.url,
        JSON.stringify(webhook.types),
        JSON.stringify(webhook.kits),
        webhook.key_id,
        JSON.stringify(webhook.secrets),
        webhook.created_ms,
        JSON.stringify(webhook.assets),
        webhook.severity_min,
      );
      return added.length > 0;
    },

    async changeWebhook(webhook_id: string, edit: WebhookEdit): Promise<boolean> {
      const { label, url, types, kits, assets, severity_min, secrets, key_id, disabled_reason } = edit;
      const columns: Record<string, SqlValue | undefined> = {
        label,
        url,
        types: types && JSON.stringify(types),
        kits: kits && JSON.stringify(kits),
        assets: assets && JSON.stringify(assets),
        severity_min,
        secrets: secrets && JSON.stringify(secrets),
        key_id,
        disabled_reason,
        // A webhook that was enabled or has another address starts without failures.
        ...((disabled_reason === null || url !== undefined) && {
          failing_since_ms: null,
          failures: 0,
          pause_until_ms: 0,
        }),
      };
      const changed = Object.entries(columns).flatMap(([name, value]) =>
        value === undefined ? [] : [[name, value] as const],
      );
      if (changed.length === 0) return (await webhook(webhook_id)) !== undefined;
      const rows = await database.all(
        `UPDATE webhooks SET ${changed.map(([name]) => `${name} = ?`).join(', ')} WHERE webhook_id = ? RETURNING webhook_id`,
        ...changed.map(([, value]) => value),
        webhook_id,
      );
      return rows.length > 0;
    },

    /** With its messages. */
    async removeWebhook(webhook_id: string): Promise<boolean> {
      return database.transaction(async (queries) => {
        const gone = await sql(queries)`DELETE FROM webhooks WHERE webhook_id = ${webhook_id}
          RETURNING webhook_id`;
        await queries.all('DELETE FROM webhook_messages WHERE webhook_id = ?', webhook_id);
        return gone.length > 0;
      });
    },
  };
}

/** Their messages. */
export function webhookQueue({ database }: StoreContext) {
  return {
    /** Queues events for kits that fell silent and for kits that send again. Returns whether there were any. */
    async noteSilences(now_ms: number): Promise<boolean> {
      return database.transaction(async (queries) => noteSilences(queries, now_ms));
    },

    /** Receivers with a message that is due. */
    async dueWebhooks(now_ms: number): Promise<readonly Webhook[]> {
      const rows = await database.all(
        `SELECT ${webhook_columns} FROM webhooks WHERE disabled_reason IS NULL AND pause_until_ms <= ? AND ${with_valid_key}
           AND EXISTS (SELECT 1 FROM webhook_messages WHERE webhook_messages.webhook_id = webhooks.webhook_id AND ${isDue})`,
        now_ms,
        now_ms,
        now_ms,
        now_ms,
      );
      return rows.map(webhookOf);
    },

    /** When a message for an enabled receiver is due next, or may be: one in progress counts as due. Undefined: none waits. */
    async nextDue(now_ms: number): Promise<number | undefined> {
      const rows = await database.all(
        `SELECT pause_until_ms, (SELECT MIN(next_ms) FROM webhook_messages
           WHERE webhook_messages.webhook_id = webhooks.webhook_id AND state = 'waiting') AS next_ms
         FROM webhooks WHERE disabled_reason IS NULL AND accepted - delivered - dead - purged > 0 AND ${with_valid_key}`,
        now_ms,
      );
      const due = rows.map((row) => Math.max(now_ms, Number(row['pause_until_ms']), Number(row['next_ms'])));
      return due.length === 0 ? undefined : Math.min(...due);
    },

    /**
     * Takes messages that are due for this process: no other one gets them before `lease_ms`. Of one subject (an asset, or a kit
     * itself) it takes one, and none while an earlier one is due or in progress.
     */
    async claimMessages({
      webhook_id,
      limit,
      now_ms,
      lease_ms,
      lease,
    }: ClaimRequest): Promise<readonly QueuedMessage[]> {
      const due = await database.all(
        `SELECT id, kit_id, asset_id, lease_ms FROM webhook_messages
         WHERE webhook_id = ? AND state = 'waiting' AND next_ms <= ? ORDER BY next_ms, queued_ms, time_ms, id LIMIT ${window_max}`,
        webhook_id,
        now_ms,
      );
      const ids = firstOfSubjects(due, now_ms).slice(0, limit);
      if (ids.length === 0) return [];
      // What another replica took meanwhile is not due any more.
      const rows = await database.all(
        `UPDATE webhook_messages SET lease = ?, lease_ms = ?, attempts = attempts + 1
         WHERE webhook_id = ? AND ${isDue} AND id IN (${ids.map(() => '?').join(', ')}) RETURNING *`,
        lease,
        lease_ms,
        webhook_id,
        now_ms,
        now_ms,
        ...ids,
      );
      return rows.map(messageOf);
    },

    /** Stores the outcomes, but of messages that another claim has taken. Returns of each whether the receiver was disabled by it. */
    async settleMessages(settlements: readonly Settlement[]): Promise<readonly Settled[]> {
      return database.transaction(async (queries) => settleAll(queries, settlements));
    },

    async deadMessages({ webhook_id, after, limit }: DeadQuery): Promise<readonly QueuedMessage[]> {
      const rows = await database.all(
        `SELECT * FROM webhook_messages WHERE webhook_id = ? AND state = 'dead'
           ${after ? 'AND (dead_ms < ? OR (dead_ms = ? AND id > ?))' : ''} ORDER BY dead_ms DESC, id LIMIT ?`,
        webhook_id,
        ...(after ? [after.dead_ms, after.dead_ms, after.id] : []),
        limit,
      );
      return rows.map(messageOf);
    },

    /** Queues dead messages again, all of them or these. Returns how many. */
    async replayDead(webhook_id: string, ids: readonly string[] | '*', now_ms: number): Promise<number> {
      return database.transaction(async (queries) => {
        const rows = await queries.all(
          `UPDATE webhook_messages SET state = 'waiting', attempts = 0, next_ms = ?, lease = '', lease_ms = 0, dead_ms = NULL,
             reason = NULL
           WHERE webhook_id = ? AND state = 'dead' ${named(ids)} RETURNING id`,
          now_ms,
          webhook_id,
          ...(ids === '*' ? [] : ids),
        );
        await sql(queries)`UPDATE webhooks SET dead = dead - ${rows.length} WHERE webhook_id = ${webhook_id}`;
        return rows.length;
      });
    },

    /** Deletes dead messages, all of them or these. Returns how many. */
    async purgeDead(webhook_id: string, ids: readonly string[] | '*'): Promise<number> {
      return database.transaction(async (queries) => {
        const rows = await queries.all(
          `DELETE FROM webhook_messages WHERE webhook_id = ? AND state = 'dead' ${named(ids)} RETURNING id`,
          webhook_id,
          ...(ids === '*' ? [] : ids),
        );
        await countPurged(queries, webhook_id, { dead: rows.length, waiting: 0 });
        return rows.length;
      });
    },
  };
}

/** Ids of the messages that are first of their subject, unless they are in progress. `due`: in the order of the queue. */
function firstOfSubjects(due: readonly Row[], now_ms: number): readonly string[] {
  const subjects = new Set<string>();
  return due.flatMap(({ id, kit_id, asset_id, lease_ms }) => {
    const subject = JSON.stringify([kit_id, asset_id]);
    if (subjects.has(subject)) return [];
    subjects.add(subject);
    return Number(lease_ms) <= now_ms ? [String(id)] : [];
  });
}

function named(ids: readonly string[] | '*'): string {
  return ids === '*' ? '' : `AND id IN (${ids.map(() => '?').join(', ')})`;
}

const unchanged = { disabled: false } as const;

export interface Settled {
  readonly disabled: boolean;
}

/** Stores how attempts ended, in one transaction: message, counts, and the health of the receiver. Returns what came of each, in their order. A message that another claim has taken, or that a client has deleted, is left alone. */
async function settleAll(queries: Queries, settlements: readonly Settlement[]): Promise<readonly Settled[]> {
  // Rows of receivers are locked in the order in which commits lock them: neither waits for the other without end.
  const inOrder = settlements.toSorted((a, b) => (a.webhook_id < b.webhook_id ? -1 : 1));
  const results = await allSettled(inOrder.map(async (settlement) => settle(queries, settlement)));
  const byPlace = new Map(inOrder.map((settlement, at) => [settlement, results[at] ?? unchanged]));
  return settlements.map((settlement) => byPlace.get(settlement) ?? unchanged);
}

async function settle(queries: Queries, settlement: Settlement): Promise<Settled> {
  const { webhook_id, id, lease } = settlement;
  const mine = [webhook_id, id, lease] as const;
  switch (settlement.kind) {
    case 'released':
      await queries.all(
        `UPDATE webhook_messages SET lease = '', lease_ms = 0 WHERE webhook_id = ? AND id = ? AND lease = ?`,
        ...mine,
      );
      return unchanged;
    case 'delivered': {
      const gone = await queries.all(
        'DELETE FROM webhook_messages WHERE webhook_id = ? AND id = ? AND lease = ? RETURNING id',
        ...mine,
      );
      if (gone.length === 0) return unchanged;
      await sql(queries)`UPDATE webhooks SET delivered = delivered + 1, delivered_ms = ${settlement.now_ms},
        failures = 0, failing_since_ms = NULL,
        pause_until_ms = 0, last_fault = NULL WHERE webhook_id = ${webhook_id}`;
      return unchanged;
    }
    case 'failed':
    default:
      return fail(queries, settlement);
  }
}

type Failed = Extract<Settlement, { kind: 'failed' }>;

async function fail(queries: Queries, failed: Failed): Promise<Settled> {
  const { webhook_id, id, lease, now_ms, reason, retry_ms, pause_until_ms, disable } = failed;
  const isDead = retry_ms === null;
  const mine = await sql(queries)`UPDATE webhook_messages SET lease = '', lease_ms = 0, reason = ${reason},
    state = ${isDead ? 'dead' : 'waiting'}, next_ms = ${retry_ms ?? 0}, dead_ms = ${isDead ? now_ms : null}
    WHERE webhook_id = ${webhook_id} AND id = ${id} AND lease = ${lease} RETURNING id`;
  if (mine.length === 0) return unchanged;
  const [row] = await sql(queries)`UPDATE webhooks SET failures = failures + 1,
    failing_since_ms = COALESCE(failing_since_ms, ${now_ms}), pause_until_ms = ${pause_until_ms},
    last_fault = ${reason}, dead = dead + ${isDead ? 1 : 0} WHERE webhook_id = ${webhook_id}
      RETURNING failing_since_ms, disabled_reason`;
  if (isDead) await limitDead(queries, webhook_id);
  const isLong = disable !== undefined && Number(row?.['failing_since_ms']) <= disable.failing_since_ms;
  if (!isLong || row?.['disabled_reason'] !== null) return unchanged;
  await sql(queries)`UPDATE webhooks SET disabled_reason = ${disable.reason}
    WHERE webhook_id = ${webhook_id}`;
  return { disabled: true };
}
