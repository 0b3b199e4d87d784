import Database from 'better-sqlite3';
import { describe, expect, test } from 'vitest';
import { StorageUnavailable } from '../../../src/platform/errors.ts';
import type { Row } from '../../../src/kit/outbox/row.ts';
import { openStore } from '../../../src/kit/outbox/store/store.ts';
import { startStore } from '../../../src/kit/outbox/live/store-client.ts';
import { diskMissing, withExt4 } from '../../support/disk/disks.ts';
import { rowsOf, storeOptions, work } from '../../support/disk/store-lab.ts';

const alarms = (epoch: number, from: number, to: number): Row[] => rowsOf(epoch, from, to, { lane: 'alarm' });

describe.skipIf(diskMissing())('a disk that becomes read-only', () => {
  test('is rejected with a reason, and used again after a remount without a restart', async () => {
    await withExt4(64, async (dir, disk) => {
      const { client, opened } = await startStore(storeOptions(dir));
      await client.commit(work({ rows: alarms(opened.epoch, 1, 3) }));
      disk.breakDown();
      for (let n = 0; n < 3; n += 1) {
        await expect(client.commit(work({ rows: alarms(opened.epoch, 4, 5) }))).rejects.toThrow(
          StorageUnavailable,
        );
      }
      disk.remount();
      const done = await client.commit(work({ rows: alarms(opened.epoch, 4, 5) }));
      expect(done).toMatchObject({ depth: { alarm: { rows: 5 } }, health: { state: 'ok' } });
      const { rows } = await client.take({ lane: 'alarm', form: 'rows', rows_max: 9, bytes_max: 1e6 });
      expect(rows.map(({ id }) => id)).toEqual(alarms(opened.epoch, 1, 5).map(({ id }) => id));
      await client.close();
    });
  });

  test('what was committed before a power cut is there after it, and the epoch rises', async () => {
    await withExt4(64, (dir, disk) => {
      const { store, opened } = openStore(storeOptions(dir));
      for (let n = 0; n < 20; n += 1) store.commit(work({ rows: alarms(opened.epoch, n * 10, n * 10 + 9) }));
      disk.shutdown();
      expect(() => store.commit(work({ rows: alarms(opened.epoch, 900, 901) }))).toThrow(StorageUnavailable);
      disk.remount();
      const again = openStore(storeOptions(dir));
      expect(again.opened).toMatchObject({ epoch: opened.epoch + 1, depth: { alarm: { rows: 200 } } });
      again.store.close();
    });
  });

  test('makes a store that reports it when it is read-only from the start, and no other store uses its numbers', async () => {
    await withExt4(64, (dir, disk) => {
      openStore(storeOptions(dir)).store.close();
      // A kit that was started very often.
      const db = new Database(storeOptions(dir).file);
      db.exec("UPDATE meta SET value = 500000 WHERE key = 'epoch'");
      db.close();
      const first = openStore(storeOptions(dir));
      first.store.commit(work({ rows: alarms(first.opened.epoch, 1, 3) }));
      first.store.close();
      disk.breakDown();
      const { store, opened } = openStore(storeOptions(dir));
      expect(opened.health.state).toBe('failing');
      expect(opened.epoch).toBeGreaterThan(first.opened.epoch);
      disk.remount();
      const done = store.commit(work({ rows: alarms(opened.epoch, 1, 2) }));
      expect(done.depth.alarm.rows).toBe(5);
      store.close();
      const last = openStore(storeOptions(dir));
      expect(last.opened.epoch).toBe(opened.epoch + 1);
      last.store.close();
    });
  });
});
