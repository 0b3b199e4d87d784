import { describe, expect, test } from 'vitest';
import type { Removal } from '../../../../../src/kit/outbox/protocol.ts';
import { StoreLab, work } from '../../../../support/disk/store-lab.ts';

const day_ms = 86_400_000;

function dropped(removed: readonly Removal[], why: Removal['why']): number {
  return removed.filter((one) => one.why === why).reduce((sum, { rows }) => sum + rows, 0);
}

/** One message every 15 minutes: too sparse to be thinned. */
function sparse(lab: StoreLab, lane: 'alarm' | 'kit' | 'feed', from: number, to: number) {
  return lab.rows(lane, from, to).map((row, index) => ({ ...row, time_ms: (from + index) * 900_000 }));
}

describe('a full buffer', () => {
  test('gives up the oldest of the least important lane, down to a little below the limit', () => {
    using lab = new StoreLab({ rows_max: 100 });
    lab.store.commit(work({ rows: [...sparse(lab, 'alarm', 1, 40), ...sparse(lab, 'feed', 41, 100)] }));
    const done = lab.store.commit(work({ rows: sparse(lab, 'feed', 101, 101) }));
    expect(dropped(done.removed, 'evicted')).toBe(6);
    expect(done.depth.alarm.rows).toBe(40);
    expect(lab.takeSeqs('feed')[0]).toBe(47);
    expect(lab.counted()).toEqual(done.depth);
  });

  test('gives up feed, then kit, then alarm, and never tasks and presence', () => {
    using lab = new StoreLab({ rows_max: 6 });
    lab.store.commit(
      work({
        rows: [...sparse(lab, 'feed', 1, 2), ...sparse(lab, 'alarm', 3, 4), ...sparse(lab, 'kit', 5, 6)],
      }),
    );
    const order: string[] = [];
    for (let seq = 10; seq < 20; seq += 1) {
      const { removed } = lab.store.commit(work({ rows: [lab.row('task', seq)] }));
      for (const { lane, rows } of removed) order.push(...Array.from({ length: rows }, () => lane));
    }
    expect(order).toEqual(['feed', 'feed', 'kit', 'kit', 'alarm', 'alarm']);
    const { depth } = lab.store.commit(work({ rows: [lab.row('presence', 40)] }));
    expect(depth).toMatchObject({ task: { rows: 10 }, presence: { rows: 1 } });
  });

  test('counts bytes as well as rows', () => {
    using lab = new StoreLab({ bytes_max: 10_000 });
    for (let n = 0; n < 50; n += 1) {
      const body = `"${'x'.repeat(900)}"`;
      const { depth } = lab.store.commit(
        work({ rows: [{ ...lab.row('feed', n), time_ms: n * 900_000, body }] }),
      );
      expect(depth.feed.bytes).toBeLessThanOrEqual(10_000);
    }
    expect(lab.takeSeqs('feed').at(-1)).toBe(49);
  });

  test('skips rows that the main thread holds', () => {
    using lab = new StoreLab({ rows_max: 10 });
    lab.store.commit(work({ rows: sparse(lab, 'feed', 1, 10) }));
    expect(lab.takeSeqs('feed', 3)).toEqual([1, 2, 3]);
    lab.store.commit(work({ rows: sparse(lab, 'feed', 11, 15) }));
    lab.store.releaseAll();
    expect(lab.takeSeqs('feed')).toEqual([1, 2, 3, 10, 11, 12, 13, 14, 15]);
  });

  test('reports each epoch separately, so that the numbers name the missing rows', () => {
    using lab = new StoreLab({ rows_max: 20 });
    lab.store.commit(work({ rows: sparse(lab, 'feed', 1, 10) }));
    const { epoch } = lab.reopen();
    lab.store.commit(work({ rows: sparse(lab, 'feed', 1, 30) }));
    expect(lab.reopen().drops).toEqual([
      { epoch: epoch - 1, lane: 'feed', reason: 'evicted', rows: 10, lo: 1, hi: 10 },
      { epoch, lane: 'feed', reason: 'evicted', rows: 11, lo: 1, hi: 11 },
    ]);
  });
});

