/** A database that answers lists, snapshots and histories only when it is told to, and counts who asked. */
import { afterEach, beforeEach } from 'vitest';
import { channels } from '../../../src/contract/topics.ts';
import { openSqlite } from '../../../src/cloud/sql/sqlite.ts';
import { sqlStore, type Store } from '../../../src/cloud/store/sql-store.ts';
import { kit_id, samples } from '../contract-samples.ts';
import { type ServiceLab, startServiceLab } from './service-lab.ts';

export interface HeldStore extends Store {
  /** Readings that were begun. */
  begun: number;
  /** Each lets one of them go on, the oldest first. */
  readonly waiting: (() => void)[];
  /** From now on it answers everything. */
  readonly release: () => void;
}

function heldStore(): HeldStore {
  const store = sqlStore(openSqlite(':memory:'));
  let isHeld = true;
  const waiting: (() => void)[] = [];
  const wait = async (): Promise<void> => {
    held.begun += 1;
    if (isHeld) await new Promise<void>((resolve) => waiting.push(resolve));
  };
  const held: HeldStore = {
    ...store,
    begun: 0,
    waiting,
    async assets(kit_id) {
      await wait();
      return store.assets(kit_id);
    },
    async assetStates(kit_ids) {
      await wait();
      return store.assetStates(kit_ids);
    },
    async historyLanded(kit_id) {
      await wait();
      return store.historyLanded(kit_id);
    },
    release() {
      isHeld = false;
      for (const goOn of waiting.splice(0)) goOn();
    },
  };
  return held;
}

export interface HeldService {
  lab: ServiceLab;
  store: HeldStore;
}

/** A service over such a database with one kit, new for each test of the file. `end` closes what the test has opened. */
export function heldServiceOfEachTest(end: () => void): HeldService {
  const scene = {} as HeldService;
  beforeEach(async () => {
    scene.store = heldStore();
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
