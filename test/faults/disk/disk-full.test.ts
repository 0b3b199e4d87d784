import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { Lane } from '../../../src/contract/lanes.ts';
import { StorageUnavailable } from '../../../src/platform/errors.ts';
import { texts } from '../../../src/kit/outbox/texts.ts';
import { openStore } from '../../../src/kit/outbox/store/store.ts';
import type { Done } from '../../../src/kit/outbox/protocol.ts';
import { rowId, type Row } from '../../../src/kit/outbox/row.ts';
import { eventually } from '../../support/eventually.ts';
import { diskMissing, fillUp, withTmpfs } from '../../support/disk/disks.ts';
import { openLab } from '../../support/disk/outbox-lab.ts';
import { countRows, FakeClock, storeOptions, work } from '../../support/disk/store-lab.ts';

function rowsOf(epoch: number, from: number, count: number, lane: Lane = 'feed'): Row[] {
  return Array.from({ length: count }, (_, index) => ({
    id: rowId({ epoch, seq: from + index }),
    lane,
    channel: 'feed/asset/gps',
    time_ms: (from + index) * 900_000,
    mono_ms: null,
    body: JSON.stringify('x'.repeat(1_000)),
  }));
}

describe.skipIf(diskMissing())('a disk that others have filled', () => {
  test(
    'replaces the oldest messages by new ones, thanks to the reserve, and keeps its accounting',
    { tags: 'long' },
    async () => {
      await withTmpfs(32, (dir) => {
        const { store, opened } = openStore(storeOptions(dir));
        const reserve = join(dir, 'buffer.db.reserve');
        expect(existsSync(reserve)).toBe(true);
        let told = 0;
        const hear = (done: Done): void => {
          told += done.removed.reduce((sum, { rows }) => sum + rows, 0);
          const { feed } = done.depth;
          expect(countRows(join(dir, 'buffer.db')).feed).toEqual(feed);
        };
        for (let from = 0; from < 4_000; from += 500)
          hear(store.commit(work({ rows: rowsOf(opened.epoch, from, 500) })));
        fillUp(dir);
        let done: Done | undefined;
        for (let from = 4_000; from < 12_000; from += 100) {
          done = store.commit(work({ rows: rowsOf(opened.epoch, from, 100) }));
          hear(done);
        }
        expect(existsSync(reserve)).toBe(false);
        expect(told).toBeGreaterThan(0);
        expect(told + (done?.depth.feed.rows ?? 0)).toBe(12_000);
        expect(done?.health).toMatchObject({ state: 'full' });
        store.close();
      });
    },
  );

  test('rejects with a reason while nothing can be dropped, and recovers when space is free again', async () => {
    await withTmpfs(24, (dir) => {
      const clock = new FakeClock();
      const { store, opened } = openStore(storeOptions(dir), clock);
      const hog = fillUp(dir);
      const tasks = (from: number): Row[] => rowsOf(opened.epoch, from, 500, 'task');
      const fill = (): void => {
        for (let from = 0; from < 20_000; from += 500) {
          store.commit(work({ rows: tasks(from) }));
        }
      };
      expect(fill).toThrow(StorageUnavailable);
      expect(fill).toThrow(/disk full/u);
      rmSync(hog);
      const accepted = store.commit(work({ rows: tasks(30_000) })).depth.task.rows;
      expect(countRows(join(dir, 'buffer.db')).task.rows).toBe(accepted);
      clock.pass(3_000);
      expect(store.commit(work({})).health.state).toBe('ok');
      expect(existsSync(join(dir, 'buffer.db.reserve'))).toBe(true);
      store.close();
    });
  });

  test('makes a store that reports it and recovers when it is full from the start', async () => {
    await withTmpfs(8, (dir) => {
      const hog = fillUp(dir);
      const { store, opened } = openStore(storeOptions(dir));
      expect(opened.health).toMatchObject({ state: 'failing', fault: 'full' });
      expect(opened.epoch).toBeGreaterThan(0);
      const rows = rowsOf(opened.epoch, 0, 5);
      expect(() => store.commit(work({ rows }))).toThrow(StorageUnavailable);
      rmSync(hog);
      expect(store.commit(work({ rows })).depth.feed.rows).toBe(5);
      store.close();
      expect(openStore(storeOptions(dir)).opened.epoch).toBe(opened.epoch + 1);
    });
  });

  test('names a full disk at a later start, where the file is there and its index has no room', async () => {
    await withTmpfs(8, (dir) => {
      openStore(storeOptions(dir)).store.close();
      const hog = fillUp(dir);
      const { store, opened } = openStore(storeOptions(dir));
      expect(opened.health).toMatchObject({ state: 'failing', fault: 'full' });
      const rows = rowsOf(opened.epoch, 0, 5);
      expect(() => store.commit(work({ rows }))).toThrow(texts.sqlite_no_room);
      rmSync(hog);
      expect(store.commit(work({ rows })).depth.feed.rows).toBe(5);
      store.close();
    });
  });

  test('names it at a later start and during the run, keeps messages in memory, and the books of both runs balance', async () => {
    await withTmpfs(8, async (dir) => {
      const earlier = await openLab(dir);
      for (let n = 0; n < 3; n += 1) earlier.send('task', n, `t${n}`);
      await earlier.outbox.close();
      rmSync(join(dir, 'buffer.db.reserve'), { force: true });
      const hog = fillUp(dir);
      const lab = await openLab(dir);
      const { outbox } = lab;
      expect(outbox.health()).toMatchObject({ state: 'failing', fault: 'full' });
      lab.send('alarm', 1);
      await expect(outbox.committed()).rejects.toThrow(texts.sqlite_no_room);
      expect(outbox.health()).toMatchObject({ state: 'failing', fault: 'full' });
      expect(outbox.ledger()).toMatchObject({ accepted: 1, buffered: 1, balanced: true });
      rmSync(hog);
      await eventually('the disk is well', () => outbox.health().state === 'ok');
      expect(outbox.ledger()).toMatchObject({ accepted: 4, buffered: 4, balanced: true });
      lab.connect();
      await lab.pump(
        (each) => outbox.dispatch.acknowledged(each, { hasSubscribers: true }),
        () => outbox.ledger().buffered === 0,
      );
      expect(outbox.ledger()).toMatchObject({ delivered: 4, buffered: 0, balanced: true });
      await outbox.close();
    });
  });

  test('opens the file at a later start by giving up the reserve', async () => {
    await withTmpfs(24, (dir) => {
      openStore(storeOptions(dir)).store.close();
      fillUp(dir);
      expect(existsSync(join(dir, 'buffer.db.reserve'))).toBe(true);
      const { store, opened } = openStore(storeOptions(dir));
      expect(opened.health.state).toBe('full');
      expect(store.commit(work({ rows: rowsOf(opened.epoch, 0, 5) })).depth.feed.rows).toBe(5);
      expect(existsSync(join(dir, 'buffer.db.reserve'))).toBe(false);
      store.close();
    });
  });
});
