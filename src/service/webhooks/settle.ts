/** Stores how attempts ended, in one transaction: message, counts, and the health of the receiver. */
import type { Queries } from '../store/sql/database.ts';
import { allSettled } from '../store/sql/many-rows.ts';
import { limitDead } from './enqueue.ts';
import type { Settlement } from './webhook-store.ts';

const unchanged = { disabled: false } as const;

export interface Settled {
  readonly disabled: boolean;
}

/** Returns what came of each, in their order. A message that another claim has taken, or that a client has deleted, is left alone. */
export async function settleAll(
  queries: Queries,
  settlements: readonly Settlement[],
): Promise<readonly Settled[]> {
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
      await queries.all(
        `UPDATE webhooks SET delivered = delivered + 1, delivered_ms = ?, failures = 0, failing_since_ms = NULL,
           pause_until_ms = 0, last_fault = NULL WHERE webhook_id = ?`,
        settlement.now_ms,
        webhook_id,
      );
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
  const mine = await queries.all(
    `UPDATE webhook_messages SET lease = '', lease_ms = 0, reason = ?, state = ?, next_ms = ?, dead_ms = ?
     WHERE webhook_id = ? AND id = ? AND lease = ? RETURNING id`,
    reason,
    isDead ? 'dead' : 'waiting',
    retry_ms ?? 0,
    isDead ? now_ms : null,
    webhook_id,
    id,
    lease,
  );
  if (mine.length === 0) return unchanged;
  const [row] = await queries.all(
    `UPDATE webhooks SET failures = failures + 1, failing_since_ms = COALESCE(failing_since_ms, ?), pause_until_ms = ?,
       last_fault = ?, dead = dead + ? WHERE webhook_id = ? RETURNING failing_since_ms, disabled_reason`,
    now_ms,
    pause_until_ms,
    reason,
    isDead ? 1 : 0,
    webhook_id,
  );
  if (isDead) await limitDead(queries, webhook_id);
  const isLong = disable !== undefined && Number(row?.['failing_since_ms']) <= disable.failing_since_ms;
  if (!isLong || row?.['disabled_reason'] !== null) return unchanged;
  await queries.all(
    'UPDATE webhooks SET disabled_reason = ? WHERE webhook_id = ?',
    disable.reason,
    webhook_id,
  );
  return { disabled: true };
}
