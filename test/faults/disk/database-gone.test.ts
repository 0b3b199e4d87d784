/**
 * A database file of the service that is deleted or replaced while it is in use: what was acknowledged must not end with the process.
 * SQLite goes on without a word (WiseLibs/better-sqlite3#1237, get-bb/bb#2190).
 */
import { copyFileSync, existsSync, mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { StorageUnavailable } from '../../../src/platform/errors.ts';
import type { Database } from '../../../src/cloud/sql/database.ts';
import { openSqlite } from '../../../src/cloud/sql/sqlite.ts';
import { openThreadStore } from '../../../src/cloud/store/thread-store.ts';
import { texts } from '../../../src/cloud/texts.ts';
import { fillUp, diskMissing, withTmpfs } from '../../support/disk/disks.ts';
import { eventually } from '../../support/eventually.ts';
import { recordingLog } from '../../support/recording-log.ts';
import { makeDirectory } from '../../support/temporary.ts';

const parts = ['', '-wal', '-shm'] as const;
let dir: string;
let file: string;
let history_file: string;
let log: ReturnType<typeof recordingLog>;
const error = (facts: object, sentence: string): void => log.error(facts, sentence);

beforeEach(async () => {
  dir = await makeDirectory();
  mkdirSync(join(dir, 'state'));
  file = join(dir, 'state', 'service.db');
  history_file = join(dir, 'state', 'history.db');
  log = recordingLog();
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

/** The service of its own, and that of a gateway, whose file for what lasts and whose history are beside a database in memory. */
const kinds = {
  'standalone service': {
    open: () => openSqlite(file, { error }),
    table: 'noted',
    of: () => file,
  },
  'service of a gateway': {
    open: () => openSqlite(file, { keeping: 'memory', history_file, error }),
    table: 'kept.noted',
    of: () => file,
  },
  'history of a gateway': {
    open: () => openSqlite(file, { keeping: 'memory', history_file, error }),
    table: 'history.noted',
    of: () => history_file,
  },
} as const;

const deeds: readonly (readonly [string, (file: string) => void])[] = [
  ['deleted', (path) => rmSync(path)],
  [
    'deleted with its log and index',
    (path) => {
      for (const part of parts) rmSync(path + part);
    },
  ],
  ['replaced by a copy', (path) => renameSync(`${path}.copy`, path)],
  ['deleted with its folder', (path) => rmSync(dirname(path), { recursive: true })],
  ['there, but its log is deleted', (path) => rmSync(`${path}-wal`)],
];

const cases = Object.keys(kinds).flatMap((kind) =>
  deeds.map(([what, deed]) => [kind as keyof typeof kinds, what, deed] as const),
);

async function note(database: Database, table: string, numbers: readonly number[]): Promise<void> {
  await database.transaction(async ({ all }) => {
    for (const n of numbers) await all(`INSERT INTO ${table} VALUES (?)`, n);
  });
}

const count = async (database: Database, table: string): Promise<unknown> =>
  database.all(`SELECT count(*) AS n FROM ${table}`);

describe('Database file of the service that is gone while it is in use', () => {
  it.each(cases)(
    'keeps all of the %s when it is %s, also when the process is killed then',
    async (kind, _, deed) => {
      const { open, table, of } = kinds[kind];
      const database = open();
      await database.all(`CREATE TABLE ${table} (n)`);
      copyFileSync(of(), `${of()}.copy`);
      await note(database, table, [1, 2, 3]);
      // The log is written back: what the file holds is in no other.
      await database.forget();
      deed(of());
      await note(database, table, [4]);
      expect(await count(database, table)).toEqual([{ n: 4 }]);
      const killed = join(dir, 'killed');
      mkdirSync(killed);
      for (const name of readdirSync(dirname(file)))
        copyFileSync(join(dirname(file), name), join(killed, name));
      await database.close();
      [file, history_file] = [join(killed, basename(file)), join(killed, basename(history_file))];
      const next = open();
      expect(await count(next, table)).toEqual([{ n: 4 }]);
      await next.close();
    },
  );

  it('is noticed while nothing is asked, said once, and what was found in its place is moved aside', async () => {
    const store = await openThreadStore(file, { error });
    writeFileSync(`${file}.other`, 'of another program');
    renameSync(`${file}.other`, file);
    await eventually('it is noticed', () => log.lines.length > 0);
    expect(log.lines).toMatchObject([
      { sentence: texts.file_rescued, facts: { file, moved_to: `${file}.replaced` } },
    ]);
    expect(existsSync(`${file}.replaced`)).toBe(true);
    await store.close();
  });

  it('acknowledges nothing while no new file can be made, and goes on then', async () => {
    const database = openSqlite(file, { error });
    await database.all('CREATE TABLE noted (n)');
    renameSync(dirname(file), join(dir, 'away'));
    writeFileSync(dirname(file), '');
    const refused = note(database, 'noted', [1]);
    await expect(refused).rejects.toBeInstanceOf(StorageUnavailable);
    await expect(refused).rejects.toThrow(file);
    await expect(note(database, 'noted', [1])).rejects.toThrow(file);
    expect(log.lines).toMatchObject([{ sentence: texts.file_not_rescued }]);
    rmSync(dirname(file));
    await note(database, 'noted', [1]);
    expect(await count(database, 'noted')).toEqual([{ n: 1 }]);
    await database.close();
    expect(existsSync(file)).toBe(true);
  });
});

it.skipIf(diskMissing())('A database that is gone waits for room on a full disk', async () => {
  await withTmpfs(24, async (mounted) => {
    const database = openSqlite(join(mounted, 'service.db'));
    await database.all('CREATE TABLE noted (n)');
    await note(database, 'noted', [1]);
    rmSync(join(mounted, 'service.db'));
    const hog = fillUp(mounted);
    await expect(note(database, 'noted', [2])).rejects.toThrow(texts.disk_full);
    rmSync(hog);
    await note(database, 'noted', [2]);
    expect(await count(database, 'noted')).toEqual([{ n: 2 }]);
    expect(existsSync(join(mounted, 'service.db'))).toBe(true);
    await database.close();
  });
});
