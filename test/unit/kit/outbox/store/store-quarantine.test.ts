import { describe, expect, test } from 'vitest';
import { lanes } from '../../../../../src/contract/lanes.ts';
import { rowId, type Row } from '../../../../../src/kit/outbox/row.ts';
import { StoreLab, work } from '../../../../support/disk/store-lab.ts';

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
    const { id, lane, channel, time_ms, body } = row;
    const listed = { id, lane, channel, time_ms, code: 0x87, reason, body_bytes: body.length };
    expect(lab.store.listQuarantined(0)).toEqual([listed]);
    expect(lab.store.findQuarantined(id)).toEqual({ ...listed, body });
    expect(lab.store.findQuarantined(id + 1)).toBeUndefined();
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

  test('does not take a row that was superseded meanwhile: it was reported as dropped', () => {
    using lab = new StoreLab();
    const [old, newer] = [lab.row('presence', 1), lab.row('presence', 2)];
    lab.store.commit(work({ rows: [old] }));
    const done = lab.store.commit(work({ rows: [newer], quarantined: [{ row: old, code: 0x87, reason }] }));
    expect(done).toMatchObject({ quarantined_rows: 0, removed: [{ why: 'superseded', rows: 1 }] });
  });

  /** Puts rows into the quarantine the way the main thread does. */
  function refuse(lab: StoreLab, rows: readonly Row[]) {
    return lab.store.commit(work({ rows, quarantined: rows.map((row) => ({ row, code: 0x87, reason })) }));
  }
  const large = `{"r":"${'x'.repeat(64_000)}"}`;

  test('keeps a thousand and more messages while the buffer has room for them', () => {
    using lab = new StoreLab();
    refuse(lab, lab.rows('alarm', 1, 1_500));
    const done = refuse(lab, lab.rows('feed', 2_000, 2_999));
    expect(done).toMatchObject({ quarantined_rows: 2_500, removed: [{ why: 'quarantined', rows: 1_000 }] });
    const first = lab.store.listQuarantined(0);
    expect(first).toHaveLength(1_000);
    expect(lab.store.listQuarantined(first.at(-1)?.id ?? 0)).toHaveLength(1_000);
  });

  test('counts against the limits: evicts feed, then kit, then alarm, and never tasks and presence', () => {
    using lab = new StoreLab({ rows_max: 10 });
    for (const [index, lane] of lanes.entries()) {
      refuse(lab, [lab.row(lane, 10 * index), lab.row(lane, 10 * index + 1, { channel: `c/${lane}` })]);
    }
    const order: string[] = [];
    for (let seq = 100; seq < 116; seq += 1) {
      const { removed } = lab.store.commit(work({ rows: [lab.row('task', seq)] }));
      for (const { lane, why, rows } of removed)
        order.push(...Array.from({ length: rows }, () => `${lane} ${why}`));
    }
    expect(order).toEqual(['feed', 'feed', 'kit', 'kit', 'alarm', 'alarm'].map((lane) => `${lane} evicted`));
    expect(lab.store.listQuarantined(0).map(({ lane }) => lane)).toEqual([
      'task',
      'task',
      'presence',
      'presence',
    ]);
  });

  test('counts bytes against the limits too, after a restart as before', () => {
    using lab = new StoreLab({ bytes_max: 1_000_000 });
    refuse(lab, lab.rows('feed', 1, 10, { body: large }));
    lab.reopen();
    const { quarantined_rows, removed } = refuse(lab, lab.rows('alarm', 1, 10, { body: large }));
    expect(removed).toMatchObject([
      { lane: 'alarm', why: 'quarantined', rows: 10 },
      { lane: 'feed', why: 'evicted', rows: 6 },
    ]);
    expect(quarantined_rows).toBe(14);
  });

  test('expires messages older than the configured age, but no tasks', () => {
    const day_ms = 86_400_000;
    using lab = new StoreLab({ age_max_ms: 10 * day_ms });
    refuse(lab, [...lab.rows('task', 1, 2), ...lab.rows('alarm', 3, 5)]);
    lab.store.commit(work({ rows: lab.rows('feed', 9, 9) }));
    lab.clock.pass(day_ms);
    lab.store.commit(work({}));
    lab.clock.pass(10.5 * day_ms);
    const done = lab.store.commit(work({}));
    expect(done.removed).toMatchObject([
      { lane: 'feed', why: 'expired', rows: 1 },
      { lane: 'alarm', why: 'expired', rows: 3 },
    ]);
    expect(done.quarantined_rows).toBe(2);
  });

  test('keeps only the newest value of a retained channel', () => {
    using lab = new StoreLab();
    const at = (seq: number) => lab.row('presence', seq, { channel: 'asset/a' });
    refuse(lab, [at(1)]);
    expect(refuse(lab, [at(3)])).toMatchObject({
      quarantined_rows: 1,
      removed: [{ why: 'quarantined' }, { why: 'superseded', rows: 1 }],
    });
    lab.reopen();
    refuse(lab, [lab.row('presence', 1, { channel: 'asset/a' })]);
    expect(lab.store.listQuarantined(0)).toMatchObject([{ id: rowId({ epoch: lab.opened.epoch, seq: 1 }) }]);
  });

  test('puts back and discards more than one transaction should hold', () => {
    using lab = new StoreLab();
    for (let n = 0; n < 30; n += 1) refuse(lab, lab.rows('alarm', n * 10, n * 10 + 9, { body: large }));
    refuse(lab, lab.rows('feed', 1_000, 4_000));
    const back = lab.store.retryQuarantined(undefined);
    expect(back).toMatchObject({
      quarantined_rows: 0,
      depth: { alarm: { rows: 300 }, feed: { rows: 3_001 } },
    });
    expect(lab.takeSeqs('alarm')).toHaveLength(300);
    refuse(lab, lab.rows('kit', 5_000, 7_500));
    const ids = lab.rows('kit', 4_000, 7_400).map(({ id }) => id);
    expect(lab.store.discardQuarantined(ids)).toMatchObject({
      quarantined_rows: 100,
      removed: [{ why: 'discarded', rows: 2_401 }],
    });
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
