/**
 * A buffer file that is deleted or replaced while the daemon uses it, as a technician or a backup tool does it. SQLite reports
 * nothing in WAL mode (WiseLibs/better-sqlite3#1237), a log that stays would be replayed over the next file
 * (DeusData/codebase-memory-mcp#897), and log and index alone may be deleted (holon-run/holon#2850, nfrastack/db-backup#423).
 */
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { StorageUnavailable } from '../../../src/platform/errors.ts';
import type { Opened } from '../../../src/kit/outbox/protocol.ts';
import { openStore } from '../../../src/kit/outbox/store/store.ts';
import { texts } from '../../../src/kit/outbox/texts.ts';
import { diskMissing, fillUp, withExt4, withTmpfs } from '../../support/disk/disks.ts';
import { rowsOf, StoreLab, storeOptions, taskEntry, work } from '../../support/disk/store-lab.ts';

const parts = ['', '-wal', '-shm'] as const;
const task = taskEntry();

/** A file in a folder of its own, with the copies that a backup tool made of it earlier in `copies`. */
class Lab extends StoreLab {
  constructor() {
    super();
    this.reopen({ ...storeOptions(join(this.dir, 'state'), {}), runtime_dir: join(this.dir, 'run') });
  }

  get state_dir(): string {
    return dirname(this.file);
  }

  copy(part: string): string {
    return join(this.dir, 'copies', basename(this.file) + part);
  }

  override open(options = {}): Opened {
    for (const name of ['state', 'run', 'copies']) mkdirSync(join(this.dir, name), { recursive: true });
    return super.open(options);
  }

  fill(): void {
    this.store.commit(work({ rows: this.rows('alarm', 1, 2) }));
    for (const part of parts) copyFileSync(this.file + part, this.copy(part));
    const [refused] = this.rows('kit', 3, 3);
    if (!refused) throw new Error('no row');
    // More than the log holds: a part of them is in the file.
    const body = JSON.stringify({ pad: 'x'.repeat(6_000) });
    this.store.commit(work({ rows: [refused, ...this.rows('feed', 4, 1_003, { body })], journal: [task] }));
    this.store.commit(
      work({
        delivered: this.rows('alarm', 1, 1),
        quarantined: [{ row: refused, code: 0x99, reason: 'not JSON' }],
        dropped: [{ epoch: this.opened.epoch, lane: 'feed', reason: 'memory_full', rows: 7, lo: 9, hi: 20 }],
      }),
    );
  }

  /** The files as a kill of the process leaves them, opened by the next one. */
  openAfterKill(): Opened {
    const left = join(this.dir, 'killed');
    mkdirSync(left);
    for (const name of readdirSync(this.state_dir))
      copyFileSync(join(this.state_dir, name), join(left, name));
    this.store.close();
    return this.open({ file: join(left, basename(this.file)) });
  }
}

function remove(paths: readonly string[]): void {
  for (const path of paths) rmSync(path);
}

const deeds: readonly (readonly [string, (lab: Lab) => void])[] = [
  ['the file is deleted', ({ file }) => rmSync(file)],
  ['the file, its log and its index are deleted', ({ file }) => remove(parts.map((part) => file + part))],
  ['a restored copy is moved over it', (lab) => renameSync(lab.copy(''), lab.file)],
  [
    'a restored copy is moved over it, with its log',
    (lab) => {
      for (const part of parts) renameSync(lab.copy(part), lab.file + part);
    },
  ],
  [
    'a backup tool renames it and puts a copy of it in its place',
    ({ file }) => {
      renameSync(file, `${file}.old`);
      copyFileSync(`${file}.old`, file);
    },
  ],
  ['its folder is deleted', ({ state_dir }) => rmSync(state_dir, { recursive: true })],
  ['its folder is moved away', ({ state_dir, dir }) => renameSync(state_dir, join(dir, 'away'))],
  [
    'its folder is replaced by another one',
    ({ state_dir, dir }) => {
      renameSync(state_dir, join(dir, 'away'));
      renameSync(join(dir, 'copies'), state_dir);
    },
  ],
  ['its log is deleted', ({ file }) => rmSync(`${file}-wal`)],
  ['its log and the index of it are deleted', ({ file }) => remove([`${file}-wal`, `${file}-shm`])],
];

