/** The store on an SQL database, SQLite or PostgreSQL: puts the questions of `Store` into statements. */
import { feeds_max } from '../../contract/limits.ts';
import type { Json } from '../../contract/json.ts';
import type { PartnerChange } from '../../contract/partners.ts';
import type { Reception } from '../ingest/read-message.ts';
import { tasks_max } from './apply/apply-task.ts';
import { landFixes } from '../history/landing.ts';
import type { HistoryMessage } from '../history/message.ts';
import { importMessages } from '../history/transfer/store-messages.ts';
import { SqlWebhooks } from '../webhooks/sql-webhooks.ts';
import { lockKits } from './commit-rows.ts';
import { commitReceptions } from './commit.ts';
import { failPending, failSilent, readSilent } from './fail-tasks.ts';
import type { Database, Queries } from './sql/database.ts';
import { readAssetStates } from './read-asset-states.ts';
import { readKits } from './read-kits.ts';
import {
  editPartner,
  noteFixSent,
  noteRemoval,
  noteRevision,
  readPartners,
  takePartner,
} from './partner-sync.ts';
import { partnerAsset, putAsset, putFix } from './partners.ts';
import { readStored } from './received/read-received.ts';
import { asset_select, assetOf, commandsOf, feedOf, jsonOf, keyOf, taskOf, withoutParent } from './rows.ts';
import type {
  ApiKey,
  Change,
  Claim,
  Committed,
  LandedFix,
  PartnerAsset,
  PartnerEdit,
  PartnerState,
  PushedFix,
  RepeatableRequest,
  Store,
  StoredAsset,
  StoredFeed,
  StoredKit,
  StoredTask,
  TaskOrder,
  TaskQuery,
} from './store.ts';

/** Answers to repeated requests are kept for so long. */
const answers_kept_ms = 86_400_000;
/** Characters of the tasks of one answer: a kit may report 256 kB with each. */
const tasks_chars_max = 2 * 1024 * 1024;

export type Announce = (queries: Queries, changes: readonly Change[]) => Promise<void>;

export interface SqlStoreOptions {
  /** Called inside each transaction that stores what kits report. */
  readonly announce?: Announce;
  /** False: only the newest values are stored. */
  readonly keepsHistory?: boolean;
}

export class SqlStore extends SqlWebhooks implements Store {
  readonly #announce: Announce;
  readonly #keepsHistory: boolean;

  constructor(database: Database, options: SqlStoreOptions = {}) {
    super(database);
    this.#announce = options.announce ?? (async () => undefined);
    this.#keepsHistory = options.keepsHistory ?? true;
  }

  async commit(receptions: readonly Reception[], now_ms: number): Promise<Committed> {
    return this.database.transactionAhead(async (queries) => {
      const committed = await commitReceptions(queries, receptions, {
        now_ms,
        keepsHistory: this.#keepsHistory,
      });
      await this.#announce(queries, committed.changes);
      return committed;
    });
  }

  async importMessages(
    kit_id: string,
    messages: readonly HistoryMessage[],
    arrived_ms: number,
  ): Promise<void> {
    await this.database.transaction(async (queries) => {
      const { changes } = await importMessages(queries, { kit_id, messages, arrived_ms });
      await this.#announce(queries, changes);
    });
  }

  async kitIds(): Promise<readonly string[]> {
    const rows = await this.all('SELECT kit_id FROM kits ORDER BY kit_id');
    return rows.map((row) => String(row['kit_id']));
  }

  async kits(kit_ids: readonly string[] | '*'): Promise<readonly StoredKit[]> {
    return readKits(this.database, kit_ids);
  }

  async kit(kit_id: string): Promise<StoredKit | undefined> {
    return (await readKits(this.database, [kit_id]))[0];
  }

  async assetStates(kit_ids: readonly string[] | '*') {
    return readAssetStates(this.database, kit_ids);
  }

