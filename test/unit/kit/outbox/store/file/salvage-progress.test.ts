/** The progress of reading a damaged buffer file, which takes up to a minute. */
import { closeSync, openSync, writeSync } from 'node:fs';
import { afterEach, describe, expect, it, vi } from 'vitest';
import type { SalvageProgress } from '../../../../../../src/kit/outbox/protocol.ts';
import { startStore } from '../../../../../../src/kit/outbox/live/store-client.ts';
import { openStore } from '../../../../../../src/kit/outbox/store/store.ts';
import { StoreLab, work } from '../../../../../support/disk/store-lab.ts';

const rows = 20_000;
const step_ms = 40;

/** A closed file with messages whose first page is overwritten. */
function damagedLab(): StoreLab {
  const lab = new StoreLab();
  lab.store.commit(work({ rows: lab.rows('feed', 1, rows) }));
  lab.store.close();
  const fd = openSync(lab.file, 'r+');
  writeSync(fd, Buffer.alloc(4_096, 0xa5), 0, 4_096, 0);
  closeSync(fd);
  return lab;
}

afterEach(() => vi.restoreAllMocks());

describe('The salvage of a damaged buffer file', () => {
  it('is reported from the thread at its beginning and at its end', async () => {
    using lab = damagedLab();
    const reports: SalvageProgress[] = [];
    const { client, opened } = await startStore(lab.options, (progress) => reports.push(progress));
    expect(reports.at(0)).toEqual({ rows_saved: 0, rows_expected: rows, done: false });
    expect(reports.at(-1)).toEqual({ rows_saved: rows, rows_expected: rows, done: true });
    expect(opened.salvage?.rows_saved).toBe(rows);
    await client.close();
  });

  it('is reported twice a second in between, with a count that grows', () => {
    using lab = damagedLab();
    let now_ms = 0;
    vi.spyOn(performance, 'now').mockImplementation(() => (now_ms += step_ms));
    const reports: (SalvageProgress & { readonly at_ms: number })[] = [];
    const { store } = openStore({
      ...lab.options,
      onSalvage: (progress) => reports.push({ ...progress, at_ms: now_ms }),
    });
    store.close();
    const between = reports.slice(1, -1);
    expect(between.length).toBeGreaterThan(0);
    for (const [index, { rows_saved, at_ms }] of between.entries()) {
      const before = reports[index];
      expect(rows_saved).toBeGreaterThan(before?.rows_saved ?? 0);
      expect(at_ms - (before?.at_ms ?? 0)).toBeGreaterThanOrEqual(500);
    }
  });

  it('is not reported for a file that is whole', async () => {
    using lab = new StoreLab();
    lab.store.close();
    const reports: SalvageProgress[] = [];
    const { client, opened } = await startStore(lab.options, (progress) => reports.push(progress));
    expect([opened.salvage, reports]).toEqual([undefined, []]);
    await client.close();
  });
});
