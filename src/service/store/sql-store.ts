/** The store on an SQL database, SQLite or PostgreSQL: puts the questions of `Store` into statements. */
import { feeds_max } from '../../contract/limits.ts';
import type { Json } from '../../contract/json.ts';
import type { Reception } from '../ingest/read-message.ts';
import { tasks_max } from './apply/apply-task.ts';
import { commitReceptions } from './commit.ts';
import type { Database, Queries, Row, SqlValue } from './sql/database.ts';
import { readKits } from './read-kits.ts';
import { readStored } from './received/read-received.ts';
import { assetOf, commandsOf, feedOf, jsonOf, keyOf, taskOf } from './rows.ts';
import type {
  ApiKey,
  Change,
  Claim,
  Committed,
  PartnerAsset,
  PartnerFix,
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

const asset_select = `SELECT assets.data, asset_status.status, asset_status.reason,
  (SELECT feeds.time_ms FROM feeds WHERE feeds.kit_id = assets.kit_id AND feeds.asset_id = assets.asset_id
     AND (feeds.epoch, feeds.seq) >= (assets.epoch, assets.seq)
   ORDER BY feeds.epoch DESC, feeds.seq DESC LIMIT 1) AS fed_ms FROM assets
  LEFT JOIN asset_status ON asset_status.kit_id = assets.kit_id AND asset_status.asset_id = assets.asset_id`;

export type Announce = (queries: Queries, changes: readonly Change[]) => Promise<void>;

export class SqlStore implements Store {
  readonly #database: Database;
  readonly #announce: Announce;

  /** `announce` is called inside each transaction that stores what kits say. */
  constructor(database: Database, announce: Announce = async () => undefined) {
    this.#database = database;
    this.#announce = announce;
  }

  async commit(receptions: readonly Reception[], now_ms: number): Promise<Committed> {
    return this.#database.transaction(async (queries) => {
      const committed = await commitReceptions(queries, receptions, now_ms);
      await this.#announce(queries, committed.changes);
      return committed;
    });
  }

  async kits(kit_ids: readonly string[] | '*'): Promise<readonly StoredKit[]> {
    return readKits(this.#database, kit_ids);
  }

  async kit(kit_id: string): Promise<StoredKit | undefined> {
    return (await readKits(this.#database, [kit_id]))[0];
  }

  async assets(kit_id: string): Promise<readonly StoredAsset[]> {
    return (await this.#all(`${asset_select} WHERE assets.kit_id = ? AND gone = 0`, kit_id)).map(assetOf);
  }

  async asset(kit_id: string, asset_id: string): Promise<StoredAsset | undefined> {
    const [row] = await this.#all(
      `${asset_select} WHERE assets.kit_id = ? AND assets.asset_id = ? AND gone = 0`,
      kit_id,
      asset_id,
    );
    return row && assetOf(row);
  }

  async commands(kit_id: string, asset_id: string) {
    const [row] = await this.#all(
      'SELECT data FROM commands WHERE kit_id = ? AND asset_id = ?',
      kit_id,
      asset_id,
    );
    return row ? commandsOf.parse(row['data']) : [];
  }

  async feeds(kit_id: string, asset_id: string): Promise<readonly StoredFeed[]> {
    const rows = await this.#all(
      'SELECT feed, time_ms, data FROM feeds WHERE kit_id = ? AND asset_id = ? ORDER BY feed LIMIT ?',
      kit_id,
      asset_id,
      feeds_max,
    );
    return rows.map(feedOf);
  }

  async addPartner(partner: PartnerAsset): Promise<StoredAsset> {
    const { kit_id, asset_id, created_ms } = partner;
    const asset = partnerAsset(partner);
    await this.#all(
      `INSERT INTO assets (kit_id, asset_id, data, partner, time_ms, epoch, seq, unsynced) VALUES (?, ?, ?, 1, ?, 0, 0, 0)`,
      kit_id,
      asset_id,
      JSON.stringify(asset),
      created_ms,
    );
    return asset;
  }

  async removePartner(kit_id: string, asset_id: string): Promise<boolean> {
    return this.#database.transaction(async (queries) => {
      const gone = await queries.all(
        'DELETE FROM assets WHERE kit_id = ? AND asset_id = ? AND partner = 1 RETURNING asset_id',
        kit_id,
        asset_id,
      );
      await queries.all('DELETE FROM feeds WHERE kit_id = ? AND asset_id = ?', kit_id, asset_id);
      return gone.length > 0;
    });
  }

  async pushFix(kit_id: string, asset_id: string, fix: PartnerFix, now_ms: number): Promise<StoredFeed> {
    const timestamp = new Date(now_ms).toISOString();
    const message = { feed: 'gps', time_ms: now_ms, data: { ...fix, source: 'api', timestamp } };
    await this.#database.transaction(async (queries) => {
      await queries.all(
        `INSERT INTO feeds (kit_id, asset_id, feed, data, time_ms, epoch, seq, unsynced) VALUES (?, ?, 'gps', ?, ?, 0, 0, 0)
         ON CONFLICT (kit_id, asset_id, feed) DO UPDATE SET data = excluded.data, time_ms = excluded.time_ms`,
        kit_id,
        asset_id,
        JSON.stringify(message.data),
        now_ms,
      );
      await moveAsset(queries, { kit_id, asset_id, fix, last_seen_at: timestamp });
    });
    return message;
  }

  async addTask({ kit_id, task_id, asset_id, command_name, payload, requested_by, created_ms }: TaskOrder) {
    const [row] = await this.#all(
      `INSERT INTO tasks (kit_id, task_id, asset_id, command_name, payload, status, revision, result, requested_by,
         created_ms, updated_ms)
       VALUES (?, ?, ?, ?, ?, 'pending', 0, '{}', ?, ?, ?) RETURNING *`,
      kit_id,
      task_id,
      asset_id,
      command_name,
      JSON.stringify(payload),
      requested_by,
      created_ms,
      created_ms,
    );
    await this.#all(
      `DELETE FROM tasks WHERE kit_id = ? AND status IN ('completed', 'failed') AND task_id NOT IN
         (SELECT task_id FROM tasks WHERE kit_id = ? ORDER BY created_ms DESC LIMIT ?)`,
      kit_id,
      kit_id,
      tasks_max,
    );
    return taskOf(row ?? {});
  }

  async task(kit_id: string, task_id: string): Promise<StoredTask | undefined> {
    const [row] = await this.#all('SELECT * FROM tasks WHERE kit_id = ? AND task_id = ?', kit_id, task_id);
    return row && taskOf(row);
  }

  async tasks(kit_id: string, { asset_id, status, limit }: TaskQuery): Promise<readonly StoredTask[]> {
    const rows = await this.#all(
      `SELECT * FROM tasks WHERE kit_id = ? ${asset_id ? 'AND asset_id = ?' : ''} ${status ? 'AND status = ?' : ''}
       ORDER BY created_ms DESC, task_id LIMIT ?`,
      kit_id,
      ...(asset_id ? [asset_id] : []),
      ...(status ? [status] : []),
      limit,
    );
    return rows.map(taskOf);
  }

  async failTask(kit_id: string, task_id: string, reason: string, now_ms: number) {
    const [row] = await this.#all(
      `UPDATE tasks SET status = 'failed', result = ?, updated_ms = ?
       WHERE kit_id = ? AND task_id = ? AND status = 'pending' RETURNING *`,
      JSON.stringify({ error: reason }),
      now_ms,
      kit_id,
      task_id,
    );
    return row && taskOf(row);
  }

  async failSilent(before_ms: number, reason: string, now_ms: number): Promise<readonly StoredTask[]> {
    const rows = await this.#all(
      `UPDATE tasks SET status = 'failed', result = ?, updated_ms = ?
       WHERE status = 'pending' AND revision = 0 AND created_ms < ? RETURNING *`,
      JSON.stringify({ error: reason }),
      now_ms,
      before_ms,
    );
    return rows.map(taskOf);
  }

  async claim({ key_id, idempotency_key, request }: RepeatableRequest, now_ms: number): Promise<Claim> {
    await this.#all('DELETE FROM answers WHERE created_ms <= ?', now_ms - answers_kept_ms);
    const [mine] = await this.#all(
      `INSERT INTO answers (key_id, idempotency_key, request, created_ms) VALUES (?, ?, ?, ?)
       ON CONFLICT (key_id, idempotency_key) DO NOTHING RETURNING key_id`,
      key_id,
      idempotency_key,
      request,
      now_ms,
    );
    if (mine) return { kind: 'mine' };
    const [row] = await this.#all(
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
    await this.#all(
      'UPDATE answers SET answer = ? WHERE key_id = ? AND idempotency_key = ?',
      JSON.stringify(answer),
      key_id,
      idempotency_key,
    );
  }

  async unclaim({ key_id, idempotency_key }: RepeatableRequest): Promise<void> {
    await this.#all(
      'DELETE FROM answers WHERE key_id = ? AND idempotency_key = ? AND answer IS NULL',
      key_id,
      idempotency_key,
    );
  }

  async addSession(hash: string, key_id: string, expires_ms: number): Promise<void> {
    await this.#all(
      'INSERT INTO sessions (hash, key_id, expires_ms) VALUES (?, ?, ?)',
      hash,
      key_id,
      expires_ms,
    );
  }

  async session(hash: string, now_ms: number): Promise<string | undefined> {
    const [row] = await this.#all(
      'SELECT key_id FROM sessions WHERE hash = ? AND expires_ms > ?',
      hash,
      now_ms,
    );
    return row && String(row['key_id']);
  }

  async endSession(hash: string): Promise<void> {
    await this.#all('DELETE FROM sessions WHERE hash = ? OR expires_ms < ?', hash, Date.now());
  }

  async keys(): Promise<readonly ApiKey[]> {
    const rows = await this.#all(
      'SELECT api_keys.*, used_ms FROM api_keys LEFT JOIN key_uses ON key_uses.key_id = api_keys.key_id ORDER BY created_ms',
    );
    return rows.map(keyOf);
  }

  async addKey(key: ApiKey): Promise<void> {
    await this.#all(
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
      await this.#all(
        `INSERT INTO key_uses (key_id, used_ms) VALUES (?, ?)
         ON CONFLICT (key_id) DO UPDATE SET used_ms = excluded.used_ms WHERE excluded.used_ms > key_uses.used_ms`,
        key_id,
        used_ms,
      );
    }
  }

  async revokeKey(key_id: string): Promise<boolean> {
    await this.#all('DELETE FROM key_uses WHERE key_id = ?', key_id);
    await this.#all('DELETE FROM sessions WHERE key_id = ?', key_id);
    return (await this.#all('DELETE FROM api_keys WHERE key_id = ? RETURNING key_id', key_id)).length > 0;
  }

  async acks(kit_id: string) {
    return readStored(this.#database, kit_id);
  }

  async newestEpoch(kit_id: string): Promise<number> {
    const [row] = await this.#all('SELECT MAX(epoch) AS newest FROM received WHERE kit_id = ?', kit_id);
    return Number(row?.['newest'] ?? 0);
  }

  async close(): Promise<void> {
    await this.#database.close();
  }

  async #all(sql: string, ...values: readonly SqlValue[]): Promise<readonly Row[]> {
    return this.#database.all(sql, ...values);
  }
}