  async assets(kit_id: string): Promise<readonly StoredAsset[]> {
    const rows = await this.all(`${asset_select} WHERE assets.kit_id = ? AND gone = 0`, kit_id);
    const assets = rows.map(assetOf);
    const ids = new Set(assets.map(({ id }) => id));
    // An asset whose parent is gone is a root, until the parent comes back.
    return assets.map((asset) => (ids.has(asset.parent_id ?? asset.id) ? asset : withoutParent(asset)));
  }

  async asset(kit_id: string, asset_id: string): Promise<StoredAsset | undefined> {
    const [row] = await this.all(
      `${asset_select} WHERE assets.kit_id = ? AND assets.asset_id = ? AND gone = 0`,
      kit_id,
      asset_id,
    );
    if (!row) return undefined;
    const asset = assetOf(row);
    if (asset.parent_id === null) return asset;
    const [parent] = await this.all(
      'SELECT 1 AS here FROM assets WHERE kit_id = ? AND asset_id = ? AND gone = 0',
      kit_id,
      asset.parent_id,
    );
    return parent ? asset : withoutParent(asset);
  }

  async commands(kit_id: string, asset_id: string) {
    const [row] = await this.all(
      'SELECT data FROM commands WHERE kit_id = ? AND asset_id = ?',
      kit_id,
      asset_id,
    );
    return row ? commandsOf.parse(row['data']) : [];
  }

  async feeds(kit_id: string, asset_id: string): Promise<readonly StoredFeed[]> {
    const rows = await this.all(
      `SELECT 'gps' AS feed, time_ms, data FROM partner_fixes WHERE kit_id = ? AND asset_id = ?
       UNION ALL SELECT feed, time_ms, data FROM feeds WHERE kit_id = ? AND asset_id = ? AND NOT EXISTS (
         SELECT 1 FROM partner_fixes WHERE partner_fixes.kit_id = feeds.kit_id
           AND partner_fixes.asset_id = feeds.asset_id AND feeds.feed = 'gps')
       ORDER BY feed LIMIT ?`,
      kit_id,
      asset_id,
      kit_id,
      asset_id,
      feeds_max,
    );
    return rows.map(feedOf);
  }

  async addPartner(partner: PartnerAsset): Promise<StoredAsset> {
    const { kit_id, asset_id, created_ms, created_by } = partner;
    const asset = partnerAsset(partner);
    await this.database.transaction(async (queries) => {
      await putAsset(queries, kit_id, asset, created_ms);
      await noteRevision(queries, kit_id, asset_id, { revision: 1, created_by });
    });
    return asset;
  }

  async changePartner(kit_id: string, asset_id: string, change: PartnerEdit): Promise<boolean> {
    return this.database.transaction(async (queries) => editPartner(queries, kit_id, asset_id, change));
  }

  async removePartner(kit_id: string, asset_id: string): Promise<boolean> {
    return this.database.transaction(async (queries) => {
      const asset = await queries.all(
        'SELECT 1 AS here FROM assets WHERE kit_id = ? AND asset_id = ? AND partner = 1',
        kit_id,
        asset_id,
      );
      return asset.length > 0 && noteRemoval(queries, kit_id, asset_id, { isKnownToPeer: false });
    });
  }

  async partners(kit_id: string): Promise<readonly PartnerState[]> {
    return readPartners(this.database, kit_id);
  }

  async takePartner(kit_id: string, asset_id: string, change: PartnerChange, now_ms: number) {
    return this.database.transaction(async (queries) => {
      const taken = await takePartner(queries, { kit_id, asset_id, change, from: 'cloud', now_ms });
      if ('fault' in taken) throw new Error(taken.fault);
      return taken;
    });
  }

  async partnerFixSent(kit_id: string, asset_id: string, fix_ms: number): Promise<void> {
    await noteFixSent(this.database, kit_id, asset_id, fix_ms);
  }

