/** A buffer file that cannot be opened when the daemon starts, and can a while later. */
import { mkdtempSync, renameSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { JournalEntry } from '../../../src/kit/outbox/protocol.ts';
import { openStore } from '../../../src/kit/outbox/store/store.ts';
import { eventually } from '../../support/eventually.ts';
import { openLab } from '../../support/disk/outbox-lab.ts';
import { StoreLab, storeOptions, taskEntry, work } from '../../support/disk/store-lab.ts';

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'kit-connector-unreadable-'));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

const task = taskEntry({ state: 'running' });

function hide(file: string): void {
  renameSync(file, `${file}.hidden`);
  symlinkSync('.', file);
}

/** In one step: a store that looks while there is no file makes a new one. */
function show(file: string): void {
  renameSync(`${file}.hidden`, file);
}

test('the first commit after the file was opened reports what an earlier run left in it, once', () => {
  using lab = new StoreLab();
  lab.store.commit(work({ rows: lab.rows('presence', 1, 2, { channel: 'asset/a' }), journal: [task] }));
  lab.store.confirm({ epoch: lab.opened.epoch, ranges: [] });
  lab.store.close();
  hide(lab.file);
  expect(lab.open()).toMatchObject({ open_tasks: [], cloud_acks: false, health: { state: 'failing' } });
  show(lab.file);
  const later = { ...task, task_id: 'of-this-run', state: 'pending' } as const;
  expect(lab.store.admit(later)).toBeUndefined();
  const done = lab.store.commit(work({}));
  expect(done.found).toMatchObject({
    open_tasks: [{ task_id: task.task_id }],
    drops: [{ reason: 'superseded', rows: 1 }],
    announced: [{ channel: 'asset/a' }],
    cloud_acks: true,
  });
  expect(lab.store.commit(work({})).found).toBeUndefined();
  expect(lab.reopen().open_tasks.map(({ task_id }) => task_id)).toEqual([task.task_id, 'of-this-run']);
  expect(lab.store.commit(work({})).found).toBeUndefined();
});

test('the outbox hands over the tasks that were left open as soon as the file can be read', async () => {
  const { file } = storeOptions(dir);
  const first = openStore(storeOptions(dir));
  first.store.commit(work({ journal: [task] }));
  first.store.close();
  hide(file);
  const lab = await openLab(dir);
  const { outbox } = lab;
  const found: JournalEntry[] = [];
  outbox.onLeftOpen = (entries) => found.push(...entries);
  expect(outbox.left_open).toEqual([]);
  lab.send('alarm', 1);
  show(file);
  await eventually('the file is opened', () => found.length > 0);
  expect(found).toEqual([task]);
  await outbox.close();
});

test('the outbox opens the file also when it has nothing to write', async () => {
  const { file } = storeOptions(dir);
  openStore(storeOptions(dir)).store.close();
  hide(file);
  const { outbox } = await openLab(dir);
  expect(outbox.health().state).toBe('failing');
  show(file);
  await eventually('the file is opened', () => outbox.health().state === 'ok');
  await outbox.close();
});
