/** The tables of webhooks. The length of the queue is derived: accepted - delivered - dead - purged. */

export const webhook_tables: readonly string[] = [
  `CREATE TABLE IF NOT EXISTS webhooks (
     webhook_id TEXT PRIMARY KEY, label TEXT NOT NULL, url TEXT NOT NULL, types TEXT NOT NULL, kits TEXT NOT NULL,
     key_id TEXT NOT NULL, secrets TEXT NOT NULL, created_ms BIGINT NOT NULL, disabled_reason TEXT,
     failing_since_ms BIGINT, failures BIGINT NOT NULL DEFAULT 0, pause_until_ms BIGINT NOT NULL DEFAULT 0, last_fault TEXT,
     delivered_ms BIGINT, accepted BIGINT NOT NULL DEFAULT 0, delivered BIGINT NOT NULL DEFAULT 0,
     dead BIGINT NOT NULL DEFAULT 0, purged BIGINT NOT NULL DEFAULT 0, missed BIGINT NOT NULL DEFAULT 0)`,
  // `state`: waiting or dead. `lease` is empty while no process delivers it.
  `CREATE TABLE IF NOT EXISTS webhook_messages (
     webhook_id TEXT NOT NULL, id TEXT NOT NULL, type TEXT NOT NULL, kit_id TEXT NOT NULL, asset_id TEXT,
     time_ms BIGINT NOT NULL, body TEXT NOT NULL, state TEXT NOT NULL, queued_ms BIGINT NOT NULL,
     attempts BIGINT NOT NULL DEFAULT 0, next_ms BIGINT NOT NULL, lease TEXT NOT NULL DEFAULT '',
     lease_ms BIGINT NOT NULL DEFAULT 0, dead_ms BIGINT, reason TEXT, PRIMARY KEY (webhook_id, id))`,
  `CREATE INDEX IF NOT EXISTS webhook_messages_due ON webhook_messages (webhook_id, state, next_ms)`,
];

/** Tables and indexes, all of which outlive the process. */
export const lasting_webhooks = ['webhooks', 'webhook_messages', 'webhook_messages_due'] as const;
