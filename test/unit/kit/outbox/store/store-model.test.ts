import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { unpackBatch } from '../../../../../src/contract/batch/batch.ts';
import { lanes, type Lane } from '../../../../../src/contract/lanes.ts';
import type { Done, RowRef, TakenBatch } from '../../../../../src/kit/outbox/protocol.ts';
import { rowId, type Row, type RowId } from '../../../../../src/kit/outbox/row.ts';
import { idsOnDisk, StoreLab, work } from '../../../../support/disk/store-lab.ts';

/** Every step waits for the disk, which others may keep busy. */
const interruptAfterTimeLimit = 60_000;

/** The main thread's side: what went in, what it holds, and what it was told. */
class Model {
  accepted = 0;
  seq = 0;
  /** Rows whose number was given, to be written later than their neighbours. */
  readonly late: Row[] = [];
  rows: RowRef[] = [];
  batches: TakenBatch[] = [];
  /** Acknowledged by the broker, not yet by the cloud. */
  readonly unconfirmed = new Set<RowId>();
  readonly told = new Map<string, number>();

  hear(done: Done): void {
    for (const { why, rows } of done.removed) this.told.set(why, (this.told.get(why) ?? 0) + rows);
  }

  forgetHands(): void {
    this.rows = [];
    this.batches = [];
  }
}

type Step = (lab: StoreLab, model: Model) => void;

const lane = fc.constantFrom<Lane>(...lanes);

function commit(lab: StoreLab, model: Model, parts: Parameters<typeof work>[0]): void {
  model.accepted += parts.rows?.length ?? 0;
  model.hear(lab.store.commit(work(parts)));
}

const append = fc
  .tuple(lane, fc.integer({ min: 1, max: 12 }), fc.integer({ min: 0, max: 3 }), fc.boolean())
  .map(([lane, count, late, hold]): Step => (lab, model) => {
    const rows = lab
      .rows(lane, model.seq + 1, model.seq + count, { channel: `feed/a/${model.seq % 3}` })
      .map((row) => ({ ...row, time_ms: row.id % 97 }));
    model.seq += count;
    const now = rows.slice(0, count - late);
    model.late.push(...rows.slice(now.length));
    commit(lab, model, { rows: now, held: hold ? now.map(({ id }) => id) : [] });
    if (hold) model.rows.push(...now);
  });

const appendLate = fc.constant<Step>((lab, model) => commit(lab, model, { rows: model.late.splice(0) }));

const take = fc
  .tuple(lane, fc.integer({ min: 1, max: 8 }), fc.boolean())
  .map(([lane, rows_max, batched]): Step => (lab, model) => {
    const taken = lab.store.take({ lane, rows_max, bytes_max: 300, form: batched ? 'batch' : 'rows' });
    const ids = new Set(model.rows.map(({ id }) => id));
    for (const { id } of taken.rows) expect(ids.has(id)).toBe(false);
    model.rows.push(...taken.rows);
    if (taken.batch) model.batches.push(taken.batch);
  });

const deliver = fc.integer({ min: 0, max: 20 }).map((count): Step => (lab, model) => {
  const delivered = model.rows.splice(0, count);
  commit(lab, model, { delivered, delivered_batches: model.batches.splice(0, 1).map(({ token }) => token) });
});

const refuse = fc.constant<Step>((lab, model) => {
  const [ref] = model.rows;
  if (!ref) return;
  model.rows = model.rows.filter(({ id }) => id !== ref.id);
  const row = { channel: 'x', time_ms: 1, mono_ms: null, body: '1', ...ref };
  commit(lab, model, { quarantined: [{ row, code: 1, reason: 'no' }] });
});

const release = fc.constant<Step>((lab, model) => {
  lab.store.release({ rows: model.rows, batches: model.batches.map(({ token }) => token) });
  model.forgetHands();
});