describe('Buffer file that is gone while it is in use', () => {
  it.each(deeds)('loses nothing when %s, also when the process is killed then', (_, deed) => {
    using lab = new Lab();
    lab.fill();
    const { epoch } = lab.opened;
    deed(lab);
    const done = lab.store.commit(work({ rows: lab.rows('feed', 1_004, 1_004) }));
    expect(done).toMatchObject({
      removed: [],
      quarantined_rows: 1,
      depth: { alarm: { rows: 1 }, feed: { rows: 1_001 } },
      health: { state: 'ok' },
    });
    expect(lab.openAfterKill()).toMatchObject({
      epoch: epoch + 1,
      depth: { alarm: { rows: 1 }, feed: { rows: 1_001 } },
      quarantined_rows: 1,
      drops: [{ epoch, lane: 'feed', reason: 'memory_full', rows: 7 }],
      salvage: undefined,
    });
    expect(lab.counted().feed.rows).toBe(1_001);
    expect(lab.store.findTask(task.task_id)).toEqual(task);
  });

  // Whoever restores a copy while the daemon runs mostly overwrites the file in place (vavallee/bindery#2337, Basekick-Labs/arc#635).
  it.each<[string, (lab: Lab) => void]>([
    ['cut off', ({ file }) => truncateSync(file, 0)],
    ['overwritten by an older copy', (lab) => copyFileSync(lab.copy(''), lab.file)],
  ])('names each row that cannot be read any more when the file is %s in place', (_, deed) => {
    using lab = new Lab();
    lab.fill();
    lab.reopen();
    deed(lab);
    let named = 0;
    let delivered = 0;
    for (let turn = 0; turn < 30; turn += 1) {
      const { rows } = lab.store.take({ lane: 'feed', form: 'rows', rows_max: 100, bytes_max: 1e9 });
      const { removed } = lab.store.commit(work({ delivered: rows }));
      for (const { lane, why, rows: gone } of removed) {
        if (lane === 'feed' && why === 'unreadable') named += gone;
        if (lane === 'feed' && why === 'delivered') delivered += gone;
      }
    }
    expect(delivered + named).toBe(1_000);
    expect(lab.store.commit(work({})).depth.feed.rows).toBe(0);
  });

  it('is reported once, with where the file in its place was moved to', () => {
    using lab = new Lab();
    lab.fill();
    renameSync(lab.copy(''), lab.file);
    const [first, second] = [lab.store.look(), lab.store.look()];
    expect(first.salvage).toEqual({
      kind: 'replaced',
      cause: texts.file_gone,
      moved_to: `${lab.file}.replaced-1`,
      rows_saved: 1_001,
      rows_lost: 0,
    });
    expect(existsSync(`${lab.file}.replaced-1`)).toBe(true);
    expect(second.salvage).toBeUndefined();
  });

  it('waits in its handle while no new file can be made, and is rescued then', () => {
    using lab = new Lab();
    lab.fill();
    block(lab);
    expect(() => lab.store.look()).toThrow(StorageUnavailable);
    expect(() => lab.store.commit(work({}))).toThrow(lab.file);
    rmSync(lab.state_dir);
    expect(lab.store.commit(work({}))).toMatchObject({ removed: [], depth: { feed: { rows: 1_000 } } });
    expect(lab.reopen()).toMatchObject({ depth: { alarm: { rows: 1 }, feed: { rows: 1_000 } } });
  });

  it('is named by the next start when no new file could be made until the stop', () => {
    using lab = new Lab();
    lab.fill();
    const { epoch } = lab.opened;
    block(lab);
    lab.store.close();
    rmSync(lab.state_dir);
    expect(lab.open().drops).toMatchObject([
      { epoch, lane: 'alarm', reason: 'unreadable', rows: 1 },
      { epoch, lane: 'feed', reason: 'unreadable', rows: 1_000 },
    ]);
    expect(lab.reopen().drops).toHaveLength(2);
  });

  it('is not named when its folder is back at the next start', () => {
    using lab = new Lab();
    lab.fill();
    block(lab);
    lab.store.close();
    rmSync(lab.state_dir);
    renameSync(join(lab.dir, 'away'), lab.state_dir);
    expect(lab.open()).toMatchObject({
      depth: { feed: { rows: 1_000 } },
      drops: [{ reason: 'memory_full', rows: 7 }],
    });
  });
});

/** Takes the folder away, and makes that no other can be made. */
function block({ state_dir, dir }: Lab): void {
  renameSync(state_dir, join(dir, 'away'));
  writeFileSync(state_dir, '');
}

describe.skipIf(diskMissing())('Buffer file on a disk that is taken away', () => {
  const body = JSON.stringify({ pad: 'x'.repeat(9_000) });

  it('is named, and a new one begins in the folder below the mount', async () => {
    await withExt4(32, (dir, disk) => {
      const { store, opened } = openStore(storeOptions(dir));
      store.commit(work({ rows: rowsOf(opened.epoch, 1, 40, { body }) }));
      disk.shutdown();
      expect(() => store.commit(work({ rows: rowsOf(opened.epoch, 41, 41, { body }) }))).toThrow(
        StorageUnavailable,
      );
      disk.takeAway();
      expect(store.commit(work({ rows: rowsOf(opened.epoch, 41, 42, { body }) }))).toMatchObject({
        depth: { feed: { rows: 2 } },
        removed: [{ lane: 'feed', why: 'unreadable', rows: 40 }],
        salvage: { kind: 'replaced', rows_saved: 0, rows_lost: 40 },
      });
      store.close();
      expect(openStore(storeOptions(dir)).opened.drops).toMatchObject([{ reason: 'unreadable', rows: 40 }]);
    });
  });

  it('is rescued as far as the disk has room, the most important first, and the rest is named', async () => {
    await withTmpfs(24, (dir) => {
      const { store, opened } = openStore(storeOptions(dir));
      store.commit(work({ rows: rowsOf(opened.epoch, 1, 50, { lane: 'task', body }), journal: [task] }));
      for (let from = 51; from < 1_051; from += 100)
        store.commit(work({ rows: rowsOf(opened.epoch, from, from + 99, { body }) }));
      rmSync(join(dir, 'buffer.db'));
      rmSync(join(dir, 'buffer.db-wal'));
      const hog = fillUp(dir);
      const { depth, removed } = store.look();
      const lost = removed.reduce((sum, { rows }) => sum + rows, 0);
      expect(removed.every(({ lane, why }) => lane === 'feed' && why === 'unreadable')).toBe(true);
      expect(lost).toBeGreaterThan(0);
      expect([depth.task.rows, depth.feed.rows + lost]).toEqual([50, 1_000]);
      expect(store.findTask(task.task_id)).toEqual(task);
      rmSync(hog);
      store.close();
    });
  });
});
