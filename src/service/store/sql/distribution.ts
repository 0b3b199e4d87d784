/**
 * How Citus divides the tables over several servers: by kit (`service/README.md`). The rules that this needs are held by
 * `test/unit/service/store/distribution.test.ts`: `kit_id` in every key, and every statement about one kit names it.
 */
import type { Queries } from './database.ts';

/** Of one kit: distributed by `kit_id`, all of them colocated. */
export const kit_tables = [
  'kits',
  'kit_parts',
  'received',
  'received_blocks',
  'assets',
  'partner_fixes',
  'partner_sync',
  'rosters',
  'asset_status',
  'commands',
  'feeds',
  'tasks',
  'history_in',
  'history',
  'history_days',
  'history_changed',
  'history_holes',
  'history_erased',
] as const;

/** Of the service: they stay at the coordinator, where all replicas connect. Small, but for the queue of webhooks. */
export const service_tables = [
  'service',
  'api_keys',
  'key_uses',
  'answers',
  'sessions',
  'webhooks',
  'webhook_messages',
] as const;

/** Whether Citus has distributed the tables. On a plain PostgreSQL its catalog does not exist. */
export async function isDistributed(queries: Queries): Promise<boolean> {
  const [catalog] = await queries.all(
    `SELECT to_regclass('pg_catalog.pg_dist_partition') IS NOT NULL AS here`,
  );
  if (catalog?.['here'] !== true) return false;
  const rows = await queries.all(
    `SELECT 1 AS here FROM pg_dist_partition WHERE logicalrelid = to_regclass('kits') AND partmethod = 'h'`,
  );
  return rows.length > 0;
}
