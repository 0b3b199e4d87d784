/** A copy of the SQLite file of a service that goes on writing. */
import { existsSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { expect, it } from 'vitest';
import { copyDatabase } from '../../../src/cloud/sql/backup.ts';
import { withDirectory } from '../../support/temporary.ts';

it('is whole and sound while the service writes, and a single private file', async () => {
  await withDirectory(async (dir) => {
    const [file, to] = [join(dir, 'service.db'), join(dir, 'backup.db')];
    const db = new Sqlite(file);
    db.pragma('journal_mode = WAL');
    db.exec('CREATE TABLE pairs (a INTEGER, b INTEGER)');
    const insert = db.prepare('INSERT INTO pairs VALUES (?, ?)');
    // Two rows a transaction: half of one would show.
    const add = db.transaction((n: number) => {
      insert.run(n, 1);
      insert.run(n, 2);
    });
    for (let n = 0; n < 2_000; n += 1) add(n);
    const copied = copyDatabase(file, to);
    const writing = setInterval(() => add(Date.now()), 1);
    await copied;
    clearInterval(writing);
    db.close();
    const copy = new Sqlite(to, { readonly: true });
    const { rows } = copy.prepare<[], { rows: number }>('SELECT count(*) AS rows FROM pairs').get() ?? {
      rows: 0,
    };
    copy.close();
    expect(rows).toBeGreaterThanOrEqual(4_000);
    expect(rows % 2).toBe(0);
    expect(statSync(to).mode & 0o777).toBe(0o600);
    expect(readdirSync(dir).filter((name) => name.startsWith('backup'))).toEqual(['backup.db']);
  });
});

it('leaves an earlier one alone when the file is no database', async () => {
  await withDirectory(async (dir) => {
    const [file, to] = [join(dir, 'service.db'), join(dir, 'backup.db')];
    writeFileSync(file, 'x'.repeat(8_192));
    writeFileSync(to, 'earlier');
    await expect(copyDatabase(file, to)).rejects.toThrow(/not a database/u);
    expect(statSync(to).size).toBe(7);
    expect(existsSync(`${to}.partial`)).toBe(false);
  });
});