function partnerAsset(partner: PartnerAsset): StoredAsset {
  const { asset_id, asset_key, name, type, vendor, model, metadata, parent_id, created_ms } = partner;
  return {
    id: asset_id,
    asset_key,
    name,
    type,
    vendor,
    model,
    metadata,
    parent_id,
    firmware: null,
    protocol: 'partner',
    status: 'online',
    status_reason: null,
    last_seen_at: new Date(created_ms).toISOString(),
    lat: null,
    lon: null,
    alt_m: null,
    whep_url: null,
    feeds: ['gps'],
  };
}

interface Move {
  readonly kit_id: string;
  readonly asset_id: string;
  readonly fix: PartnerFix;
  readonly last_seen_at: string;
}

/** Moves an asset; a fix without an altitude keeps the known one. */
async function moveAsset(queries: Queries, { kit_id, asset_id, fix, last_seen_at }: Move): Promise<void> {
  const [row] = await queries.all(
    'SELECT data FROM assets WHERE kit_id = ? AND asset_id = ?',
    kit_id,
    asset_id,
  );
  if (!row) return;
  const asset = assetOf(row);
  const { lat, lon } = fix;
  const moved = { ...asset, lat, lon, alt_m: fix.alt_m ?? asset.alt_m, last_seen_at };
  await queries.all(
    'UPDATE assets SET data = ? WHERE kit_id = ? AND asset_id = ?',
    JSON.stringify(moved),
    kit_id,
    asset_id,
  );
}