  async pushFixes(kit_id: string, fixes: readonly PushedFix[], now_ms: number) {
    return this.database.transaction(async (queries) => {
      const landed: LandedFix[] = [];
      // An erasure locks the kit as well: it ends before, or sees these fixes.
      await lockKits(queries, [kit_id]);
      for (const fix of fixes) landed.push(await putFix(queries, kit_id, fix, now_ms));
      if (this.#keepsHistory) await landFixes(queries, { kit_id, fixes: landed, now_ms });
      return landed;
    });
  }

  async addTask(order: TaskOrder): Promise<StoredTask> {
    const { kit_id, task_id, asset_id, command_name, payload, created_ms, due_ms } = order;
    const [row] = await this.all(
      `INSERT INTO tasks (kit_id, task_id, asset_id, command_name, payload, status, revision, result, requested_by,
         requested_by_name, created_ms, updated_ms, due_ms)
       VALUES (?, ?, ?, ?, ?, 'pending', 0, '{}', ?, ?, ?, ?, ?) RETURNING *`,
      kit_id,
      task_id,
      asset_id,
      command_name,
      JSON.stringify(payload),
      order.requested_by,
      order.requested_by_name,
      created_ms,
      created_ms,
      due_ms,
    );
    await this.all(
      `DELETE FROM tasks WHERE kit_id = ? AND status IN ('completed', 'failed') AND task_id NOT IN
         (SELECT task_id FROM tasks WHERE kit_id = ? ORDER BY created_ms DESC LIMIT ?)`,
      kit_id,
      kit_id,
      tasks_max,
    );
    return taskOf(row ?? {});
  }

  async task(kit_id: string, task_id: string): Promise<StoredTask | undefined> {
    const [row] = await this.all('SELECT * FROM tasks WHERE kit_id = ? AND task_id = ?', kit_id, task_id);
    return row && taskOf(row);
  }

  async tasks(kit_id: string, { asset_id, status, after, limit }: TaskQuery): Promise<readonly StoredTask[]> {
    const rows = await this.all(
      `WITH wanted AS (
         SELECT * FROM tasks WHERE kit_id = ? ${asset_id ? 'AND asset_id = ?' : ''} ${status ? 'AND status = ?' : ''}
           ${after ? 'AND (created_ms < ? OR (created_ms = ? AND task_id > ?))' : ''}
         ORDER BY created_ms DESC, task_id LIMIT ?),
       sized AS (
         SELECT wanted.*, ROW_NUMBER() OVER by_age AS place,
           SUM(LENGTH(payload) + LENGTH(result) + LENGTH(COALESCE(progress, ''))) OVER by_age AS chars
         FROM wanted WINDOW by_age AS (ORDER BY created_ms DESC, task_id))
       SELECT * FROM sized WHERE place = 1 OR chars <= ? ORDER BY created_ms DESC, task_id`,
      kit_id,
      ...(asset_id ? [asset_id] : []),
      ...(status ? [status] : []),
      ...(after ? [after.created_ms, after.created_ms, after.task_id] : []),
      limit,
      tasks_chars_max,
    );
    return rows.map(taskOf);
  }

  async failTask(kit_id: string, task_id: string, reason: string, now_ms: number) {
    return this.database.transaction(async (queries) =>
      failPending(queries, { kit_id, task_id }, reason, now_ms),
    );
  }

  async failSilent(now_ms: number): Promise<readonly StoredTask[]> {
    const silent = await readSilent(this.database, now_ms);
    if (silent.length === 0) return [];
    return this.database.transaction(async (queries) => failSilent(queries, silent, now_ms));
  }

  async claim({ key_id, idempotency_key, request }: RepeatableRequest, now_ms: number): Promise<Claim> {
    await this.all('DELETE FROM answers WHERE created_ms <= ?', now_ms - answers_kept_ms);
    const [mine] = await this.all(
      `INSERT INTO answers (key_id, idempotency_key, request, created_ms) VALUES (?, ?, ?, ?)
       ON CONFLICT (key_id, idempotency_key) DO NOTHING RETURNING key_id`,
      key_id,
      idempotency_key,
      request,
      now_ms,
    );
    if (mine) return { kind: 'mine' };
    const [row] = await this.all(
      'SELECT request, answer FROM answers WHERE key_id = ? AND idempotency_key = ?',
      key_id,
      idempotency_key,
    );
    const answer = row?.['answer'] ?? null;
    return {
      kind: 'known',
      request: String(row?.['request']),
      answer: answer === null ? null : jsonOf.parse(answer),
    };
  }

  async answer({ key_id, idempotency_key }: RepeatableRequest, answer: Json): Promise<void> {
    await this.all(
      'UPDATE answers SET answer = ? WHERE key_id = ? AND idempotency_key = ?',
      JSON.stringify(answer),
      key_id,
      idempotency_key,
    );
  }

  async unclaim({ key_id, idempotency_key }: RepeatableRequest): Promise<void> {
    await this.all(
      'DELETE FROM answers WHERE key_id = ? AND idempotency_key = ? AND answer IS NULL',
      key_id,
      idempotency_key,
    );
  }

  async addSession(hash: string, key_id: string, expires_ms: number): Promise<void> {
    await this.all(
      'INSERT INTO sessions (hash, key_id, expires_ms) VALUES (?, ?, ?)',
      hash,
      key_id,
      expires_ms,
    );
  }

  async session(hash: string, now_ms: number): Promise<string | undefined> {
    const [row] = await this.all(
      'SELECT key_id FROM sessions WHERE hash = ? AND expires_ms > ?',
      hash,
      now_ms,
    );
    return row && String(row['key_id']);
  }

  async endSession(hash: string): Promise<void> {
    await this.all('DELETE FROM sessions WHERE hash = ? OR expires_ms < ?', hash, Date.now());
  }

  async keys(): Promise<readonly ApiKey[]> {
    const rows = await this.all(
      'SELECT api_keys.*, used_ms FROM api_keys LEFT JOIN key_uses ON key_uses.key_id = api_keys.key_id ORDER BY created_ms',
    );
    return rows.map(keyOf);
  }

  async addKey(key: ApiKey): Promise<void> {
    await this.all(
      `INSERT INTO api_keys (key_id, user_id, label, hash, scopes, kits, created_ms, expires_ms)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
      key.key_id,
      key.user_id,
      key.label,
      key.hash,
      JSON.stringify(key.scopes),
      JSON.stringify(key.kits),
      key.created_ms,
      key.expires_ms,
    );
  }

  async noteUses(uses: readonly (readonly [key_id: string, used_ms: number])[]): Promise<void> {
    for (const [key_id, used_ms] of uses) {
      await this.all(
        `INSERT INTO key_uses (key_id, used_ms) VALUES (?, ?)
         ON CONFLICT (key_id) DO UPDATE SET used_ms = excluded.used_ms WHERE excluded.used_ms > key_uses.used_ms`,
        key_id,
        used_ms,
      );
    }
  }

  async revokeKey(key_id: string): Promise<boolean> {
    await this.all('DELETE FROM key_uses WHERE key_id = ?', key_id);
    await this.all('DELETE FROM sessions WHERE key_id = ?', key_id);
    return (await this.all('DELETE FROM api_keys WHERE key_id = ? RETURNING key_id', key_id)).length > 0;
  }

  async acks(kit_id: string) {
    return readStored(this.database, kit_id);
  }

  async newestEpoch(kit_id: string): Promise<number> {
    const [row] = await this.all('SELECT MAX(epoch) AS newest FROM received WHERE kit_id = ?', kit_id);
    return Number(row?.['newest'] ?? 0);
  }

  async schemaFault(): Promise<string | undefined> {
    return this.database.schemaFault();
  }

  async close(): Promise<void> {
    await this.database.close();
  }
}
