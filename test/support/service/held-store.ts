/** A database that answers lists, snapshots and histories only when it is told to, and counts who asked. */
import { afterEach, beforeEach } from 'vitest';
import { channels } from '../../../src/contract/topics.ts';
import { openSqlite } from '../../../src/service/store/sql/sqlite.ts';
import { SqlStore } from '../../../src/service/store/sql-store.ts';
import { kit_id, samples } from '../contract-samples.ts';
import { type ServiceLab, startServiceLab } from './service-lab.ts';

export class HeldStore extends SqlStore {
  /** Readings that were begun. */
  begun = 0;
  /** Each lets one of them go on, the oldest first. */
  readonly waiting: (() => void)[] = [];
  #isHeld = true;

  constructor() {
    super(openSqlite(':memory:'));
  }

  override async assets(kit_id: string) {
    await this.#held();
    return super.assets(kit_id);
  }

  override async assetStates(kit_ids: readonly string[] | '*') {
    await this.#held();
    return super.assetStates(kit_ids);
  }

  override async historyLanded(kit_id: string) {
    await this.#held();
    return super.historyLanded(kit_id);
  }

  /** From now on it answers everything. */
  release(): void {
    this.#isHeld = false;
    for (const goOn of this.waiting.splice(0)) goOn();
  }

  async #held(): Promise<void> {
    this.begun += 1;
    if (this.#isHeld) await new Promise<void>((resolve) => this.waiting.push(resolve));
  }
}

export interface HeldService {
  lab: ServiceLab;
  store: HeldStore;
}

/** A service over such a database with one kit, new for each test of the file. `end` closes what the test has opened. */
export function heldServiceOfEachTest(end: () => void): HeldService {
  const scene = {} as HeldService;
  beforeEach(async () => {
    scene.store = new HeldStore();
    scene.lab = await startServiceLab(kit_id, { store: scene.store });
    await scene.lab.publish(channels.state, samples['kitState'] ?? {});
  });
  afterEach(async () => {
    scene.store.release();
    end();
    await scene.lab.stop();
  });
  return scene;
}
