import { existsSync, readdirSync } from 'node:fs';
import Database from 'better-sqlite3';
import { expect, test } from 'vitest';
import { schema_version } from '../../../../../src/kit/outbox/store/schema.ts';
import { StoreLab, work } from '../../../../support/disk/store-lab.ts';

const next_version = schema_version + 1;

/** Makes the file what a later release would have made of it. */
function upgrade(lab: StoreLab, min_reader: number): void {
  lab.store.close();
  const db = new Database(lab.file);
  db.exec(`ALTER TABLE lane_feed ADD COLUMN priority INTEGER NOT NULL DEFAULT 7;
    CREATE TABLE routes (id INTEGER PRIMARY KEY, link TEXT);
    INSERT INTO routes (link) VALUES ('satellite');
    UPDATE meta SET value = ${next_version} WHERE key = 'schema_version';
    UPDATE meta SET value = ${min_reader} WHERE key = 'min_reader';`);
  db.close();
}

test('a file of the next version is used unchanged when its min_reader allows it', () => {
  using lab = new StoreLab();
  lab.store.commit(work({ rows: lab.rows('feed', 1, 3) }));
  upgrade(lab, 1);
  expect(lab.open()).toMatchObject({ depth: { feed: { rows: 3 } }, salvage: undefined });
  lab.store.commit(work({ rows: lab.rows('feed', 4, 5) }));
  expect(lab.takeSeqs('feed')).toEqual([1, 2, 3, 4, 5]);
  lab.store.close();
  using db = disposable(new Database(lab.file));
  expect(db.it.prepare('SELECT link FROM routes').pluck().all()).toEqual(['satellite']);
  expect(db.it.prepare("SELECT value FROM meta WHERE key = 'schema_version'").pluck().get()).toBe(
    next_version,
  );
});

test('a file that only later versions can read is moved aside unchanged, and epochs continue above it', () => {
  using lab = new StoreLab();
  lab.store.commit(work({ rows: lab.rows('feed', 1, 3) }));
  const { epoch } = lab.opened;
  upgrade(lab, next_version);
  const opened = lab.open();
  expect(opened.epoch).toBeGreaterThan(epoch);
  expect(opened.depth.feed.rows).toBe(0);
  expect(opened.salvage).toMatchObject({ rows_saved: 0, rows_lost: null, moved_to: `${lab.file}.too-new-1` });
  expect(opened.salvage?.cause).toContain(`version ${next_version}`);
  expect(existsSync(`${lab.file}.too-new-1`)).toBe(true);
  expect(lab.reopen().salvage).toBeUndefined();
});

test('files of later versions are never erased, however often it happens', () => {
  using lab = new StoreLab();
  for (let n = 0; n < 4; n += 1) {
    upgrade(lab, next_version);
    lab.open();
  }
  expect(readdirSync(lab.dir).filter((name) => /too-new-\d+$/u.test(name))).toHaveLength(4);
});

test('an empty file, as after a power cut, is initialised', () => {
  using lab = new StoreLab();
  lab.store.close();
  using db = disposable(new Database(`${lab.file}.empty`));
  expect(lab.open({ file: db.it.name })).toMatchObject({ salvage: undefined, health: { state: 'ok' } });
});

function disposable(it: Database.Database): Disposable & { readonly it: Database.Database } {
  return { it, [Symbol.dispose]: () => it.close() };
}
