import { describe, expect, test } from 'vitest';
import type { JournalEntry } from '../../../src/outbox/protocol.ts';
import { rowId } from '../../../src/outbox/row.ts';
import { StoreLab, work } from '../../support/store-lab.ts';

function task(task_id: string, more: Partial<JournalEntry> = {}): JournalEntry {
  const times = { received_ms: 1, updated_ms: 2, deadline_ms: null };
  return { task_id, state: 'pending', dispatch: '{}', result: '{}', ...times, ...more };
}

describe('the presence lane', () => {
  const channel = 'asset/a';

  test('keeps the newest of each channel and tells of the one it replaced', () => {
    using lab = new StoreLab();
    lab.store.commit(
      work({ rows: [lab.row('presence', 1, { channel }), lab.row('presence', 2, { channel: 'asset/b' })] }),
    );
    const done = lab.store.commit(work({ rows: [lab.row('presence', 3, { channel })] }));
    expect(done.removed).toMatchObject([
      { lane: 'presence', why: 'superseded', rows: 1, lo: rowId({ epoch: lab.opened.epoch, seq: 1 }) },
    ]);
    expect(lab.takeSeqs('presence')).toEqual([2, 3]);
    expect(lab.counted()).toEqual(done.depth);
  });

  test('an older value that comes later replaces nothing, even when the newer one was delivered already', () => {
    using lab = new StoreLab();
    const newer = lab.row('presence', 5, { channel, body: '"new"' });
    lab.store.commit(work({ rows: [newer] }));
    lab.store.commit(work({ delivered: [newer] }));
    const done = lab.store.commit(work({ rows: [lab.row('presence', 4, { channel, body: '"old"' })] }));
    expect(done.removed).toMatchObject([{ why: 'superseded', rows: 1 }]);
    expect(done.depth.presence.rows).toBe(0);
    expect(lab.reopen().announced).toEqual([{ channel, body: '"new"' }]);
  });

  test('what was announced is known after a restart, and what was cleared is not', () => {
    using lab = new StoreLab();
    const gone = { channel: 'asset/gone' };
    lab.store.commit(
      work({ rows: [lab.row('presence', 1, { channel, body: '{"a":1}' }), lab.row('presence', 2, gone)] }),
    );
    lab.store.commit(work({ rows: [lab.row('presence', 3, { ...gone, body: 'null' })] }));
    expect(lab.reopen().announced).toEqual([{ channel, body: '{"a":1}' }]);
  });
});

describe('the journal', () => {
  test('admits a task once and answers the entry that it knows', () => {
    using lab = new StoreLab();
    expect(lab.store.admit(task('t1'))).toBeUndefined();
    lab.store.commit(work({ journal: [task('t1', { state: 'completed', result: '{"ok":true}' })] }));
    expect(lab.store.admit(task('t1'))).toMatchObject({ state: 'completed', result: '{"ok":true}' });
  });

  test('is read newest first, and open tasks oldest first after a restart', () => {
    using lab = new StoreLab();
    for (const id of ['t1', 't2', 't3']) lab.store.admit(task(id));
    lab.store.commit(work({ journal: [task('t2', { state: 'failed' }), task('t3', { state: 'running' })] }));
    expect(lab.store.listTasks(2).map(({ task_id }) => task_id)).toEqual(['t3', 't2']);
    expect(lab.reopen().open_tasks.map(({ task_id, state }) => [task_id, state])).toEqual([
      ['t1', 'pending'],
      ['t3', 'running'],
    ]);
  });

  test('forgets the finished tasks that arrived first, never the open ones', () => {
    using lab = new StoreLab({ journal_rows_max: 3 });
    lab.store.admit(task('open'));
    for (let n = 1; n <= 9; n += 1) {
      lab.store.admit(task(`t${n}`));
      lab.store.commit(work({ journal: [task(`t${n}`, { state: 'completed' })] }));
    }
    expect(lab.store.findTask('t1')).toBeUndefined();
    expect(lab.store.findTask('t9')).toBeDefined();
    expect(lab.store.findTask('open')).toBeDefined();
  });
});

