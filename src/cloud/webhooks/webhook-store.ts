/** Webhooks and their messages on an SQL database. */
import {
  assigned,
  type Clause,
  clause,
  listed,
  nothing,
  raw,
  sql,
  type Queries,
  type Row,
} from '../sql/database.ts';
import { allSettled } from '../sql/many-rows.ts';
import type { StoreContext } from '../stored/stored.ts';
import {
  enqueue,
  limitDead,
  messageOf,
  purgeMessages,
  type QueuedMessage,
  readWebhooks,
  type Webhook,
} from './enqueue.ts';
import { isOnline, silent_after_ms } from '../api/views.ts';
import { stateOf } from '../stored/rows.ts';
import { presenceEvent, type WebhookEvent } from './events.ts';

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
    if (mine) events.push(silenceEvent(String(kit_id), { online: false, present_ms, time_ms: now_ms }));
  }
  return events;
}

async function ended(queries: Queries, now_ms: number): Promise<readonly WebhookEvent[]> {
  const rows = await sql(queries)`SELECT kit_id, state, heard_ms, vouched_ms, since_ms, silent_ms FROM kits
    WHERE silent_ms IS NOT NULL AND (heard_ms > silent_ms OR vouched_ms > silent_ms) ORDER BY kit_id`;
  const events: WebhookEvent[] = [];
  for (const { kit_id, state, heard_ms, vouched_ms, since_ms, silent_ms } of rows) {
    const present_ms = Math.max(Number(heard_ms ?? 0), Number(vouched_ms ?? 0));
    const [mine] = await sql(queries)`UPDATE kits SET silent_ms = NULL
      WHERE kit_id = ${String(kit_id)} AND silent_ms = ${Number(silent_ms)} RETURNING kit_id`;
    const presence = { state: stateOf.parse(state), heard_ms: present_ms, vouched_ms: present_ms };
    // A change of its presence meanwhile was an event itself.
    const isAnnounced = Number(since_ms ?? 0) > Number(silent_ms);
    if (!mine || isAnnounced || !isOnline(presence, now_ms)) continue;
    events.push(silenceEvent(String(kit_id), { online: true, present_ms, time_ms: present_ms }));
  }
  return events;
}

/** A kit that fell silent while its presence was online, or that sends again. `present_ms`: when it was last, or is again. */
function silenceEvent(
  kit_id: string,
  { online, present_ms, time_ms }: { online: boolean; present_ms: number; time_ms: number },
): WebhookEvent {
  const identity = `${online ? 'heard' : 'silent'}/${present_ms}`;
  return presenceEvent(kit_id, identity, { online, time_ms, reason: online ? null : 'silent' });
}

/** Receivers of a service. */
export const webhooks_max = 64;

/** Due messages among which the next ones are chosen. */
const window_max = 64;

/** Not begun, or not by a claim that still holds. */
const isDue = (now_ms: number) =>
  clause`state = 'waiting' AND next_ms <= ${now_ms} AND lease_ms <= ${now_ms}`;

/** Enabled, with a key that exists and is not over. */
const isActive = (now_ms: number) =>
  clause`disabled_reason IS NULL AND EXISTS (SELECT 1 FROM api_keys WHERE api_keys.key_id = webhooks.key_id
    AND (api_keys.expires_ms IS NULL OR api_keys.expires_ms > ${now_ms}))`;

