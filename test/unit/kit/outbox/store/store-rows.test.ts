import Database from 'better-sqlite3';
import { describe, expect, test } from 'vitest';
import { unpackBatch } from '../../../../../src/contract/batch/batch.ts';
import { rowBytes, rowId } from '../../../../../src/kit/outbox/row.ts';
import { StoreLab, work } from '../../../../support/disk/store-lab.ts';

describe('rows of a lane', () => {
  test('are handed out oldest first, once, and are gone when they were delivered', () => {
    using lab = new StoreLab();
    const rows = lab.rows('feed', 1, 5);
    lab.store.commit(work({ rows }));
    expect(lab.takeSeqs('feed', 3)).toEqual([1, 2, 3]);
    expect(lab.takeSeqs('feed')).toEqual([4, 5]);
    expect(lab.takeSeqs('feed')).toEqual([]);
    const done = lab.store.commit(work({ delivered: rows.slice(0, 3) }));
    const bytes = rows.slice(0, 3).reduce((sum, row) => sum + rowBytes(row), 0);
    expect(done.removed).toEqual([
      { lane: 'feed', why: 'delivered', rows: 3, bytes, lo: rows[0]?.id, hi: rows[2]?.id },
    ]);
    expect(done.depth.feed.rows).toBe(2);
    expect(lab.counted()).toEqual(done.depth);
  });

  test('are handed out as they were given', () => {
    using lab = new StoreLab();
    const row = lab.row('kit', 1, { body: '{"text":"Zürich 🚁 \\u0000"}', channel: 'telemetry' });
    lab.store.commit(work({ rows: [row] }));
    const { rows } = lab.store.take({ lane: 'kit', form: 'rows', rows_max: 9, bytes_max: 1 });
    expect(rows).toEqual([{ ...row, time_quality: undefined }]);
  });

  test('a take stops at its limit of bytes, but hands out at least one row', () => {
    using lab = new StoreLab();
    lab.store.commit(work({ rows: lab.rows('feed', 1, 4, { body: `"${'x'.repeat(98)}"` }) }));
    const take = (bytes_max: number) =>
      lab.store.take({ lane: 'feed', form: 'rows', rows_max: 99, bytes_max });
    expect(take(10).rows).toHaveLength(1);
    expect(take(200)).toMatchObject({ rows: [{}, {}], drained: false });
    expect(take(200)).toMatchObject({ rows: [{}], drained: true });
  });

  test('a row that arrives behind the others is handed out all the same', () => {
    using lab = new StoreLab();
    lab.store.commit(work({ rows: [lab.row('feed', 1), lab.row('feed', 3)] }));
    expect(lab.takeSeqs('feed')).toEqual([1, 3]);
    lab.store.commit(work({ rows: [lab.row('feed', 2)] }));
    expect(lab.takeSeqs('feed')).toEqual([2]);
  });

  test('deleting a delivered batch spares a row that came into its gap meanwhile', () => {
    using lab = new StoreLab();
    lab.store.commit(work({ rows: [lab.row('feed', 1), lab.row('feed', 2), lab.row('feed', 4)] }));
    const { batch } = lab.store.take({ lane: 'feed', form: 'batch', rows_max: 99, bytes_max: 1e6 });
    const { depth } = lab.store.commit(
      work({ rows: [lab.row('feed', 3)], delivered_batches: [batch?.token ?? 0] }),
    );
    expect(depth.feed.rows).toBe(1);
    expect(lab.takeSeqs('feed')).toEqual([3]);
  });

  test('rows that the main thread holds are skipped until they are released', () => {
    using lab = new StoreLab();
    const rows = lab.rows('alarm', 1, 3);
    lab.store.commit(work({ rows, held: rows.slice(0, 2).map(({ id }) => id) }));
    expect(lab.takeSeqs('alarm')).toEqual([3]);
    lab.store.release({ rows: rows.slice(0, 1), batches: [] });
    expect(lab.takeSeqs('alarm')).toEqual([1]);
    lab.store.releaseAll();
    expect(lab.takeSeqs('alarm')).toEqual([1, 2, 3]);
  });

  test('a released batch is handed out again, and its old token becomes invalid', () => {
    using lab = new StoreLab();
    lab.store.commit(work({ rows: lab.rows('feed', 1, 3) }));
    const take = () => lab.store.take({ lane: 'feed', form: 'batch', rows_max: 2, bytes_max: 1e6 }).batch;
    const first = take();
    lab.store.release({ rows: [], batches: [first?.token ?? 0] });
    const second = take();
    expect(second).toMatchObject({ rows: 2, lo: first?.lo, hi: first?.hi });
    expect(lab.store.commit(work({ delivered_batches: [first?.token ?? 0] })).removed).toEqual([]);
    expect(lab.store.commit(work({ delivered_batches: [second?.token ?? 0] })).depth.feed.rows).toBe(1);
  });

  test('a batch unpacks to the very messages that were buffered', () => {
    using lab = new StoreLab();
    const rows = [...lab.rows('feed', 1, 50), ...lab.rows('feed', 60, 70, { channel: 'feed/other/gps' })];
    lab.store.commit(work({ rows }));
    const { batch, drained } = lab.store.take({ lane: 'feed', form: 'batch', rows_max: 99, bytes_max: 1e6 });
    expect(drained).toBe(true);
    expect(unpackBatch(batch?.payload ?? new Uint8Array())).toEqual(
      rows.map(({ id, channel, time_ms, body }) => ({
        epoch: lab.opened.epoch,
        seq: id - rowId({ epoch: lab.opened.epoch, seq: 0 }),
        channel,
        time_ms,
        data: body,
      })),
    );
  });

  test('a row with invalid JSON is reported as unreadable and left out of its batch', () => {
    using lab = new StoreLab();
    lab.store.commit(work({ rows: [...lab.rows('feed', 1, 2), lab.row('feed', 3, { body: '{"n":' })] }));
    const { batch } = lab.store.take({ lane: 'feed', form: 'batch', rows_max: 99, bytes_max: 1e6 });
    expect(batch?.rows).toBe(2);
    const done = lab.store.commit(work({ delivered_batches: [batch?.token ?? 0] }));
    expect(done.depth.feed.rows).toBe(0);
    expect(done.removed.map(({ why, rows }) => [why, rows])).toEqual([
      ['delivered', 2],
      ['unreadable', 1],
    ]);
  });

  test('a commit that is tried again does not count its rows twice', () => {
    using lab = new StoreLab();
    lab.store.commit(work({ rows: lab.rows('feed', 1, 3) }));
    const { depth } = lab.store.commit(work({ rows: lab.rows('feed', 1, 4) }));
    expect(depth.feed.rows).toBe(4);
    expect(lab.counted()).toEqual(depth);
  });

  test('one odd number does not make a whole commit fail', () => {
    using lab = new StoreLab();
    const times = [Number.NaN, 12.75, 1e300, -1e300, 1e16, Number.POSITIVE_INFINITY];
    const rows = times.map((time_ms, n) =>
      lab.row('feed', n + 1, { time_ms, mono_ms: n % 2 ? time_ms : null }),
    );
    expect(lab.store.commit(work({ rows })).depth.feed.rows).toBe(6);
  });

  test.each(['rows', 'batch'] as const)(
    'a time that no calendar has, as a broken page may hold it, can be sent all the same (%s)',
    (form) => {
      using lab = new StoreLab();
      lab.store.commit(work({ rows: lab.rows('feed', 1, 3) }));
      const db = new Database(lab.file);
      db.exec('UPDATE lane_feed SET time_ms = 9000000000000000 WHERE id % 2 = 0');
      db.close();
      const { rows, batch } = lab.store.take({ lane: 'feed', form, rows_max: 99, bytes_max: 1e6 });
      const taken = batch ? unpackBatch(batch.payload) : rows;
      expect(taken.map(({ time_ms }) => new Date(time_ms).toISOString())).toEqual(
        [1, 2, 3].map((seq) => new Date(seq === 2 ? 0 : lab.clock.wall_ms + seq).toISOString()),
      );
    },
  );
});

describe('opening the file again', () => {
  test('begins a higher epoch, knows the depth, and frees what was handed out', () => {
    using lab = new StoreLab();
    lab.store.commit(work({ rows: lab.rows('feed', 1, 3) }));
    lab.takeSeqs('feed');
    const { epoch } = lab.opened;
    const opened = lab.reopen();
    expect(opened.epoch).toBe(epoch + 1);
    expect(opened.depth.feed.rows).toBe(3);
    expect(lab.takeSeqs('feed')).toEqual([1, 2, 3]);
  });

  test('the epoch has risen for good even if nothing was ever committed', () => {
    using lab = new StoreLab();
    const epochs = [lab.opened.epoch, lab.reopen().epoch, lab.reopen().epoch];
    expect(epochs).toEqual([epochs[0], (epochs[0] ?? 0) + 1, (epochs[0] ?? 0) + 2]);
  });

  test('a new file does not begin with the numbers of one that was erased an hour ago', () => {
    using lab = new StoreLab();
    const { epoch } = lab.opened;
    using later = new StoreLab();
    later.clock.pass(3_600_000);
    later.store.close();
    later.open({ file: `${later.file}.other` });
    expect(later.opened.epoch).toBeGreaterThan(epoch);
  });
});