describe('the quarantine', () => {
  const reason = 'not authorised';

  test('takes a row out of its lane, and puts it back when it is retried', () => {
    using lab = new StoreLab();
    const row = lab.row('alarm', 1);
    lab.store.commit(work({ rows: [row, lab.row('alarm', 2)] }));
    lab.takeSeqs('alarm');
    const done = lab.store.commit(work({ quarantined: [{ row, code: 0x87, reason }] }));
    expect(done).toMatchObject({ quarantined_rows: 1, removed: [{ why: 'quarantined', rows: 1 }] });
    expect(done.depth.alarm.rows).toBe(1);
    const { quarantine } = lab.store.inspect();
    expect(quarantine).toEqual([
      {
        id: row.id,
        lane: 'alarm',
        channel: row.channel,
        time_ms: row.time_ms,
        code: 0x87,
        reason,
        body: row.body,
      },
    ]);
    expect(lab.store.retryQuarantined([row.id])).toMatchObject({
      quarantined_rows: 0,
      depth: { alarm: { rows: 2 } },
    });
    expect(lab.takeSeqs('alarm')).toEqual([1]);
  });

  test('takes a row that comes to the disk in the same commit', () => {
    using lab = new StoreLab();
    const row = lab.row('feed', 1);
    const done = lab.store.commit(work({ rows: [row], quarantined: [{ row, code: 0x95, reason }] }));
    expect(done).toMatchObject({ quarantined_rows: 1, removed: [{ why: 'quarantined', rows: 1 }] });
    expect(lab.reopen().quarantined_rows).toBe(1);
  });

  test('does not take a row that was superseded meanwhile: it was told as dropped', () => {
    using lab = new StoreLab();
    const [old, newer] = [lab.row('presence', 1), lab.row('presence', 2)];
    lab.store.commit(work({ rows: [old] }));
    const done = lab.store.commit(work({ rows: [newer], quarantined: [{ row: old, code: 0x87, reason }] }));
    expect(done).toMatchObject({ quarantined_rows: 0, removed: [{ why: 'superseded', rows: 1 }] });
  });

  test('gives up its oldest beyond the limit, and counts them', () => {
    using lab = new StoreLab({ quarantine_rows_max: 2 });
    const rows = lab.rows('feed', 1, 5);
    const quarantined = rows.map((row) => ({ row, code: 0x95, reason }));
    const done = lab.store.commit(work({ rows, quarantined }));
    expect(done.quarantined_rows).toBe(2);
    expect(done.removed).toMatchObject([
      { why: 'quarantined', rows: 5 },
      { why: 'evicted', rows: 3 },
    ]);
  });

  test('discards what the technician discards, and counts it', () => {
    using lab = new StoreLab();
    const rows = lab.rows('feed', 1, 3);
    const quarantined = rows.map((row) => ({ row, code: 0x95, reason }));
    lab.store.commit(work({ rows, quarantined }));
    const [first] = quarantined;
    expect(lab.store.discardQuarantined(first && [first.row.id])).toMatchObject({
      quarantined_rows: 2,
      removed: [{ why: 'discarded', rows: 1, lo: first?.row.id }],
    });
    expect(lab.store.discardQuarantined(undefined)).toMatchObject({
      quarantined_rows: 0,
      removed: [{ rows: 2 }],
    });
    expect(lab.reopen().drops).toMatchObject([{ reason: 'discarded', rows: 3, lo: 1, hi: 3 }]);
  });
});

describe('drops', () => {
  test('outlive a restart until they are reported', () => {
    using lab = new StoreLab();
    const rows = lab.rows('presence', 1, 3, { channel: 'asset/a' });
    lab.store.commit(work({ rows }));
    const { drops, epoch } = lab.reopen();
    expect(drops).toEqual([
      { epoch: epoch - 1, lane: 'presence', reason: 'superseded', rows: 2, lo: 1, hi: 2 },
    ]);
    lab.store.commit(work({ reported: drops.map((drop) => ({ ...drop, rows: 1 })) }));
    expect(lab.reopen().drops).toMatchObject([{ rows: 1 }]);
    lab.store.commit(work({ reported: lab.opened.drops }));
    expect(lab.reopen().drops).toEqual([]);
  });
});

