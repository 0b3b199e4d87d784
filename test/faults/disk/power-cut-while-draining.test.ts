/** What was delivered is removed without waiting for the disk each time; a power cut may undo that, and nothing else. */
import { describe, expect, test } from 'vitest';
import { openStore, type Store } from '../../../src/kit/outbox/store/store.ts';
import { diskMissing, withExt4 } from '../../support/disk/disks.ts';
import { countRows, rowsOf, storeOptions, work } from '../../support/disk/store-lab.ts';

/** Hands out and delivers batches of ten, each in a commit of its own. */
function deliver(store: Store, batches: number): void {
  for (let n = 0; n < batches; n += 1) {
    const { batch } = store.take({ lane: 'feed', form: 'batch', rows_max: 10, bytes_max: 1e6 });
    store.commit(work({ delivered_batches: batch ? [batch.token] : [] }));
  }
}

describe.skipIf(diskMissing())('a power cut while the buffer is drained', () => {
  test('undoes no removal that was followed by a message on disk', async () => {
    await withExt4(64, (dir, disk) => {
      const { store, opened } = openStore(storeOptions(dir));
      store.commit(work({ rows: rowsOf(opened.epoch, 1, 200) }));
      deliver(store, 8);
      store.commit(work({ rows: rowsOf(opened.epoch, 201, 210) }));
      disk.shutdown();
      expect(() => store.close()).not.toThrow();
      disk.remount();
      const again = openStore(storeOptions(dir));
      expect(again.opened.depth.feed.rows).toBe(130);
      expect(countRows(storeOptions(dir).file)).toEqual(again.opened.depth);
      again.store.close();
    });
  });

  test('brings back what was delivered last, whole commits of it, and counts it right', async () => {
    await withExt4(64, (dir, disk) => {
      const { store, opened } = openStore(storeOptions(dir));
      store.commit(work({ rows: rowsOf(opened.epoch, 1, 200) }));
      deliver(store, 12);
      disk.shutdown();
      expect(() => store.close()).not.toThrow();
      disk.remount();
      const again = openStore(storeOptions(dir));
      const { rows } = again.opened.depth.feed;
      expect(rows).toBeGreaterThanOrEqual(80);
      expect(rows).toBeLessThanOrEqual(200);
      expect(rows % 10).toBe(0);
      expect(countRows(storeOptions(dir).file)).toEqual(again.opened.depth);
      const left = again.store.take({ lane: 'feed', form: 'rows', rows_max: 999, bytes_max: 1e9 }).rows;
      expect(left.map(({ id }) => id)).toEqual(rowsOf(opened.epoch, 201 - rows, 200).map(({ id }) => id));
      again.store.close();
    });
  });
});
