/** The store of replicas: announces the changes that clients make to the other replicas. */
import type { Database } from './sql/database.ts';
import { type Announce, SqlStore } from './sql-store.ts';
import type { Change, PartnerAsset, PartnerFix, StoredTask, TaskOrder } from './store.ts';

export class SharedStore extends SqlStore {
  readonly #announce: (...changes: readonly Change[]) => Promise<void>;

  constructor(database: Database, announce: Announce) {
    super(database, announce);
    this.#announce = async (...changes) => announce(database, changes);
  }

  override async addPartner(partner: PartnerAsset) {
    const asset = await super.addPartner(partner);
    await this.#announce({ kind: 'asset', kit_id: partner.kit_id, asset_id: partner.asset_id });
    return asset;
  }

  override async removePartner(kit_id: string, asset_id: string) {
    const isGone = await super.removePartner(kit_id, asset_id);
    if (isGone) await this.#announce({ kind: 'asset_gone', kit_id, asset_id });
    return isGone;
  }

  override async pushFix(kit_id: string, asset_id: string, fix: PartnerFix, now_ms: number) {
    const message = await super.pushFix(kit_id, asset_id, fix, now_ms);
    await this.#announce({ kind: 'feed', kit_id, asset_id, message }, { kind: 'asset', kit_id, asset_id });
    return message;
  }

  override async addTask(order: TaskOrder) {
    return this.#announced(await super.addTask(order));
  }

  override async failTask(kit_id: string, task_id: string, reason: string, now_ms: number) {
    const task = await super.failTask(kit_id, task_id, reason, now_ms);
    return task && this.#announced(task);
  }

  override async failSilent(before_ms: number, reason: string, now_ms: number) {
    const tasks = await super.failSilent(before_ms, reason, now_ms);
    for (const task of tasks) await this.#announced(task);
    return tasks;
  }

  async #announced(task: StoredTask): Promise<StoredTask> {
    await this.#announce({ kind: 'task', kit_id: task.kit_id, task });
    return task;
  }
}