describe('the time of rows that were observed before the clock was right', () => {
  const take = (lab: StoreLab) =>
    lab.store
      .take({ lane: 'feed', form: 'rows', rows_max: 9, bytes_max: 1e6 })
      .rows.map(({ time_ms, time_quality }) => [time_ms, time_quality]);

  test('is corrected once the offset is known, for all epochs of the boot', () => {
    using lab = new StoreLab();
    lab.store.commit(work({ rows: [lab.row('feed', 1, { time_ms: 5, mono_ms: 1_000 })] }));
    expect(take(lab)).toEqual([[5, 'unsynced']]);
    lab.reopen();
    lab.store.commit(work({ rows: [lab.row('feed', 1, { time_ms: 6, mono_ms: 2_000 })] }));
    lab.store.setClockOffset(1_790_000_000_000.25);
    expect(take(lab)).toEqual([
      [1_790_000_001_000, 'corrected'],
      [1_790_000_002_000, 'corrected'],
    ]);
    expect(lab.store.inspect().lanes.feed.oldest_ms).toBe(1_790_000_001_000);
  });

  test('stays unsynced when its boot never knew the time', () => {
    using lab = new StoreLab();
    lab.store.commit(work({ rows: [lab.row('feed', 1, { time_ms: 5, mono_ms: 1_000 })] }));
    lab.reopen({ boot_id: 'boot-2' });
    lab.store.setClockOffset(1_790_000_000_000);
    expect(take(lab)).toEqual([[5, 'unsynced']]);
  });

  test('a restart within the boot needs no new offset', () => {
    using lab = new StoreLab();
    lab.store.setClockOffset(1_790_000_000_000);
    lab.reopen();
    lab.store.commit(work({ rows: [lab.row('feed', 1, { mono_ms: 3_000 })] }));
    expect(take(lab)).toEqual([[1_790_000_003_000, 'corrected']]);
  });
});

describe("the cloud's word", () => {
  test('removes what it has stored, in all lanes, and is remembered', () => {
    using lab = new StoreLab();
    expect(lab.opened.cloud_acks).toBe(false);
    lab.store.commit(work({ rows: [...lab.rows('task', 1, 3), ...lab.rows('feed', 4, 6)] }));
    const done = lab.store.confirm({
      epoch: lab.opened.epoch,
      ranges: [
        [2, 4],
        [6, 6],
      ],
    });
    expect(done.removed.map(({ lane, why, rows }) => [lane, why, rows])).toEqual([
      ['task', 'delivered', 2],
      ['feed', 'delivered', 2],
    ]);
    expect(lab.takeSeqs('task')).toEqual([1]);
    expect(lab.takeSeqs('feed')).toEqual([5]);
    expect(lab.reopen().cloud_acks).toBe(true);
  });

  test('a range of another epoch, or upside down, removes nothing', () => {
    using lab = new StoreLab();
    lab.store.commit(work({ rows: lab.rows('task', 1, 3) }));
    expect(lab.store.confirm({ epoch: lab.opened.epoch - 1, ranges: [[0, 9]] }).depth.task.rows).toBe(3);
    expect(lab.store.confirm({ epoch: lab.opened.epoch, ranges: [[3, 1]] }).depth.task.rows).toBe(3);
  });

  test('what waits for it is not handed out again until it took too long', () => {
    using lab = new StoreLab();
    const rows = lab.rows('task', 1, 2);
    lab.store.commit(work({ rows }));
    lab.takeSeqs('task');
    lab.store.commit(work({ unconfirmed: rows }));
    lab.store.releaseAll();
    expect(lab.takeSeqs('task')).toEqual([]);
    expect(lab.store.resendUnconfirmed(1_000)).toBe(0);
    lab.clock.pass(1_500);
    expect(lab.store.resendUnconfirmed(1_000)).toBe(2);
    expect(lab.takeSeqs('task')).toEqual([1, 2]);
  });

  test('a lane whose unconfirmed rows are too many waits, and goes on when some are confirmed', () => {
    using lab = new StoreLab();
    const rows = lab.rows('alarm', 1, 10_001);
    lab.store.commit(work({ rows }));
    lab.takeSeqs('alarm', 10_000);
    lab.store.commit(work({ unconfirmed: rows.slice(0, 10_000) }));
    expect(lab.takeSeqs('alarm')).toEqual([]);
    lab.store.confirm({ epoch: lab.opened.epoch, ranges: [[1, 10]] });
    expect(lab.takeSeqs('alarm')).toEqual([10_001]);
  });
});
