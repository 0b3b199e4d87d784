/** The tables of the service. Stamps order values: see `service/store/apply/newest.ts`. */

import { lasting_webhooks, webhook_tables } from '../../webhooks/tables.ts';
import { history_tables } from './history-tables.ts';

/** Rises with each change of the tables. A change first only adds, so that the version before still writes beside this one (`schema.ts`). */
export const schema_version = 2;
/** The oldest version whose writing this one understands. A later version raises it and takes away what only older ones need. */
export const writers_from = 2;

/**
 * Columns that later versions added to existing tables. An older version ignores them, and those added so far left the version at 2: the
 * releases that have no `writers_from` refuse to start on any other.
 */
export const added_columns: readonly {
  readonly table: string;
  readonly column: string;
  readonly type: string;
}[] = [
  { table: 'kits', column: 'vouched_ms', type: 'BIGINT' },
  // When a kit was last present whose silence was announced; null: it is not silent.
  { table: 'kits', column: 'silent_ms', type: 'BIGINT' },
  // What was refused and dropped lately, as JSON (`losses.ts`); null: nothing.
  { table: 'kits', column: 'losses', type: 'TEXT' },
  // Messages in `history_in`, and since when there are some.
  { table: 'kits', column: 'landed', type: 'BIGINT NOT NULL DEFAULT 0' },
  { table: 'kits', column: 'landed_ms', type: 'BIGINT NOT NULL DEFAULT 0' },
  { table: 'tasks', column: 'due_ms', type: 'BIGINT' },
  { table: 'tasks', column: 'requested_by_name', type: 'TEXT' },
  // What the kit reported as dropped of the epoch; null: an earlier version has not kept it apart.
  { table: 'received', column: 'dropped', type: 'BIGINT' },
];

const stamp = 'time_ms BIGINT NOT NULL, epoch BIGINT NOT NULL, seq BIGINT NOT NULL, unsynced BIGINT NOT NULL';

/** Tables that must outlive the process where the kit sends the rest again at every start. */
export const lasting_tables: ReadonlySet<string> = new Set([
  'service',
  'assets',
  'partner_fixes',
  'partner_sync',
  'commands',
  'tasks',
  'tasks_by_age',
  'tasks_due',
  'api_keys',
  'key_uses',
  'answers',
  'sessions',
  ...lasting_webhooks,
]);

/** Tables that an erasure deletes from, or whose former rows may hold what it covers. */
export const erasable_tables = [
  'history_in',
  'history',
  'history_days',
  'feeds',
  'partner_fixes',
  'kit_parts',
  'tasks',
  'webhook_messages',
] as const;

/** Columns of these tables that hold what kits reported. PostgreSQL keeps examples of values in its statistics, but not of these. */
export const content_columns: readonly (readonly [
  table: (typeof erasable_tables)[number] | 'kits',
  column: string,
])[] = [
  ['history_in', 'body'],
  ['history', 'body'],
  ['history_days', 'body'],
  ['kits', 'losses'],
  ['feeds', 'data'],
  ['partner_fixes', 'data'],
  ['kit_parts', 'data'],
  ['tasks', 'payload'],
  ['tasks', 'result'],
  ['tasks', 'progress'],
];

/**
 * Tables whose rows nearly every commit replaces. Their pages keep room in PostgreSQL, so that the new version of a row stands in the
 * page of the old one and no index changes: half of the updates of `kits` and four of five of `received_blocks` changed them.
 */
export const updated_tables = ['kits', 'kit_parts', 'feeds', 'received_blocks'] as const;