const unconfirmed = fc.constant<Step>((lab, model) => {
  const rows = model.rows.splice(0, 5);
  const batches = model.batches.splice(0, 1);
  for (const { id } of rows) model.unconfirmed.add(id);
  for (const { payload } of batches)
    for (const position of unpackBatch(payload)) model.unconfirmed.add(rowId(position));
  commit(lab, model, { unconfirmed: rows, unconfirmed_batches: batches.map(({ token }) => token) });
});
const resend = fc.constant<Step>((lab) => void lab.store.resendUnconfirmed({ older_than_ms: 0, lazy: true }));
const releaseAll = fc.constant<Step>((lab, model) => {
  lab.store.releaseAll();
  model.forgetHands();
});

const confirm = fc.tuple(fc.nat(60), fc.nat(30)).map(([lo, more]): Step => (lab, model) => {
  const before = idsOnDisk(lab.file);
  model.hear(lab.store.confirm({ epoch: lab.opened.epoch, ranges: [[lo, lo + more]] }));
  const after = new Set(idsOnDisk(lab.file));
  const released = before.filter((id) => !after.has(id));
  expect(released.filter((id) => !model.unconfirmed.has(id))).toEqual([]);
});

const retry = fc.constant<Step>((lab, model) => model.hear(lab.store.retryQuarantined(undefined)));
const discard = fc.constant<Step>((lab, model) => model.hear(lab.store.discardQuarantined(undefined)));
const restart = fc.constant<Step>((lab, model) => {
  const before = lab.counted();
  const { depth } = lab.reopen();
  // Values that were in flight while a newer one of their topic was delivered.
  const superseded = before.presence.rows - depth.presence.rows;
  expect(depth).toEqual({ ...before, presence: depth.presence });
  model.told.set('superseded', (model.told.get('superseded') ?? 0) + superseded);
  model.unconfirmed.clear();
  model.forgetHands();
  model.late.length = 0;
});

const step = fc.oneof(
  { weight: 6, arbitrary: append },
  { weight: 6, arbitrary: take },
  { weight: 5, arbitrary: deliver },
  { weight: 2, arbitrary: appendLate },
  ...[refuse, release, unconfirmed, resend, releaseAll, confirm, retry, discard, restart].map(
    (arbitrary) => ({ weight: 1, arbitrary }),
  ),
);

test('Store delivers, buffers, quarantines or reports as dropped every row under any operations, with correct counters', () => {
  fc.assert(
    fc.property(fc.array(step, { minLength: 1, maxLength: 60 }), (steps) => {
      using lab = new StoreLab({ rows_max: 60 }, { unconfirmed_max: 3 });
      const model = new Model();
      for (const run of steps) {
        run(lab, model);
        const done = lab.store.commit(work({}));
        model.hear(done);
        expect(lab.counted()).toEqual(done.depth);
        const told = [...model.told]
          .filter(([why]) => why !== 'quarantined')
          .reduce((sum, [, rows]) => sum + rows, 0);
        const buffered = lanes.reduce((sum, lane) => sum + done.depth[lane].rows, 0);
        expect(told + buffered + done.quarantined_rows).toBe(model.accepted);
      }
    }),
    { numRuns: 60, interruptAfterTimeLimit },
  );
});

test(
  'Store returns every row of a drained buffer exactly once, in any order of arrival',
  { tags: 'long' },
  () => {
    fc.assert(
      fc.property(
        fc.array(fc.uniqueArray(fc.nat(400), { minLength: 1, maxLength: 30 }), {
          minLength: 1,
          maxLength: 8,
        }),
        fc.integer({ min: 1, max: 20 }),
        (commits, rows_max) => {
          using lab = new StoreLab();
          const seen: number[] = [];
          for (const seqs of commits) {
            lab.store.commit(work({ rows: seqs.map((seq) => lab.row('feed', seq)) }));
            seen.push(...lab.takeSeqs('feed', rows_max));
          }
          seen.push(...lab.takeSeqs('feed'));
          expect(seen.toSorted((a, b) => a - b)).toEqual([...new Set(commits.flat())].sort((a, b) => a - b));
        },
      ),
      { numRuns: 60, interruptAfterTimeLimit },
    );
  },
);
