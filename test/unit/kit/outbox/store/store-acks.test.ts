import { describe, expect, test } from 'vitest';
import { lanes, type Lane } from '../../../../../src/contract/lanes.ts';
import { seq_max } from '../../../../../src/kit/outbox/row.ts';
import { unconfirmed_max } from '../../../../../src/kit/outbox/store/in-flight-rows.ts';
import { StoreLab, work } from '../../../../support/disk/store-lab.ts';

describe('an acknowledgement of the cloud', () => {
  /** Hands out single rows of a lane and reports that the broker acknowledged them. */
  function send(lab: StoreLab, lane: Lane, rows_max = 10_000): void {
    const { rows } = lab.store.take({ lane, form: 'rows', rows_max, bytes_max: 1e9 });
    lab.store.commit(work({ unconfirmed: rows }));
  }
  const epochOf = (lab: StoreLab) => lab.opened.epoch;

  test('releases the rows that were sent and that the broker acknowledged, and is remembered', () => {
    using lab = new StoreLab();
    expect(lab.opened.cloud_acks).toBe(false);
    lab.store.commit(work({ rows: [...lab.rows('task', 1, 3), ...lab.rows('alarm', 4, 6)] }));
    send(lab, 'task');
    send(lab, 'alarm');
    const done = lab.store.confirm({
      epoch: epochOf(lab),
      ranges: [
        [6, 6],
        [2, 4],
      ],
    });
    expect(done).toMatchObject({ released: 4, ignored: undefined });
    expect(done.removed.map(({ lane, why, rows }) => [lane, why, rows])).toEqual([
      ['task', 'delivered', 2],
      ['alarm', 'delivered', 2],
    ]);
    expect(lab.counted()).toEqual(done.depth);
    expect(lab.reopen().cloud_acks).toBe(true);
    expect(lab.takeSeqs('task')).toEqual([1]);
    expect(lab.takeSeqs('alarm')).toEqual([5]);
  });

  test('of everything there can be releases no row that was never sent, in no lane', () => {
    using lab = new StoreLab();
    const rows = lanes.flatMap((lane, index) => lab.rows(lane, 10 * index + 1, 10 * index + 2));
    lab.store.commit(work({ rows }));
    const before = lab.counted();
    for (const hi of [5_000, seq_max - 1, seq_max, Number.MAX_SAFE_INTEGER]) {
      expect(lab.store.confirm({ epoch: epochOf(lab), ranges: [[0, hi]] }).removed).toEqual([]);
    }
    expect(lab.counted()).toEqual(before);
    expect(lab.takeSeqs('task')).toEqual([1, 2]);
  });

  test('releases neither rows that are read ahead nor rows that were sent before the restart', () => {
    using lab = new StoreLab();
    lab.store.commit(work({ rows: lab.rows('alarm', 1, 4) }));
    send(lab, 'alarm', 2);
    lab.takeSeqs('alarm', 2);
    expect(lab.store.confirm({ epoch: epochOf(lab), ranges: [[3, 4]] }).released).toBe(0);
    const { epoch } = lab.opened;
    lab.reopen();
    expect(lab.store.confirm({ epoch, ranges: [[1, 4]] })).toMatchObject({ released: 0, ignored: undefined });
    send(lab, 'alarm', 3);
    expect(lab.store.confirm({ epoch, ranges: [[1, 4]] }).released).toBe(3);
    expect(lab.takeSeqs('alarm')).toEqual([4]);
  });

  test('of an unknown epoch is ignored, and the reply names the reason', () => {
    using lab = new StoreLab();
    lab.store.commit(work({ rows: lab.rows('task', 1, 3) }));
    send(lab, 'task');
    for (const epoch of [epochOf(lab) - 1, epochOf(lab) + 1, -1, 1.5, Number.NaN]) {
      expect(lab.store.confirm({ epoch, ranges: [[0, 9]] })).toMatchObject({
        released: 0,
        ignored: { ranges: 1, why: 'unknown_epoch' },
      });
    }
  });

  test('ahead of the last number, upside down or negative is ignored, and its other ranges are used', () => {
    using lab = new StoreLab();
    lab.store.commit(work({ rows: lab.rows('task', 1, 3) }));
    send(lab, 'task');
    const done = lab.store.confirm({
      epoch: epochOf(lab),
      last_seq: 3,
      ranges: [
        [1, 4],
        [3, 1],
        [-1, 3],
        [2, 2],
        [0.5, 3],
      ],
    });
    expect(done).toMatchObject({ released: 1, ignored: { ranges: 4, why: 'never_sent' } });
  });

  test('of a thousand overlapping ranges releases each of ten thousand rows once', () => {
    using lab = new StoreLab();
    const rows = lab.rows('alarm', 1, 20_000).filter((_, index) => index % 2 === 0);
    lab.store.commit(work({ rows }));
    send(lab, 'alarm');
    const ranges = Array.from({ length: 1_000 }, (_, n) => [n * 20, n * 20 + 25] as const);
    const done = lab.store.confirm({ epoch: epochOf(lab), ranges: ranges.toReversed() });
    expect(done.released).toBe(10_000);
    expect(done.depth.alarm).toEqual({ rows: 0, bytes: 0 });
    expect(lab.counted()).toEqual(done.depth);
  });

  test('what waits for it is not handed out again until it took too long', () => {
    using lab = new StoreLab();
    const rows = lab.rows('task', 1, 2);
    lab.store.commit(work({ rows }));
    lab.takeSeqs('task');
    lab.store.commit(work({ unconfirmed: rows }));
    lab.store.releaseAll();
    expect(lab.takeSeqs('task')).toEqual([]);
    expect(lab.store.resendUnconfirmed({ older_than_ms: 1_000, lazy: true })).toBe(0);
    lab.clock.pass(1_500);
    expect(lab.store.resendUnconfirmed({ older_than_ms: 1_000, lazy: true })).toBe(2);
    expect(lab.takeSeqs('task')).toEqual([1, 2]);
  });

  test('one row of a lazy lane asks a silent cloud whether it is back', () => {
    using lab = new StoreLab();
    const rows = lab.rows('feed', 1, 3);
    lab.store.commit(work({ rows }));
    lab.takeSeqs('feed');
    lab.store.commit(work({ unconfirmed: rows }));
    const due = { older_than_ms: 1_000, lazy: false };
    expect(lab.store.resendUnconfirmed(due)).toBe(0);
    lab.clock.pass(1_500);
    expect(lab.store.resendUnconfirmed(due)).toBe(1);
    expect(lab.takeSeqs('feed')).toEqual([1]);
  });

  test('rows of a sync lane are sent again to a silent cloud, and none of a lazy lane beside them', () => {
    using lab = new StoreLab();
    const rows = [...lab.rows('feed', 1, 3), ...lab.rows('task', 4, 5)];
    lab.store.commit(work({ rows }));
    lab.takeSeqs('feed');
    lab.takeSeqs('task');
    lab.store.commit(work({ unconfirmed: rows }));
    lab.clock.pass(1_500);
    expect(lab.store.resendUnconfirmed({ older_than_ms: 1_000, lazy: false })).toBe(2);
    expect(lab.takeSeqs('task')).toEqual([4, 5]);
    expect(lab.takeSeqs('feed')).toEqual([]);
  });

  /** Batches of a lane whose rows the broker acknowledged, with `held` rows of the last one still in flight. */
  function sendBatches(lab: StoreLab, lane: Lane, count: number): number {
    const rows_max = 4;
    lab.store.commit(work({ rows: lab.rows(lane, 1, count) }));
    let last = 0;
    for (let n = 0; n < count; n += rows_max) {
      const { batch } = lab.store.take({ lane, form: 'batch', rows_max, bytes_max: 1e9 });
      last = batch?.token ?? 0;
      if (n + rows_max < count) lab.store.commit(work({ unconfirmed_batches: [last] }));
    }
    return last;
  }

  test('releases rows of ranges that are tracked as a whole too, but none in flight and none sent again', () => {
    using lab = new StoreLab({}, { unconfirmed_max: 4 });
    const in_flight = sendBatches(lab, 'feed', 24);
    const everything = { epoch: epochOf(lab), ranges: [[1, 24]] as const };
    const done = lab.store.confirm({ ...everything, ranges: [[3, 10]] });
    expect(done).toMatchObject({ released: 8, depth: { feed: { rows: 16 } } });
    expect(lab.store.confirm(everything)).toMatchObject({ released: 12, depth: { feed: { rows: 4 } } });
    lab.clock.pass(61_000);
    expect(lab.store.resendUnconfirmed({ older_than_ms: 60_000, lazy: true })).toBe(0);
    lab.store.commit(work({ unconfirmed_batches: [in_flight] }));
    expect(lab.store.confirm(everything)).toMatchObject({ released: 4, depth: { feed: { rows: 0 } } });
  });

  test('releases no row that came late into a range that is tracked as a whole, and none that is sent again', () => {
    using lab = new StoreLab({}, { unconfirmed_max: 4 });
    const late = 5;
    const early = lab.rows('feed', 1, 13).filter(({ id }) => id !== lab.row('feed', late).id);
    lab.store.commit(work({ rows: early }));
    send(lab, 'feed');
    lab.store.commit(work({ rows: [lab.row('feed', late)] }));
    const everything = { epoch: epochOf(lab), ranges: [[1, 13]] as const };
    expect(lab.store.confirm(everything)).toMatchObject({ released: 8, depth: { feed: { rows: 5 } } });
    expect(lab.takeSeqs('feed')).toEqual([late, 6, 7, 8, 9]);
    expect(lab.store.confirm(everything)).toMatchObject({ released: 0, depth: { feed: { rows: 5 } } });
  });

  test('a lane keeps sending however many rows are unconfirmed, and all of them are sent again later', () => {
    using lab = new StoreLab();
    const count = unconfirmed_max + 2_500;
    const rows = lab.rows('alarm', 1, count);
    lab.store.commit(work({ rows }));
    for (let n = 0; n < count; n += 5_000) {
      const taken = lab.store.take({ lane: 'alarm', form: 'rows', rows_max: 5_000, bytes_max: 1e9 });
      lab.store.commit(work({ unconfirmed: taken.rows }));
    }
    lab.store.commit(work({ rows: lab.rows('alarm', count + 1, count + 1) }));
    expect(lab.takeSeqs('alarm', 2 * count)).toEqual([count + 1]);
    lab.clock.pass(61_000);
    expect(lab.store.resendUnconfirmed({ older_than_ms: 60_000, lazy: true })).toBeGreaterThan(0);
    const again = lab.takeSeqs('alarm', 2 * count);
    expect(again).toEqual(rows.map((_, index) => index + 1));
    const refs = rows.map(({ lane, id }) => ({ lane, id }));
    lab.store.commit(work({ unconfirmed: refs.slice(0, 10_000) }));
    expect(lab.store.confirm({ epoch: lab.opened.epoch, ranges: [[1, 10_000]] }).released).toBe(10_000);
  });
});
