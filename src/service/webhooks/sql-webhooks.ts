/** Webhooks and their messages on an SQL database. */
import { SqlHistory } from '../history/sql-history.ts';
import type { SqlValue } from '../store/sql/database.ts';
import { countPurged, with_valid_key } from './enqueue.ts';
import { settle } from './settle.ts';
import { messageOf, webhookOf } from './webhook-rows.ts';
import type {
  ClaimRequest,
  DeadQuery,
  QueuedMessage,
  Settlement,
  Webhook,
  WebhookEdit,
  WebhookStore,
} from './webhook-store.ts';

/** Receivers of a service. */
export const webhooks_max = 64;

const is_due = `state = 'waiting' AND next_ms <= ? AND lease_ms <= ?`;

export class SqlWebhooks extends SqlHistory implements WebhookStore {
  async webhooks(): Promise<readonly Webhook[]> {
    return (await this.all('SELECT * FROM webhooks ORDER BY created_ms, webhook_id')).map(webhookOf);
  }

  async webhook(webhook_id: string): Promise<Webhook | undefined> {
    const [row] = await this.all('SELECT * FROM webhooks WHERE webhook_id = ?', webhook_id);
    return row && webhookOf(row);
  }

  async addWebhook(webhook: Omit<Webhook, 'counts'>): Promise<boolean> {
    const added = await this.all(
      `INSERT INTO webhooks (webhook_id, label, url, types, kits, key_id, secrets, created_ms)
       SELECT new.column1, new.column2, new.column3, new.column4, new.column5, new.column6, new.column7, new.column8
       FROM (VALUES (?, ?, ?, ?, ?, ?, ?, CAST(? AS BIGINT))) AS new
       WHERE (SELECT COUNT(*) FROM webhooks) < ${webhooks_max} RETURNING webhook_id`,
      webhook.webhook_id,
      webhook.label,
      webhook.url,
      JSON.stringify(webhook.types),
      JSON.stringify(webhook.kits),
      webhook.key_id,
      JSON.stringify(webhook.secrets),
      webhook.created_ms,
    );
    return added.length > 0;
  }

  async changeWebhook(webhook_id: string, edit: WebhookEdit): Promise<boolean> {
    const { label, url, types, kits, secrets, key_id, disabled_reason } = edit;
    const columns: Record<string, SqlValue | undefined> = {
      label,
      url,
      types: types && JSON.stringify(types),
      kits: kits && JSON.stringify(kits),
      secrets: secrets && JSON.stringify(secrets),
      key_id,
      disabled_reason,
      // An enabled one begins anew, and so does one with another address.
      ...((disabled_reason === null || url !== undefined) && {
        failing_since_ms: null,
        failures: 0,
        pause_until_ms: 0,
      }),
    };
    const changed = Object.entries(columns).flatMap(([name, value]) =>
      value === undefined ? [] : [[name, value] as const],
    );
    if (changed.length === 0) return (await this.webhook(webhook_id)) !== undefined;
    const rows = await this.all(
      `UPDATE webhooks SET ${changed.map(([name]) => `${name} = ?`).join(', ')} WHERE webhook_id = ? RETURNING webhook_id`,
      ...changed.map(([, value]) => value),
      webhook_id,
    );
    return rows.length > 0;
  }

  async removeWebhook(webhook_id: string): Promise<boolean> {
    return this.database.transaction(async (queries) => {
      const gone = await queries.all(
        'DELETE FROM webhooks WHERE webhook_id = ? RETURNING webhook_id',
        webhook_id,
      );
      await queries.all('DELETE FROM webhook_messages WHERE webhook_id = ?', webhook_id);
      return gone.length > 0;
    });
  }

  async dueWebhooks(now_ms: number): Promise<readonly Webhook[]> {
    const rows = await this.all(
      `SELECT * FROM webhooks WHERE disabled_reason IS NULL AND pause_until_ms <= ? AND ${with_valid_key}
         AND EXISTS (SELECT 1 FROM webhook_messages WHERE webhook_messages.webhook_id = webhooks.webhook_id AND ${is_due})`,
      now_ms,
      now_ms,
      now_ms,
      now_ms,
    );
    return rows.map(webhookOf);
  }

  async claimMessages({
    webhook_id,
    limit,
    now_ms,
    lease_ms,
    lease,
  }: ClaimRequest): Promise<readonly QueuedMessage[]> {
    // The condition stands in both places: a replica that waited for the rows of another one reads it again.
    const rows = await this.all(
      `UPDATE webhook_messages SET lease = ?, lease_ms = ?, attempts = attempts + 1
       WHERE webhook_id = ? AND ${is_due} AND id IN (
         SELECT id FROM webhook_messages WHERE webhook_id = ? AND ${is_due} ORDER BY next_ms, queued_ms, time_ms, id LIMIT ?)
       RETURNING *`,
      lease,
      lease_ms,
      webhook_id,
      now_ms,
      now_ms,
      webhook_id,
      now_ms,
      now_ms,
      limit,
    );
    return rows.map(messageOf);
  }

  async settleMessage(settlement: Settlement): Promise<{ readonly disabled: boolean }> {
    return this.database.transaction(async (queries) => settle(queries, settlement));
  }

  async deadMessages({ webhook_id, after, limit }: DeadQuery): Promise<readonly QueuedMessage[]> {
    const rows = await this.all(
      `SELECT * FROM webhook_messages WHERE webhook_id = ? AND state = 'dead'
         ${after ? 'AND (dead_ms < ? OR (dead_ms = ? AND id > ?))' : ''} ORDER BY dead_ms DESC, id LIMIT ?`,
      webhook_id,
      ...(after ? [after.dead_ms, after.dead_ms, after.id] : []),
      limit,
    );
    return rows.map(messageOf);
  }

  async replayDead(webhook_id: string, ids: readonly string[] | '*', now_ms: number): Promise<number> {
    return this.database.transaction(async (queries) => {
      const rows = await queries.all(
        `UPDATE webhook_messages SET state = 'waiting', attempts = 0, next_ms = ?, lease = '', lease_ms = 0, dead_ms = NULL,
           reason = NULL
         WHERE webhook_id = ? AND state = 'dead' ${named(ids)} RETURNING id`,
        now_ms,
        webhook_id,
        ...(ids === '*' ? [] : ids),
      );
      await queries.all('UPDATE webhooks SET dead = dead - ? WHERE webhook_id = ?', rows.length, webhook_id);
      return rows.length;
    });
  }

  async purgeDead(webhook_id: string, ids: readonly string[] | '*'): Promise<number> {
    return this.database.transaction(async (queries) => {
      const rows = await queries.all(
        `DELETE FROM webhook_messages WHERE webhook_id = ? AND state = 'dead' ${named(ids)} RETURNING id`,
        webhook_id,
        ...(ids === '*' ? [] : ids),
      );
      await countPurged(queries, webhook_id, { dead: rows.length, waiting: 0 });
      return rows.length;
    });
  }
}

function named(ids: readonly string[] | '*'): string {
  return ids === '*' ? '' : `AND id IN (${ids.map(() => '?').join(', ')})`;
}
