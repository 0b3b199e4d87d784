/** The store of replicas: announces the changes that clients make to the other replicas. */
import { randomUUID } from 'node:crypto';
import type { PartnerChange } from '../../contract/partners.ts';
import type { Database } from './sql/database.ts';
import { fixChanges } from './partners.ts';
import { type Announce, SqlStore } from './sql-store.ts';
import type { Change, PartnerAsset, PartnerEdit, PushedFix, StoredTask, TaskOrder } from './store.ts';

/** Row of `service`: the replica that keeps the history in order, and until when by the clock of the server. */
const leader_name = 'history_leader';
const server_ms = 'CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT)';

export class SharedStore extends SqlStore {
  readonly #replica_id = randomUUID();
  readonly #announce: (...changes: readonly Change[]) => Promise<void>;

  constructor(
    database: Database,
    { announce, keepsHistory }: { readonly announce: Announce; readonly keepsHistory?: boolean },
  ) {
    super(database, { announce, ...(keepsHistory !== undefined && { keepsHistory }) });
    this.#announce = async (...changes) => announce(database, changes);
  }

  /** The lease is free when it has run out, or lasts longer than any does: the clock of the server was set back. */
  override async leadHistory(lease_ms: number): Promise<boolean> {
    const until_ms = `CAST(split_part(service.value, ' ', 2) AS BIGINT)`;
    const rows = await this.all(
      `INSERT INTO service (name, value) VALUES (?, CAST(? AS TEXT) || ' ' || CAST(${server_ms} + CAST(? AS BIGINT) AS TEXT))
       ON CONFLICT (name) DO UPDATE SET value = excluded.value
         WHERE split_part(service.value, ' ', 1) = CAST(? AS TEXT)
           OR ${until_ms} NOT BETWEEN ${server_ms} AND ${server_ms} + CAST(? AS BIGINT)
       RETURNING name`,
      leader_name,
      this.#replica_id,
      lease_ms,
      this.#replica_id,
      lease_ms,
    );
    return rows.length > 0;
  }

  override async addPartner(partner: PartnerAsset) {
    const asset = await super.addPartner(partner);
    await this.#announce({ kind: 'asset', kit_id: partner.kit_id, asset_id: partner.asset_id });
    return asset;
  }

  override async changePartner(kit_id: string, asset_id: string, change: PartnerEdit) {
    const isChanged = await super.changePartner(kit_id, asset_id, change);
    if (isChanged) await this.#announce({ kind: 'asset', kit_id, asset_id });
    return isChanged;
  }

  override async removePartner(kit_id: string, asset_id: string) {
    const isGone = await super.removePartner(kit_id, asset_id);
    if (isGone) await this.#announce({ kind: 'asset_gone', kit_id, asset_id });
    return isGone;
  }

  override async pushFixes(kit_id: string, fixes: readonly PushedFix[], now_ms: number) {
    const landed = await super.pushFixes(kit_id, fixes, now_ms);
    await this.#announce(...fixChanges(kit_id, landed));
    return landed;
  }

  override async takePartner(kit_id: string, asset_id: string, change: PartnerChange, now_ms: number) {
    const changes = await super.takePartner(kit_id, asset_id, change, now_ms);
    await this.#announce(...changes);
    return changes;
  }

  override async addTask(order: TaskOrder) {
    return this.#announced(await super.addTask(order));
  }

  override async failTask(kit_id: string, task_id: string, reason: string, now_ms: number) {
    const task = await super.failTask(kit_id, task_id, reason, now_ms);
    return task && this.#announced(task);
  }

  override async failSilent(now_ms: number) {
    const tasks = await super.failSilent(now_ms);
    for (const task of tasks) await this.#announced(task);
    return tasks;
  }

  async #announced(task: StoredTask): Promise<StoredTask> {
    await this.#announce({ kind: 'task', kit_id: task.kit_id, task });
    return task;
  }
}
