/** Deletes alarms that wait for webhooks, or were given up, and are erased. */
import type { Erasure } from '../history/history-store.ts';
import type { Queries } from '../store/sql/database.ts';
import { countPurged } from './enqueue.ts';

export async function eraseMessages(
  queries: Queries,
  { kit_id, asset_id, before_ms }: Erasure,
): Promise<void> {
  const rows = await queries.all(
    `DELETE FROM webhook_messages WHERE type = 'alarm' AND kit_id = ? AND time_ms < ? ${asset_id === undefined ? '' : 'AND asset_id = ?'}
     RETURNING webhook_id, state`,
    kit_id,
    before_ms,
    ...(asset_id === undefined ? [] : [asset_id]),
  );
  const byWebhook = Map.groupBy(rows, (row) => String(row['webhook_id']));
  for (const webhook_id of [...byWebhook.keys()].sort()) {
    const gone = byWebhook.get(webhook_id) ?? [];
    const dead = gone.filter(({ state }) => state === 'dead').length;
    await countPurged(queries, webhook_id, { dead, waiting: gone.length - dead });
  }
}
