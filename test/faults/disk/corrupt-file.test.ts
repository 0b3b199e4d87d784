import {
  closeSync,
  copyFileSync,
  existsSync,
  openSync,
  readdirSync,
  renameSync,
  statSync,
  truncateSync,
  writeSync,
} from 'node:fs';
import Database from 'better-sqlite3';
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { lanes } from '../../../src/contract/lanes.ts';
import type { Done } from '../../../src/kit/outbox/protocol.ts';
import { countRows, StoreLab, work } from '../../support/disk/store-lab.ts';

const page_bytes = 4096;

/** A buffer with something in every table: many feed rows, and a few of everything else. */
function filledLab(): StoreLab {
  const lab = new StoreLab();
  const refused = lab.row('feed', 80);
  const times = { received_ms: 1, updated_ms: 2, deadline_ms: null };
  lab.store.commit(
    work({
      rows: [
        ...lab.rows('task', 1, 20),
        ...lab.rows('alarm', 30, 60),
        lab.row('presence', 70, { channel: 'asset/a' }),
        ...lab.rows('feed', 100, 20_099),
        refused,
      ],
      journal: [{ task_id: 't1', state: 'running', dispatch: '{}', result: '{}', ...times }],
      quarantined: [{ row: refused, code: 1, reason: 'no' }],
    }),
  );
  lab.store.confirm({ epoch: lab.opened.epoch, ranges: [] });
  return lab;
}
const filled_rows = 20 + 31 + 1 + 20_000;

/** Overwrites pages, numbered from 0, with bytes that mean nothing. */
function spoil(file: string, pages: readonly number[]): void {
  const fd = openSync(file, 'r+');
  for (const page of pages) writeSync(fd, Buffer.alloc(page_bytes, 0xa5), 0, page_bytes, page * page_bytes);
  closeSync(fd);
}

/** The pages of a table that hold rows come last, in the order of their keys; numbered from 0. */
function pagesOf(file: string, table: string): number[] {
  const db = new Database(file, { readonly: true });
  const pages = db
    .prepare<[string], number>(
      "SELECT pageno - 1 FROM dbstat WHERE name = ? ORDER BY pagetype = 'leaf', path",
    )
    .pluck()
    .all(table);
  db.close();
  return pages;
}

/** Takes and delivers all of the feed; answers how many rows came and how many were told as unreadable. */
function drain(lab: StoreLab): {
  readonly delivered: number;
  readonly unreadable: number;
  readonly done: Done[];
} {
  const done: Done[] = [];
  let delivered = 0;
  for (;;) {
    const { rows, drained } = lab.store.take({ lane: 'feed', form: 'rows', rows_max: 500, bytes_max: 1e9 });
    delivered += rows.length;
    done.push(lab.store.commit(work({ delivered: rows })));
    if (drained) break;
  }
  const removed = done
    .flatMap((one) => one.removed)
    .filter(({ lane, why }) => lane === 'feed' && why === 'unreadable');
  return { delivered, unreadable: removed.reduce((sum, { rows }) => sum + rows, 0), done };
}

describe('a buffer file that is damaged when it is opened', () => {
  test.each([
    ['its header', 100],
    ['its first page', page_bytes],
  ])('loses nothing but %s', (_, bytes) => {
    using lab = filledLab();
    lab.store.close();
    const fd = openSync(lab.file, 'r+');
    writeSync(fd, Buffer.alloc(bytes, 0xa5), 0, bytes, 0);
    closeSync(fd);
    const { epoch } = lab.opened;
    const opened = lab.open();
    expect(opened).toMatchObject({
      epoch: epoch + 1,
      salvage: { moved_to: `${lab.file}.damaged-1`, rows_saved: filled_rows, rows_lost: 0 },
      announced: [{ channel: 'asset/a' }],
      open_tasks: [{ task_id: 't1' }],
      quarantined_rows: 1,
      cloud_acks: true,
      drops: [],
    });
    expect(opened.depth).toEqual(countRows(lab.file));
    expect(existsSync(`${lab.file}.damaged-1`)).toBe(true);
    expect(lab.reopen()).toMatchObject({ epoch: epoch + 2, salvage: undefined });
  });

  test('is read past its broken pages, and missing rows are counted and reported', () => {
    using lab = filledLab();
    lab.store.close();
    const [, ...leaves] = pagesOf(lab.file, 'lane_feed');
    spoil(lab.file, [0, ...leaves.filter((_, index) => index % 10 === 5)]);
    const { salvage, depth, drops } = lab.open();
    expect(salvage?.rows_saved).toBeGreaterThan(filled_rows * 0.8);
    expect(salvage?.rows_lost).toBeGreaterThan(0);
    expect((salvage?.rows_saved ?? 0) + (salvage?.rows_lost ?? 0)).toBe(filled_rows);
    expect(depth).toEqual(countRows(lab.file));
    expect(drops).toMatchObject([{ lane: 'feed', reason: 'unreadable', rows: salvage?.rows_lost }]);
  });

  test('gives the rows before the cut when it was cut off in the middle', () => {
    using lab = filledLab();
    lab.store.close();
    truncateSync(lab.file, Math.floor(statSync(lab.file).size / 2 / page_bytes) * page_bytes);
    const { delivered, lost } = drainAfter(lab);
    expect(delivered).toBeGreaterThan(8_000);
    expect(delivered + (lost ?? 0)).toBe(20_000);
  });

  test('loses one lane when the root of its table is broken, and no other', () => {
    using lab = filledLab();
    lab.store.close();
    spoil(lab.file, [0, ...pagesOf(lab.file, 'lane_task')]);
    expect(lab.open()).toMatchObject({
      salvage: { rows_saved: filled_rows - 20, rows_lost: 20 },
      drops: [{ epoch: lab.opened.epoch - 1, lane: 'task', reason: 'unreadable', rows: 20 }],
    });
  });

  test('is read from its second page on when the first messages of a lane are broken', () => {
    using lab = filledLab();
    lab.store.close();
    const [, first] = pagesOf(lab.file, 'lane_feed');
    spoil(lab.file, [0, first ?? 0]);
    expect(lab.open().salvage?.rows_lost).toBeLessThan(200);
  });

  test('has every channel twice: the page of either copy may be lost', () => {
    for (const part of ['topics', 'sqlite_autoindex_topics_1']) {
      using lab = filledLab();
      lab.store.close();
      spoil(lab.file, [0, ...pagesOf(lab.file, part)]);
      expect(lab.open().salvage).toMatchObject({ rows_saved: filled_rows, rows_lost: 0 });
    }
  });

  test('of which nothing is left is replaced by a new one whose numbers are used by no other', () => {
    using lab = filledLab();
    const { epoch } = lab.opened;
    lab.store.close();
    const pages = statSync(lab.file).size / page_bytes;
    spoil(
      lab.file,
      Array.from({ length: pages }, (_, page) => page),
    );
    const opened = lab.open();
    expect(opened.epoch).toBeGreaterThan(epoch);
    expect(opened.salvage).toMatchObject({ rows_saved: 0, rows_lost: null });
    expect(lab.store.commit(work({ rows: lab.rows('feed', 1, 3) })).depth.feed.rows).toBe(3);
  });

  test('is kept aside, the two last ones at most', () => {
    using lab = new StoreLab();
    for (let n = 0; n < 4; n += 1) {
      lab.store.close();
      spoil(lab.file, [0]);
      lab.open();
    }
    const kept = readdirSync(lab.dir).filter((name) => /damaged-\d+$/u.test(name));
    expect(kept.sort()).toEqual(['buffer.db.damaged-3', 'buffer.db.damaged-4']);
  });
});

