import { existsSync, readdirSync } from 'node:fs';
import Database from 'better-sqlite3';
import { expect, test } from 'vitest';
import { StoreLab, work } from '../../support/store-lab.ts';

/** Makes the file what a later release would have made of it. */
function upgrade(lab: StoreLab, min_reader: number): void {
  lab.store.close();
  const db = new Database(lab.file);
  db.exec(`ALTER TABLE lane_feed ADD COLUMN priority INTEGER NOT NULL DEFAULT 7;
    CREATE TABLE routes (id INTEGER PRIMARY KEY, link TEXT);
    INSERT INTO routes (link) VALUES ('satellite');
    UPDATE meta SET value = 2 WHERE key = 'schema_version';
    UPDATE meta SET value = ${min_reader} WHERE key = 'min_reader';`);
  db.close();
}

test('a file of the next version is used as it is when that version says so', () => {
  using lab = new StoreLab();
  lab.store.commit(work({ rows: lab.rows('feed', 1, 3) }));
  upgrade(lab, 1);
  expect(lab.open()).toMatchObject({ depth: { feed: { rows: 3 } }, salvage: undefined });
  lab.store.commit(work({ rows: lab.rows('feed', 4, 5) }));
  expect(lab.takeSeqs('feed')).toEqual([1, 2, 3, 4, 5]);
  lab.store.close();
  using db = disposable(new Database(lab.file));
  expect(db.it.prepare('SELECT link FROM routes').pluck().all()).toEqual(['satellite']);
  expect(db.it.prepare("SELECT value FROM meta WHERE key = 'schema_version'").pluck().get()).toBe(2);
});

test('a file that only later versions can read is moved aside whole, and the epoch goes on', () => {
  using lab = new StoreLab();
  lab.store.commit(work({ rows: lab.rows('feed', 1, 3) }));
  const { epoch } = lab.opened;
  upgrade(lab, 2);
  const opened = lab.open();
  expect(opened.epoch).toBeGreaterThan(epoch);
  expect(opened.depth.feed.rows).toBe(0);
  expect(opened.salvage).toMatchObject({ rows_saved: 0, rows_lost: null, moved_to: `${lab.file}.too-new-1` });
  expect(opened.salvage?.cause).toContain('version 2');
  expect(existsSync(`${lab.file}.too-new-1`)).toBe(true);
  expect(lab.reopen().salvage).toBeUndefined();
});

test('files of later versions are never erased, however often it happens', () => {
  using lab = new StoreLab();
  for (let n = 0; n < 4; n += 1) {
    upgrade(lab, 2);
    lab.open();
  }
  expect(readdirSync(lab.dir).filter((name) => /too-new-\d+$/u.test(name))).toHaveLength(4);
});

test('a file of nothing, as a power cut can leave it, is begun anew', () => {
  using lab = new StoreLab();
  lab.store.close();
  using db = disposable(new Database(`${lab.file}.empty`));
  expect(lab.open({ file: db.it.name })).toMatchObject({ salvage: undefined, health: { state: 'ok' } });
});

function disposable(it: Database.Database): Disposable & { readonly it: Database.Database } {
  return { it, [Symbol.dispose]: () => it.close() };
}
