/**
 * How the tables would be divided by a database that distributes them by kit, such as Citus, on which commits of several kits do not
 * run yet (`service/README.md`). The rules that this needs are held by
 * `test/unit/service/store/distribution.test.ts`: `kit_id` in every key, and every statement about one kit names it.
 */

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
