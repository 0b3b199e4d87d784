import Database from 'better-sqlite3';
import { describe, expect, test } from 'vitest';
import type { JournalEntry } from '../../../../../src/kit/outbox/protocol.ts';
import { rowId } from '../../../../../src/kit/outbox/row.ts';
import { StoreLab, taskEntry, work } from '../../../../support/disk/store-lab.ts';

const task = (task_id: string, more: Partial<JournalEntry> = {}): JournalEntry =>
  taskEntry({ task_id, state: 'pending', ...more });

describe('the presence lane', () => {
  const channel = 'asset/a';

  test('keeps the newest of each channel and reports the replaced one', () => {
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

  test.each(['{"n":2}', 'null'])(
    'an older value that was in flight when %s was delivered stays until its fate is known, and is not sent after a crash',
    (body) => {
      using lab = new StoreLab();
      const rows = [lab.row('presence', 1, { channel }), lab.row('presence', 2, { channel, body })];
      for (const row of rows) lab.store.commit(work({ rows: [row], held: [row.id] }));
      const done = lab.store.commit(work({ delivered: rows.slice(1) }));
      expect(done.removed).toMatchObject([{ why: 'delivered', rows: 1 }]);
      expect(done.depth.presence.rows).toBe(1);
      const opened = lab.reopen();
      expect(opened.depth.presence.rows).toBe(0);
      expect(opened.drops).toMatchObject([{ lane: 'presence', reason: 'superseded', rows: 1, lo: 1 }]);
      expect(lab.takeSeqs('presence')).toEqual([]);
      expect(lab.counted()).toEqual(opened.depth);
    },
  );

  test('a quarantined value is not sent again after its channel was cleared', () => {
    using lab = new StoreLab();
    const row = lab.row('presence', 1, { channel });
    lab.store.commit(work({ rows: [row] }));
    lab.store.commit(work({ quarantined: [{ row, code: 135, reason: 'not authorised' }] }));
    const gone = lab.row('presence', 2, { channel, body: 'null' });
    lab.store.commit(work({ rows: [gone] }));
    lab.store.commit(work({ delivered: [gone] }));
    lab.reopen();
    const { removed, depth } = lab.store.retryQuarantined(undefined);
    expect(removed).toMatchObject([{ lane: 'presence', why: 'superseded', rows: 1 }]);
    expect(depth.presence.rows).toBe(0);
  });

  test('cleared channels do not fill the file', () => {
    using lab = new StoreLab();
    for (let seq = 1; seq <= 20; seq += 1) {
      const row = lab.row('presence', seq, { channel: `asset/${seq}`, body: 'null' });
      lab.store.commit(work({ rows: [row] }));
      lab.store.commit(work({ delivered: [row] }));
    }
    lab.store.close();
    expect(rowsOf(lab.file, 'announced')).toBe(0);
    lab.open();
  });
});

function rowsOf(file: string, table: string): number | undefined {
  const db = new Database(file, { readonly: true });
  try {
    return db.prepare<[], number>(`SELECT count(*) FROM ${table}`).pluck().get();
  } finally {
    db.close();
  }
}

describe('the journal', () => {
  test('admits a task once and returns the existing entry', () => {
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

  test('forgets the finished tasks that arrived first when their texts are too large, never the open ones', () => {
    using lab = new StoreLab({ journal_rows_max: 10_000 });
    const large = JSON.stringify({ payload: 'x'.repeat(64_000) });
    lab.store.admit(task('open', { dispatch: large }));
    const ended = (n: number) => task(`t${n}`, { state: 'failed', dispatch: large, result: large });
    for (let from = 1; from <= 400; from += 50)
      lab.store.commit(work({ journal: Array.from({ length: 50 }, (_, n) => ended(from + n)) }));
    expect(lab.store.findTask('t1')).toBeUndefined();
    expect(lab.store.findTask('t400')).toBeDefined();
    expect(lab.store.findTask('open')).toBeDefined();
    lab.reopen();
    lab.store.commit(work({ journal: [task('last', { state: 'failed' })] }));
    const kept = Array.from({ length: 400 }, (_, n) => lab.store.findTask(`t${n + 1}`)).filter(Boolean);
    expect(kept).toHaveLength(261);
  });

  test('limits the bytes of tasks in one reply', () => {
    using lab = new StoreLab();
    const large = JSON.stringify({ payload: 'x'.repeat(60_000) });
    const ended = (n: number) => task(`t${n}`, { state: 'completed', dispatch: large, result: large });
    lab.store.commit(work({ journal: Array.from({ length: 100 }, (_, n) => ended(n)) }));
    expect(lab.store.listTasks(100)).toHaveLength(69);
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

  test('stays unsynced when the clock of its boot was never synced', () => {
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