export const tables: readonly string[] = [
  `CREATE TABLE IF NOT EXISTS service (name TEXT PRIMARY KEY, value TEXT NOT NULL)`,
  `CREATE TABLE IF NOT EXISTS kits (
     kit_id TEXT PRIMARY KEY, name TEXT, state TEXT, state_epoch BIGINT NOT NULL DEFAULT 0, state_seq BIGINT NOT NULL DEFAULT 0,
     heard_ms BIGINT, since_ms BIGINT, received BIGINT NOT NULL DEFAULT 0, duplicates BIGINT NOT NULL DEFAULT 0,
     dropped BIGINT NOT NULL DEFAULT 0, superseded BIGINT NOT NULL DEFAULT 0, refused BIGINT NOT NULL DEFAULT 0)`,
  `CREATE TABLE IF NOT EXISTS kit_parts (
     kit_id TEXT NOT NULL, part TEXT NOT NULL, data TEXT NOT NULL, ${stamp}, PRIMARY KEY (kit_id, part))`,
  `CREATE TABLE IF NOT EXISTS received (
     kit_id TEXT NOT NULL, epoch BIGINT NOT NULL, ranges TEXT NOT NULL, PRIMARY KEY (kit_id, epoch))`,
  `CREATE TABLE IF NOT EXISTS received_blocks (
     kit_id TEXT NOT NULL, epoch BIGINT NOT NULL, block BIGINT NOT NULL, seen TEXT NOT NULL, numbers BIGINT NOT NULL,
     lowest BIGINT NOT NULL, highest BIGINT NOT NULL, touched_ms BIGINT NOT NULL, PRIMARY KEY (kit_id, epoch, block))`,
  `CREATE TABLE IF NOT EXISTS assets (
     kit_id TEXT NOT NULL, asset_id TEXT NOT NULL, data TEXT NOT NULL, gone BIGINT NOT NULL DEFAULT 0,
     partner BIGINT NOT NULL DEFAULT 0, ${stamp}, PRIMARY KEY (kit_id, asset_id))`,
  `CREATE TABLE IF NOT EXISTS partner_fixes (
     kit_id TEXT NOT NULL, asset_id TEXT NOT NULL, data TEXT NOT NULL, alt_m DOUBLE PRECISION, time_ms BIGINT NOT NULL,
     PRIMARY KEY (kit_id, asset_id))`,
  `CREATE TABLE IF NOT EXISTS partner_sync (
     kit_id TEXT NOT NULL, asset_id TEXT NOT NULL, revision BIGINT NOT NULL, gone BIGINT NOT NULL, peer_revision BIGINT,
     fix_sent_ms BIGINT NOT NULL, created_by TEXT, epoch BIGINT NOT NULL DEFAULT 0, seq BIGINT NOT NULL DEFAULT 0,
     PRIMARY KEY (kit_id, asset_id))`,
  `CREATE TABLE IF NOT EXISTS rosters (kit_id TEXT PRIMARY KEY, assets TEXT NOT NULL, ${stamp})`,
  `CREATE TABLE IF NOT EXISTS asset_status (
     kit_id TEXT NOT NULL, asset_id TEXT NOT NULL, status TEXT NOT NULL, reason TEXT, ${stamp},
     PRIMARY KEY (kit_id, asset_id))`,
  `CREATE TABLE IF NOT EXISTS commands (
     kit_id TEXT NOT NULL, asset_id TEXT NOT NULL, data TEXT NOT NULL, ${stamp}, PRIMARY KEY (kit_id, asset_id))`,
  `CREATE TABLE IF NOT EXISTS feeds (
     kit_id TEXT NOT NULL, asset_id TEXT NOT NULL, feed TEXT NOT NULL, data TEXT NOT NULL, ${stamp},
     PRIMARY KEY (kit_id, asset_id, feed))`,
  `CREATE TABLE IF NOT EXISTS tasks (
     kit_id TEXT NOT NULL, task_id TEXT NOT NULL, asset_id TEXT NOT NULL, command_name TEXT NOT NULL, payload TEXT NOT NULL,
     status TEXT NOT NULL, revision BIGINT NOT NULL, result TEXT NOT NULL, progress TEXT, requested_by TEXT NOT NULL,
     created_ms BIGINT NOT NULL, updated_ms BIGINT NOT NULL, PRIMARY KEY (kit_id, task_id))`,
  `CREATE INDEX IF NOT EXISTS tasks_by_age ON tasks (kit_id, created_ms)`,
  `CREATE TABLE IF NOT EXISTS api_keys (
     key_id TEXT PRIMARY KEY, user_id TEXT NOT NULL, label TEXT NOT NULL, hash TEXT NOT NULL, scopes TEXT NOT NULL,
     kits TEXT NOT NULL, created_ms BIGINT NOT NULL, expires_ms BIGINT)`,
  `CREATE TABLE IF NOT EXISTS key_uses (key_id TEXT PRIMARY KEY, used_ms BIGINT NOT NULL)`,
  `CREATE TABLE IF NOT EXISTS answers (
     key_id TEXT NOT NULL, idempotency_key TEXT NOT NULL, request TEXT NOT NULL, answer TEXT, created_ms BIGINT NOT NULL,
     PRIMARY KEY (key_id, idempotency_key))`,
  `CREATE TABLE IF NOT EXISTS sessions (
     hash TEXT PRIMARY KEY, key_id TEXT NOT NULL, expires_ms BIGINT NOT NULL)`,
  ...history_tables,
  ...webhook_tables,
];

/** Statements for added columns, after these exist: tasks of earlier versions have fifteen minutes. */
export const after_columns: readonly string[] = [
  `CREATE INDEX IF NOT EXISTS tasks_due ON tasks (due_ms) WHERE status = 'pending' AND revision = 0`,
  `UPDATE tasks SET due_ms = created_ms + 900000 WHERE status = 'pending' AND due_ms IS NULL`,
];