describe('thinning', () => {
  /** Ten messages a second of one channel. */
  const dense = (lab: StoreLab, from: number, to: number) =>
    lab.rows('feed', from, to).map((row, index) => ({ ...row, time_ms: (from + index) * 100 }));

  test('makes a dense feed sparse before anything is evicted, and spares the newest', () => {
    using lab = new StoreLab({ rows_max: 1_000 });
    const { removed, depth } = lab.store.commit(work({ rows: dense(lab, 0, 1_000) }));
    expect(dropped(removed, 'evicted')).toBe(0);
    // The oldest three quarters, 75 s, keep one message in 10 s.
    expect(depth.feed.rows).toBe(8 + 251);
    const seqs = lab.takeSeqs('feed');
    expect(seqs.slice(0, 8)).toEqual([0, 100, 200, 300, 400, 500, 600, 700]);
    expect(seqs.slice(8)).toEqual(Array.from({ length: 251 }, (_, index) => 750 + index));
  });

  test('keeps one message of every channel', () => {
    using lab = new StoreLab({ rows_max: 400 });
    const rows = dense(lab, 0, 500).map((row, index) => ({ ...row, channel: `feed/asset/${index % 5}` }));
    lab.store.commit(work({ rows }));
    const { rows: left } = lab.store.take({ lane: 'feed', form: 'rows', rows_max: 999, bytes_max: 1e9 });
    expect(new Set(left.slice(0, 20).map(({ channel }) => channel)).size).toBe(5);
  });

  test('continues where it stopped, also after a restart, and becomes coarser when necessary', () => {
    using lab = new StoreLab({ rows_max: 300 });
    let thinned = 0;
    for (let from = 0; from < 36_000; from += 200) {
      const { removed, depth } = lab.store.commit(work({ rows: dense(lab, from, from + 199) }));
      thinned += dropped(removed, 'thinned');
      expect(depth.feed.rows).toBeLessThanOrEqual(300);
      if (from % 6_000 === 0) lab.reopen();
    }
    expect(thinned).toBeGreaterThan(30_000);
    const { rows } = lab.store.take({ lane: 'feed', form: 'rows', rows_max: 999, bytes_max: 1e9 });
    // An hour came in, and the very beginning of it is still there.
    expect(rows[0]?.time_ms).toBeLessThan(600_000);
  });
});

describe('the configured age', () => {
  test('expires old alarms, kit states and feeds, but no tasks', () => {
    using lab = new StoreLab({ age_max_ms: 10 * day_ms });
    lab.store.commit(
      work({ rows: [lab.row('task', 1), lab.row('alarm', 2), lab.row('kit', 3), lab.row('feed', 4)] }),
    );
    lab.clock.pass(day_ms);
    lab.store.commit(work({ rows: [lab.row('feed', 5)] }));
    lab.clock.pass(9 * day_ms);
    expect(lab.store.commit(work({})).removed).toEqual([]);
    lab.clock.pass(1.5 * day_ms);
    const done = lab.store.commit(work({}));
    expect(dropped(done.removed, 'expired')).toBe(4);
    expect(done.depth).toMatchObject({ task: { rows: 1 }, feed: { rows: 0 } });
  });

  test('a clock that jumps by a year expires nothing, neither while running nor across a restart', () => {
    using lab = new StoreLab({ age_max_ms: 10 * day_ms });
    lab.store.commit(work({ rows: lab.rows('feed', 1, 3) }));
    lab.clock.pass(day_ms);
    lab.store.commit(work({ rows: lab.rows('feed', 4, 6) }));
    lab.clock.wall_ms += 365 * day_ms;
    expect(lab.store.commit(work({})).depth.feed.rows).toBe(6);
    lab.store.close();
    lab.clock.wall_ms += 365 * day_ms;
    lab.clock.mono_ms = 0;
    lab.open();
    expect(lab.store.commit(work({})).depth.feed.rows).toBe(6);
  });

  test('continues across restarts', () => {
    using lab = new StoreLab({ age_max_ms: 3 * day_ms });
    lab.store.commit(work({ rows: lab.rows('feed', 1, 3) }));
    const left: number[] = [];
    for (let day = 0; day < 4; day += 1) {
      lab.clock.pass(day_ms / 2);
      lab.store.commit(work({}));
      lab.store.close();
      lab.clock.pass(day_ms / 2);
      lab.open();
      left.push(lab.store.commit(work({})).depth.feed.rows);
    }
    expect(left.slice(0, 2)).toEqual([3, 3]);
    expect(left.at(-1)).toBe(0);
  });
});