type Settings = 'label' | 'url' | 'types' | 'kits' | 'assets' | 'severity_min' | 'secrets' | 'key_id';
/** What is left out stays; `disabled_reason` null: enabled, by this key. */
export type WebhookEdit = { readonly [K in Settings | 'disabled_reason']?: Webhook[K] | undefined };

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
  const webhook = async (webhook_id: string): Promise<Webhook | undefined> =>
    (await readWebhooks(database, clause`WHERE webhook_id = ${webhook_id}`))[0];
  return {
    webhooks: async () => readWebhooks(database, clause`ORDER BY created_ms, webhook_id`),

    webhook,

    /** False: there are as many as there may be. */
    async addWebhook(added: Pick<Webhook, Settings | 'webhook_id' | 'created_ms'>): Promise<boolean> {
      const { webhook_id, created_ms, label, url, key_id, severity_min } = added;
      const { types, kits, assets, secrets } = added;
      const rows = await sql(database)`INSERT INTO webhooks
          (webhook_id, label, url, types, kits, key_id, secrets, created_ms, assets, severity_min)
        SELECT ${webhook_id}, ${label}, ${url}, ${JSON.stringify(types)}, ${JSON.stringify(kits)}, ${key_id},
          ${JSON.stringify(secrets)}, CAST(${created_ms} AS BIGINT), ${JSON.stringify(assets)}, ${severity_min}
        WHERE (SELECT COUNT(*) FROM webhooks) < ${raw(String(webhooks_max))} RETURNING webhook_id`;
      return rows.length > 0;
    },

    async changeWebhook(webhook_id: string, edit: WebhookEdit): Promise<boolean> {
      const { types, kits, assets, secrets, ...plain } = edit;
      // A webhook that was enabled or has another address starts without failures.
      const isNew = edit.disabled_reason === null || edit.url !== undefined;
      const set = assigned({
        ...plain,
        types: types && JSON.stringify(types),
        kits: kits && JSON.stringify(kits),
        assets: assets && JSON.stringify(assets),
        secrets: secrets && JSON.stringify(secrets),
        ...(isNew && { failing_since_ms: null, failures: 0, pause_until_ms: 0 }),
      });
      if (set.text === '') return (await webhook(webhook_id)) !== undefined;
      const rows = await sql(database)`UPDATE webhooks SET ${set} WHERE webhook_id = ${webhook_id}
        RETURNING webhook_id`;
      return rows.length > 0;
    },

    /** With its messages. */
    async removeWebhook(webhook_id: string): Promise<boolean> {
      return database.transaction(async (queries) => {
        const gone = await sql(queries)`DELETE FROM webhooks WHERE webhook_id = ${webhook_id}
          RETURNING webhook_id`;
        await sql(queries)`DELETE FROM webhook_messages WHERE webhook_id = ${webhook_id}`;
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
    dueWebhooks: async (now_ms: number) =>
      readWebhooks(
        database,
        clause`WHERE pause_until_ms <= ${now_ms} AND ${isActive(now_ms)} AND EXISTS (SELECT 1 FROM webhook_messages
          WHERE webhook_messages.webhook_id = webhooks.webhook_id AND ${isDue(now_ms)})`,
      ),

    /** When a message for an enabled receiver is due next, or may be: one in progress counts as due. Undefined: none waits. */
    async nextDue(now_ms: number): Promise<number | undefined> {
      const rows = await sql(database)`SELECT pause_until_ms, (SELECT MIN(next_ms) FROM webhook_messages
          WHERE webhook_messages.webhook_id = webhooks.webhook_id AND state = 'waiting') AS next_ms
        FROM webhooks WHERE accepted - delivered - dead - purged > 0 AND ${isActive(now_ms)}`;
      const due = rows.map((row) => Math.max(now_ms, Number(row['pause_until_ms']), Number(row['next_ms'])));
      return due.length === 0 ? undefined : Math.min(...due);
    },

    /**
     * Takes messages that are due for this process: no other one gets them before `lease_ms`. Of one subject (an asset, or a kit
     * itself) it takes one, and none while an earlier one is due or in progress.
     */
    async claimMessages(asked: ClaimRequest): Promise<readonly QueuedMessage[]> {
      const { webhook_id, limit, now_ms, lease_ms, lease } = asked;
      const due = await sql(database)`SELECT id, kit_id, asset_id, lease_ms FROM webhook_messages
        WHERE webhook_id = ${webhook_id} AND state = 'waiting' AND next_ms <= ${now_ms}
        ORDER BY next_ms, queued_ms, time_ms, id LIMIT ${window_max}`;
      const ids = firstOfSubjects(due, now_ms).slice(0, limit);
      if (ids.length === 0) return [];
      // What another replica took meanwhile is not due any more.
      const rows = await sql(database)`UPDATE webhook_messages
        SET lease = ${lease}, lease_ms = ${lease_ms}, attempts = attempts + 1
        WHERE webhook_id = ${webhook_id} AND ${isDue(now_ms)} AND id IN (${listed(ids)}) RETURNING *`;
      return rows.map(messageOf);
    },

    /** Stores the outcomes, but of messages that another claim has taken. Returns of each whether the receiver was disabled by it. */
    async settleMessages(settlements: readonly Settlement[]): Promise<readonly Settled[]> {
      return database.transaction(async (queries) => settleAll(queries, settlements));
    },

    async deadMessages({ webhook_id, after, limit }: DeadQuery): Promise<readonly QueuedMessage[]> {
      const behind = after
        ? clause`AND (dead_ms < ${after.dead_ms} OR (dead_ms = ${after.dead_ms} AND id > ${after.id}))`
        : nothing;
      const rows = await sql(database)`SELECT * FROM webhook_messages WHERE webhook_id = ${webhook_id}
        AND state = 'dead' ${behind} ORDER BY dead_ms DESC, id LIMIT ${limit}`;
      return rows.map(messageOf);
    },

    /** Queues dead messages again, all of them or these. Returns how many. */
    async replayDead(webhook_id: string, ids: readonly string[] | '*', now_ms: number): Promise<number> {
      return database.transaction(async (queries) => {
        const rows = await sql(queries)`UPDATE webhook_messages SET state = 'waiting', attempts = 0,
            next_ms = ${now_ms}, lease = '', lease_ms = 0, dead_ms = NULL, reason = NULL
          WHERE ${isDead(webhook_id, ids)} RETURNING id`;
        await sql(queries)`UPDATE webhooks SET dead = dead - ${rows.length} WHERE webhook_id = ${webhook_id}`;
        return rows.length;
      });
    },

    /** Deletes dead messages, all of them or these. Returns how many. */
    async purgeDead(webhook_id: string, ids: readonly string[] | '*'): Promise<number> {
      return database.transaction(async (queries) => purgeMessages(queries, isDead(webhook_id, ids)));
    },
  };
}

/** Ids of the messages that are first of their subject, unless they are in progress. `due`: in the order of the queue. */
function firstOfSubjects(due: readonly Row[], now_ms: number): readonly string[] {
  const subjects = Map.groupBy(due, ({ kit_id, asset_id }) => JSON.stringify([kit_id, asset_id]));
  const first = [...subjects.values()].flatMap((its) => its.slice(0, 1));
  return first.filter(({ lease_ms }) => Number(lease_ms) <= now_ms).map(({ id }) => String(id));
}

/** Dead messages of a receiver, all of them or these. */
function isDead(webhook_id: string, ids: readonly string[] | '*'): Clause {
  const those = ids === '*' ? nothing : clause`AND id IN (${listed(ids)})`;
  return clause`webhook_id = ${webhook_id} AND state = 'dead' ${those}`;
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
  const mine = clause`webhook_id = ${webhook_id} AND id = ${id} AND lease = ${lease}`;
  switch (settlement.kind) {
    case 'released':
      await sql(queries)`UPDATE webhook_messages SET lease = '', lease_ms = 0 WHERE ${mine}`;
      return unchanged;
    case 'delivered': {
      const gone = await sql(queries)`DELETE FROM webhook_messages WHERE ${mine} RETURNING id`;
      if (gone.length === 0) return unchanged;
      await sql(queries)`UPDATE webhooks SET delivered = delivered + 1, delivered_ms = ${settlement.now_ms},
        failures = 0, failing_since_ms = NULL,
        pause_until_ms = 0, last_fault = NULL WHERE webhook_id = ${webhook_id}`;
      return unchanged;
    }
    case 'failed':
    default:
      return fail(queries, mine, settlement);
  }
}

type Failed = Extract<Settlement, { kind: 'failed' }>;

async function fail(queries: Queries, mine: Clause, failed: Failed): Promise<Settled> {
  const { webhook_id, now_ms, reason, retry_ms, pause_until_ms, disable } = failed;
  const isOver = retry_ms === null;
  const changed = await sql(queries)`UPDATE webhook_messages SET lease = '', lease_ms = 0, reason = ${reason},
    state = ${isOver ? 'dead' : 'waiting'}, next_ms = ${retry_ms ?? 0}, dead_ms = ${isOver ? now_ms : null}
    WHERE ${mine} RETURNING id`;
  if (changed.length === 0) return unchanged;
  const [row] = await sql(queries)`UPDATE webhooks SET failures = failures + 1,
    failing_since_ms = COALESCE(failing_since_ms, ${now_ms}), pause_until_ms = ${pause_until_ms},
    last_fault = ${reason}, dead = dead + ${isOver ? 1 : 0} WHERE webhook_id = ${webhook_id}
      RETURNING failing_since_ms, disabled_reason`;
  if (isOver) await limitDead(queries, webhook_id);
  const isLong = disable !== undefined && Number(row?.['failing_since_ms']) <= disable.failing_since_ms;
  if (!isLong || row?.['disabled_reason'] !== null) return unchanged;
  await sql(queries)`UPDATE webhooks SET disabled_reason = ${disable.reason}
    WHERE webhook_id = ${webhook_id}`;
  return { disabled: true };
}