describe('a power cut while a damaged file is replaced', () => {
  test('before the new file is complete begins again', () => {
    using lab = filledLab();
    lab.store.close();
    copyFileSync(lab.file, `${lab.file}.new`);
    truncateSync(`${lab.file}.new`, 10 * page_bytes);
    spoil(lab.file, [0]);
    expect(lab.open().salvage).toMatchObject({ rows_saved: filled_rows, rows_lost: 0 });
  });

  test('after the damaged one was moved aside takes the new file, which is complete by then', () => {
    using lab = filledLab();
    lab.store.close();
    renameSync(lab.file, `${lab.file}.new`);
    expect(lab.open()).toMatchObject({ salvage: undefined, depth: { feed: { rows: 20_000 } } });
    expect(existsSync(`${lab.file}.new`)).toBe(false);
  });
});

describe('a buffer file that turns out to be damaged while it is in use', () => {
  test('is replaced on the way: the rest is delivered, the epoch stays, and the loss is reported', () => {
    using lab = filledLab();
    const leaves = pagesOf(lab.file, 'lane_feed');
    lab.reopen();
    const { epoch } = lab.opened;
    spoil(lab.file, leaves.slice(20, 40));
    const { delivered, unreadable, done } = drain(lab);
    expect(unreadable).toBeGreaterThan(0);
    expect(delivered + unreadable).toBe(20_000);
    expect(done.filter(({ salvage }) => salvage)).toHaveLength(1);
    expect(done.at(-1)?.depth).toEqual(countRows(lab.file));
    expect(lab.reopen().epoch).toBe(epoch + 1);
    expect(lab.opened.drops).toMatchObject([{ reason: 'unreadable', rows: unreadable }]);
  });

  test(
    'at any position leaves a working store that delivers every row or reports it as lost',
    { tags: 'long' },
    () => {
      fc.assert(
        fc.property(fc.uniqueArray(fc.nat(400), { minLength: 1, maxLength: 40 }), (pages) => {
          using lab = filledLab();
          lab.store.close();
          const last = statSync(lab.file).size / page_bytes;
          spoil(
            lab.file,
            pages.filter((page) => page < last),
          );
          const { delivered, lost } = drainAfter(lab);
          // When its own counters are lost too, nobody can know.
          expect(delivered + (lost ?? 20_000 - delivered)).toBe(20_000);
          for (const lane of lanes) lab.takeSeqs(lane);
          const done = lab.store.commit(work({ rows: lab.rows('kit', 1, 5) }));
          expect(done.depth.kit.rows).toBe(5);
          for (const lane of lanes) expect(done.depth[lane]).toEqual(countRows(lab.file)[lane]);
        }),
        { numRuns: 15 },
      );
    },
  );
});

/** Opens, drains the feed, and adds up what was lost then and on the way; undefined when nobody can know. */
function drainAfter(lab: StoreLab): { readonly delivered: number; readonly lost: number | undefined } {
  const { salvage, drops } = lab.open();
  const lost_at_open = drops.filter(({ lane }) => lane === 'feed').reduce((sum, { rows }) => sum + rows, 0);
  const { delivered, unreadable } = drain(lab);
  return { delivered, lost: salvage?.rows_lost === null ? undefined : lost_at_open + unreadable };
}
